"""Functions of both sides of a database: class, owner, and what they need, by its bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from changemanager.errors import ChangeManagerError
from changemanager.location import Location, Resolver
from hms_bridge.model.counted import counted
from hms_bridge.model.event import EventType
from hms_bridge.model.function import Function, Resource
from hms_bridge.repl.compare.definitions import differing
from hms_bridge.repl.compare.described import Finding, Verdict, different
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.layout import FUNCTIONS
from hms_bridge.repl.format.passed_kinds import SETTING

_KINDS = frozenset(
    {
        FUNCTIONS,
        DumpType.CREATE_FUNCTION.value,
        DumpType.DROP_FUNCTION.value,
        EventType.CREATE_FUNCTION.value,
        EventType.DROP_FUNCTION.value,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionComparison:
    """Compares the functions of a database. ``passed_kinds``: of events that the replica does
    without. ``change_of``: what changed a function since the event at which the replica stands, by
    its name; None for nothing."""

    resolve: Resolver
    passed_kinds: Collection[str]
    change_of: Callable[[str], str | None]

    def findings(
        self, source: Sequence[Function], replica: Sequence[Function]
    ) -> Iterator[Finding]:
        """All findings, by name. Reads the files of functions, each side's own. Raises OSError and
        ChangeManagerError for what cannot be read."""
        ours = {function.name.lower(): function for function in source}
        theirs = {function.name.lower(): function for function in replica}
        for name in sorted(ours.keys() | theirs.keys()):
            findings = tuple(self._of_one(name, ours.get(name), theirs.get(name)))
            yield from findings and self._weighed(name, findings)

    def _of_one(
        self, name: str, source: Function | None, replica: Function | None
    ) -> Iterator[Finding]:
        what = f"function {name}"
        if source is None or replica is None:
            here, there = ("missing" if side is None else "there" for side in (source, replica))
            yield different(what, here, there)
            return
        ours, theirs = self._definitions(source, replica)
        unequal = tuple(differing(ours, theirs))
        for part, of_source, of_replica in unequal:
            yield different(f"{what}: {part}", of_source, of_replica)
        if not unequal:
            files = len(source.resources)
            looked_at = ["class", "owner", *([counted(files, "file")] if files else [])]
            yield Finding(verdict=Verdict.EQUAL, what=f"{what}: {', '.join(looked_at)}")

    def _weighed(self, name: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """What may differ makes one finding."""
        if all(finding.verdict is Verdict.EQUAL for finding in findings):
            return findings
        what = f"function {name}"
        change = self.change_of(name)
        if not _KINDS.isdisjoint(self.passed_kinds):
            why = f"the replica does without, by {SETTING}"
            return (Finding(verdict=Verdict.NOT_COMPARED, what=what, why=why),)
        if change is not None:
            why = (
                "changed since the event at which the replica stands, by "
                f"{change}; load, compare again"
            )
            return (Finding(verdict=Verdict.UNDECIDED, what=what, why=why),)
        return findings

    def _definitions(
        self, source: Function, replica: Function
    ) -> tuple[dict[str, str], dict[str, str]]:
        ours, theirs = _definition(source), _definition(replica)
        pairs = zip_longest(source.resources, replica.resources)
        for position, (of_source, of_replica) in enumerate(pairs, start=1):
            texts = self._resource_texts(of_source, of_replica)
            for definition, text in zip((ours, theirs), texts, strict=True):
                if text is not None:
                    definition[f"file {position}"] = text
        return ours, theirs

    def _resource_texts(
        self, source: Resource | None, replica: Resource | None
    ) -> tuple[str | None, str | None]:
        """Of a resource that stayed where it is only where; of others name and checksum."""
        if source is None or replica is None or source.uri == replica.uri:
            return _plain_text(source), _plain_text(replica)
        places = (self._place(source), self._place(replica))
        if places[0] is None or places[1] is None:
            return _plain_text(source), _plain_text(replica)
        of_source = _checksum(places[0], None)
        of_replica = _checksum(places[1], of_source)
        return (
            _file_text(source, places[0], of_source),
            _file_text(replica, places[1], of_replica),
        )

    def _place(self, resource: Resource) -> Location | None:
        """None for what is on no file system."""
        try:
            return self.resolve(resource.uri)
        except ChangeManagerError:
            return None


def _definition(function: Function) -> dict[str, str]:
    kind = "" if function.owner_type is None else f"{function.owner_type.name} "
    return {
        "class": function.class_name,
        "owner": f"{kind}{function.owner_name or ''}",
        "kind": str(function.type),
    }


def _plain_text(resource: Resource | None) -> str | None:
    return None if resource is None else f"{resource.type.name} {resource.uri}"


def _checksum(place: Location, like: str | None) -> str | None:
    """None for a file that is gone."""
    if place.status() is None:
        return None
    return place.checksum() if like is None else place.checksum_like(like)


def _file_text(resource: Resource, place: Location, checksum: str | None) -> str:
    name = place.path.rpartition("/")[2]
    end = ", which is gone" if checksum is None else f" {checksum}"
    return f"{resource.type.name} {name}{end}"
