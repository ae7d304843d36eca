"""Which roots a load goes by, and whether its dump stays within: asks, then lets the plan decide.

What an administrator named counts (setting, option); else what the replica notes of its earlier
loads. The source's own metastore, if it is at hand, adds where it says that the database's tables
are. What a dump says of itself counts once, and only if somebody said so (``is_origin_trusted``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from changemanager.containment import ResolverWithin
from changemanager.location import Resolver
from hms_bridge.errors import DumpIncompleteError, OriginNotTrustedError
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.verify import named_files
from hms_bridge.repl.load.plan import LoadRequest
from hms_bridge.repl.load.source_roots import (
    RefusedPlace,
    RootsPlan,
    outermost,
    outside_of,
    plan_roots,
)
from hms_bridge.repl.lookup import find_partition, if_there

_NAMED_IN_MESSAGE = 3


class RootsNote(Protocol):
    """Where a replica's metastore notes the roots of what it loads, out of its clients' reach."""

    def get_load_roots(self, database_name: str) -> tuple[str, ...]:
        """Those of the database's last load; none before it."""

    def set_load_roots(self, database_name: str, roots: tuple[str, ...]) -> None:
        """Note them, in the place of earlier ones."""


def require_manifest(reader: DumpReader) -> None:
    """Raises DumpIncompleteError for a dump without one: nothing else keeps a dump of ours that has
    lost parts from passing for one of Hive's."""
    if not reader.has_manifest:
        raise DumpIncompleteError(
            f"{reader.paths.manifest} is missing, so the dump cannot prove that it is whole. Dumps "
            "of Hive and of early versions have none. Only if you know that it is one of those: "
            "--from-hive (hms.bridge.repl.load.from.hive); else copy the dump again"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SourcePlaces:
    """Where the source's metastore says that a database is. ``cm_root``: its archive, as the
    settings of its side have it."""

    metastore: Metastore
    cm_root: str | None

    def of(self, database_name: str, refused: Iterable[RefusedPlace]) -> tuple[str, ...]:
        """Directories of the database, of the tables and partitions that places are refused of,
        and files of such functions; none of what is not there."""
        places = [self.cm_root]
        database = if_there(self.metastore.get_database, database_name)
        if database is None:
            return outermost(place for place in places if place)
        places += [database.location, database.managed_location]
        targets = {(place.target, place.is_of_function) for place in refused if place.target}
        for target, is_of_function in targets:
            name = target.table or ""
            if is_of_function:
                function = if_there(self.metastore.get_function, database_name, name)
                places += [resource.uri for resource in function.resources] if function else []
                continue
            table = if_there(self.metastore.get_table, database_name, name)
            places += [table.storage.location] if table else []
            if table and target.partition:
                part = find_partition(self.metastore, database_name, name, target.partition)
                places += [part.storage.location] if part else []
        return outermost(place for place in places if place)


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """Says of a dump below which roots its files are read. Without ``note`` the replica's metastore
    is another's (thrift), and nothing is noted there; ``source`` is asked if it is given."""

    resolve: Resolver
    note: RootsNote | None = None
    source: SourcePlaces | None = None

    def roots(
        self, request: LoadRequest, reader: DumpReader, after: EventId | None = None
    ) -> tuple[str, ...]:
        """The roots that the dump stays within. Events up to ``after`` are loaded already.

        Raises OriginNotTrustedError, with the roots that it would take, before anything that the
        dump names is looked at.
        """
        named = self._named(request)
        plan = self._plan(reader, named, after)
        if plan.refused and self.source is not None:
            asked = self.source.of(request.names.source_database, plan.refused)
            named = outermost((*named, *asked))
            plan = self._plan(reader, named, after)
        if plan.refused and request.is_origin_trusted:
            named = outermost((*named, *plan.lacking))
            plan = self._plan(reader, named, after)
        if plan.refused:
            raise self._refusal(request, reader, named, plan)
        return named

    def keep(self, request: LoadRequest, roots: tuple[str, ...]) -> None:
        """Note the roots of a load, for the next one."""
        database = request.names.target_database
        if self.note is not None and self.note.get_load_roots(database) != roots:
            self.note.set_load_roots(database, roots)

    def _named(self, request: LoadRequest) -> tuple[str, ...]:
        if request.roots or self.note is None:
            return outermost(request.roots)
        return self.note.get_load_roots(request.names.target_database)

    def _plan(self, reader: DumpReader, roots: tuple[str, ...], after: EventId | None) -> RootsPlan:
        return plan_roots(
            named_files(reader, after), reader.external_directories(), reader.source_database,
            outside_of(ResolverWithin(self.resolve, roots)),
        )  # fmt: skip

    def _refusal(
        self, request: LoadRequest, reader: DumpReader, named: tuple[str, ...], plan: RootsPlan
    ) -> OriginNotTrustedError:
        shown = "; ".join(
            f"{place.target or 'the archive'}: {place.reason}"
            for place in plan.refused[:_NAMED_IN_MESSAGE]
        )
        more = len(plan.refused) - _NAMED_IN_MESSAGE
        count = f" (and {more} places more)" if more > 0 else ""
        whole = outermost((*named, *plan.lacking))
        why = "" if named else (
            "nobody has named the places that files of this replica may come from, and a dump is "
            "not believed about that. "
        )  # fmt: skip
        return OriginNotTrustedError(
            f"{reader.paths.root} names files that are not read: {why}{shown}{count}. Nothing was "
            f"changed. All that it names lies below {', '.join(whole)}. Only if these are "
            f"directories of the source: {request.naming(whole)}",
            roots=whole,
        )
