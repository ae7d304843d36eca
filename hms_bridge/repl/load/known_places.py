"""Where a look at a dump (`repl verify`, `repl status`) finds its files: below known places only.

A look copies nothing, but it connects to hosts in its user's name, and says which files there are.
So it believes no dump about places either. Other than a load it goes by all that is known, refuses
nothing, and says what it did not look for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from changemanager.containment import ResolverWithin
from changemanager.location import Resolver
from hms_bridge.model.counted import counted
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.verify import NamedFile, VerifiedFile, VerifyReport
from hms_bridge.repl.load.admission import RootsNote, SourcePlaces
from hms_bridge.repl.load.source_roots import (
    RefusedPlace,
    outermost,
    outside_of,
    plan_roots,
    root_of,
)

_ROOTS_IN_MESSAGE = 5

AskedPlaces = Callable[[str, Sequence[RefusedPlace]], Iterable[str]]
"""What metastores say of where a source database's files are, of the places that are refused."""


def asked_places(
    note: RootsNote | None, source: SourcePlaces | None, target_database: str | None
) -> AskedPlaces:
    """What a replica's metastore notes of its loads, and what a source's says of its tables.
    ``target_database`` None: called as the source's."""

    def asked(database: str, refused: Sequence[RefusedPlace]) -> Iterable[str]:
        noted = () if note is None else note.get_load_roots((target_database or database).lower())
        return (*noted, *(() if source is None else source.of(database, refused)))

    return asked


@dataclass(frozen=True, kw_only=True, slots=True)
class UnlookedFiles:
    """Files of a dump that nobody looked for. ``why``: of one of them; ``roots``: the first
    directories that would have to be named."""

    count: int
    why: str
    roots: tuple[str, ...]

    def text(self, command: str) -> str:
        """A line for people. ``command``: which names the roots."""
        are = "are directories" if len(self.roots) > 1 else "is a directory"
        return (
            f"{counted(self.count, 'file')} of the dump not looked for: {self.why}. Only if "
            f"{', '.join(self.roots)} {are} of the source: type '{command}'"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownPlaces:
    """``roots``: what an administrator named, and the warehouses and archive of the settings.
    ``asked`` is called only for a dump that names files elsewhere."""

    resolve: Resolver
    roots: tuple[str, ...]
    asked: AskedPlaces | None = None

    def within(self, reader: DumpReader, files: Sequence[NamedFile]) -> ResolverWithin:
        """Resolves places below the roots, below the dump itself, and where metastores say."""
        roots = outermost((*self.roots, reader.paths.root))
        known = ResolverWithin(self.resolve, roots)
        if self.asked is None:
            return known
        database = reader.source_database
        plan = plan_roots(files, (), database, outside_of(known), is_cm_enough=False)
        if not plan.refused:
            return known
        asked = self.asked(database, plan.refused)
        return ResolverWithin(self.resolve, outermost((*roots, *asked)))


def unlooked_files(report: VerifyReport) -> UnlookedFiles | None:
    """What a look passed over; None if it did so with no file."""
    if not report.unlooked:
        return None
    lacking = outermost(root for file in report.unlooked for root in _roots_of(file))
    return UnlookedFiles(
        count=len(report.unlooked),
        why=report.unlooked[0].reason,
        roots=lacking[:_ROOTS_IN_MESSAGE],
    )


def _roots_of(file: VerifiedFile) -> Iterator[str]:
    """What would have to be named, of the file's source and of its archive."""
    named = file.named
    for place in file.outside:
        directory = place if named.is_of_function else place.rpartition("/")[0]
        yield root_of(directory, named, named.target.database)
