"""Which places of a dump's files a load may read: decided from the roots alone.

A dump is written by whoever may write below its root, so nothing in it says where files may come
from. The roots are an administrator's word: named for this load, or noted at the replica by an
earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from changemanager.containment import ResolverWithin
from changemanager.errors import OutsideRootsError
from changemanager.location import path_below
from hms_bridge.model.target import Target
from hms_bridge.repl.format.external_list import ExternalDirectory
from hms_bridge.repl.format.verify import NamedFile

Outside = Callable[[str], OutsideRootsError | None]
"""Why a place is outside of the roots, and where it leads; None if it is not."""


def outside_of(within: ResolverWithin) -> Outside:
    """What judges places by a resolver's roots."""

    def outside(place: str) -> OutsideRootsError | None:
        try:
            within(place)
        except OutsideRootsError as error:
            return error
        return None

    return outside


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedPlace:
    """A directory, archive or file that a dump names, outside of the roots. ``root``: what would
    have to be named for it. ``target``: what it is of, None for an archive."""

    place: str
    root: str
    reason: str
    target: Target | None = None
    is_of_function: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RootsPlan:
    """The verdict on all that a dump names: each place once."""

    refused: tuple[RefusedPlace, ...]

    @property
    def lacking(self) -> tuple[str, ...]:
        """The roots that would have to be named."""
        return outermost(refused.root for refused in self.refused)


def plan_roots(
    files: Iterable[NamedFile],
    directories: Iterable[ExternalDirectory],
    source_database: str,
    outside: Outside,
    *,
    is_cm_enough: bool = True,
) -> RootsPlan:
    """Judge each directory that files are named in, each archive, each external directory.

    A file that is outside of the roots at its source may still come from an archive within: there
    it is known by its checksum, and nobody looks at its source. Unless ``is_cm_enough``, both
    are judged.
    """
    refused: dict[str, RefusedPlace | None] = {}
    for named in files:
        file = named.file
        if file.cmroot is not None and file.cmroot not in refused:
            refused[file.cmroot] = _archive(file.cmroot, outside)
        is_archived = file.checksum is not None and file.cmroot is not None
        if is_cm_enough and is_archived and refused[file.cmroot or ""] is None:
            continue
        place = file.uri if named.is_of_function else file.uri.rpartition("/")[0]
        if place not in refused:
            refused[place] = _place(place, named, source_database, outside)
    for directory in directories:
        why = outside(directory.source)
        refused[directory.source] = None if why is None else RefusedPlace(
            place=directory.source,
            root=why.place,
            reason=str(why),
            target=Target(source_database, directory.table_name),
        )  # fmt: skip
    return RootsPlan(refused=tuple(place for place in refused.values() if place is not None))


def _archive(cmroot: str, outside: Outside) -> RefusedPlace | None:
    why = outside(cmroot)
    return None if why is None else RefusedPlace(place=cmroot, root=why.place, reason=str(why))


def _place(
    place: str, named: NamedFile, source_database: str, outside: Outside
) -> RefusedPlace | None:
    why = outside(place)
    if why is None:
        return None
    return RefusedPlace(
        place=place,
        root=root_of(why.place, named, source_database),
        reason=str(why),
        target=named.target,
        is_of_function=named.is_of_function,
    )


def root_of(directory: str, named: NamedFile, source_database: str) -> str:
    """What to name for a directory with files: that of the table, or of the database if it is
    called as Hive calls it."""
    if named.is_of_function:
        return directory.rpartition("/")[0]
    levels = named.file.source_directory.split("/") if named.file.source_directory else []
    levels = [*(named.target.partition or "").split("/"), *levels]
    for level in reversed([level for level in levels if level]):
        if not directory.endswith(f"/{level}"):
            break
        directory = directory.removesuffix(f"/{level}")
    above = directory.rpartition("/")[0]
    return above if above.endswith(f"/{source_database}.db") else directory


def outermost(roots: Iterable[str]) -> tuple[str, ...]:
    """Roots without those that lie in another one, sorted, as they are spelled."""
    kept: list[str] = []
    for root in sorted(set(roots), key=lambda root: (len(root), root)):
        if all(path_below(root, upper) is None for upper in kept):
            kept.append(root)
    return tuple(sorted(kept))
