"""Which side takes writes, and what each must show when they change places.

Read from the properties that promotion and failback leave in both databases, after each
transaction there. Whoever is at work takes that side for the source which it was when it began.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from tests.simulation.checks import replica_rows, require_loaded, rows_of
from tests.simulation.disk import SimulatedDisk
from tests.simulation.model import Effect, Model, TableModel, Tables
from tests.simulation.plain_reader import cut_rows
from tests.simulation.scopes import ALL_TABLES, Patterns
from tests.simulation.side import Side
from tests.simulation.story import Loaded, ViolationError

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster


class Part(Enum):
    """What a database says of itself."""

    NONE = "no database"
    OWN = "takes writes, or did until it was fenced"
    REPLICA = "loads change it"
    LEAVING = "nobody changes it: it is about to take writes"


class Roles:
    """`now`: the side that new clients go to. `homes`: whom actors take for the source, by name.

    `planned`, `without_source`, `giving_up`: names of actors that promote without a loss, promote
    without the source, fail back and give up what one side has alone. `are_to_change`: sides change
    places in this schedule; `has_changed`: they have begun to. `is_split`: the source was out of
    reach, so that it may go on taking writes. `abandoned`: dumps that nobody is to load any more.
    `ended`: sides that an admin has told to be no source any more, and that may be dropped.
    `keeping`: names of actors that load and may not drop the replica. `partial`: sides that took
    their source's place with some of its tables; `closing_all`: names of actors that may fence all
    of it nevertheless; `is_brought_back`: such a side's tables are at its former source, beside it.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.now = cluster.first
        self.homes: dict[str, Side] = {}
        self.planned: set[str] = set()
        self.giving_up: set[str] = set()
        self.without_source: set[str] = set()
        self.is_split = False
        self.are_to_change = False
        self.has_changed = False
        self.abandoned: set[str] = set()
        self.ended: set[str] = set()
        self.keeping: set[str] = set()
        self.partial: set[str] = set()
        self.closing_all: set[str] = set()
        self.is_brought_back = False
        self._fenced: set[str] = set()
        self._left_to_delete: set[str] = set()
        self._shared: Tables = {}
        self._parts = {cluster.first.name: Part.OWN, cluster.second.name: Part.NONE}

    def home_of(self, actor: str) -> Side:
        """Whom an actor takes for the source."""
        return self.homes.get(actor, self.now)

    def part(self, side: Side) -> Part:
        """As its database says now."""
        return self._parts[side.name]

    def is_leaving(self, side: Side) -> bool:
        """Whether it is no replica any more, or not for long."""
        return self.part(side) in (Part.LEAVING, Part.OWN)

    def is_of_source(self, path: str) -> bool:
        """Whether a path is of a table of a side whose files are to be archived."""
        above = path.split("/")[1]
        if above == "elsewhere":
            return not self.has_changed
        return any(
            side.story.is_master
            and not self.is_ended(side.database_name)
            and not self._was_dropped_as_replica(side, path)
            for side in self._cluster.sides
            if side.name == above
        )

    def _was_dropped_as_replica(self, side: Side, path: str) -> bool:
        """Whether a load had dropped the table before the side took its source's place: its dumps
        never name what is still to be deleted of it."""
        place = "/".join(path.split("/")[:4])
        return place in self._left_to_delete and path.split("/")[3] not in side.table_ids()

    def is_ended(self, database: str) -> bool:
        """Whether an admin has ended a source, and it was not made anew since."""
        return any(
            side.name in self.ended and side.database_name == database
            for side in self._cluster.sides
        )

    # -- after a transaction

    def changed(self, side: Side, effect: Effect) -> None:
        """A client's work counts at a side."""
        if effect.is_met_already:
            return
        if not side.story.is_master:
            self._found("I11", f"{self._actor} changed {side.name}, which only loads may change")
        elif side is not self.now and not self.is_split and not effect.has_same_rows:
            self._found("I1", f"{self._actor} changed {side.name}, whose place was taken")

    def note(self, side: Side) -> None:
        """What the database says of itself now."""
        self._note_fence(side)
        before, part = self.part(side), _part_of(side)
        if part is before:
            return
        self._parts[side.name] = part
        try:
            self._move(side, before, part)
        except ViolationError as violation:
            self._cluster.found(violation)

    def _note_fence(self, side: Side) -> None:
        """Tables that nobody else has keep their writers, unless somebody says otherwise."""
        is_fenced = bool(side.parameter(_FENCED))
        other = self._cluster.other(side)
        is_new = is_fenced and side.name not in self._fenced
        is_asked = self._actor in self.closing_all or other.name not in self.partial
        if is_new and side.story.is_master and not is_asked:
            self._found("I1", f"{self._actor} closes all tables of {side.name}, unasked")
        (self._fenced.add if is_fenced else self._fenced.discard)(side.name)

    def _move(self, side: Side, before: Part, part: Part) -> None:
        match before, part:
            case Part.REPLICA, Part.LEAVING:
                self._begun(side)
            case Part.LEAVING, Part.OWN:
                self._taken_over(side)
            case Part.OWN, Part.REPLICA:
                self._became_replica(side)
            case (Part.REPLICA, Part.NONE) | (Part.NONE, Part.REPLICA):
                if part is Part.NONE and self._actor in self.keeping:
                    raise ViolationError("I11", f"{self._actor} dropped {side.name} unasked")
                side.story.loaded = None
            case (Part.OWN, Part.NONE) if side.name in self.ended:
                pass
            case (Part.NONE, Part.OWN) if side.name in self.ended:
                self.ended.remove(side.name)
            case _:
                raise ViolationError(
                    "I1", f"{self._actor} made {side.name} {part.value}; before: {before.value}"
                )

    def _begun(self, side: Side) -> None:
        """The replica shows a prefix of what its source has; all of it, where that was asked."""
        self.has_changed = True
        source = self._cluster.other(side).story.model
        event_id = int(side.parameter("repl.last.id") or 0)
        found = replica_rows(side)
        patterns = _patterns_of(side)
        if patterns != ALL_TABLES:
            self.partial.add(side.name)
            if self._actor not in self.without_source:
                raise ViolationError(
                    "I1", f"{self._actor} takes the place of all tables with {patterns}"
                )
        if side.story.loaded is not None:
            require_loaded(side, side.story.loaded)
        elif self._is_half_dropped(side, patterns):
            self.partial.add(side.name)
        elif not any(
            rows_of(patterns.of(one)) == found for one in source.between(event_id, source.last)
        ):
            wanted = rows_of(patterns.of(source.at(event_id)))
            raise ViolationError("I11", f"{side.name} is no prefix: {found}, not {wanted}")
        if self._actor in self.planned and found != rows_of(source.tables):
            raise ViolationError(
                "I1", f"a planned promotion brings {found}, not {rows_of(source.tables)}"
            )
        side.story.loaded = Loaded([shown(side)], event_id)

    def _is_half_dropped(self, side: Side, patterns: Patterns) -> bool:
        """Whether a load that drops what left the scope has died there: what is left is whole."""
        source = self._cluster.other(side).story.model
        event_id = int(side.parameter("repl.last.id") or 0)
        found = replica_rows(side)
        states = [rows_of(one) for one in source.between(event_id, source.last)]
        return (
            patterns != ALL_TABLES
            and self._actor in self.without_source
            and all(any(one.get(name) == rows for one in states) for name, rows in found.items())
        )

    def _taken_over(self, side: Side) -> None:
        """From here on its own clients tell what it must show."""
        cluster, story, other = self._cluster, side.story, self._cluster.other(side)
        if story.loaded is not None:
            require_loaded(side, story.loaded)
        self.is_split = self._actor in self.without_source
        if not self.is_split and other.story.is_master and not other.parameter(_FENCED):
            raise ViolationError("I1", f"{side.name} takes writes, and so does {other.name}")
        tables = shown(side)
        story.model = Model()
        story.model.tables = tables
        story.model.record(_handover(side))
        story.is_master, story.loaded, story.bootstrap_end = True, None, None
        story.readers.clear()
        self._shared = copy.deepcopy(tables)
        tasks = side.raw.execute("SELECT LOCATION FROM HMSB_FILE_TASK WHERE KIND <> 'm'")
        self._left_to_delete |= {place.removeprefix("file:") for (place,) in tasks}
        self.now = side
        self.abandoned = set(dump_directories(cluster.disk))

    def _became_replica(self, side: Side) -> None:
        """What it has alone goes, if that was asked for; the rest is what the other one had."""
        cluster, story = self._cluster, side.story
        other = cluster.other(side)
        if not other.story.is_master or self.now is not other:
            raise ViolationError("I1", f"{self._actor} made {side.name} a replica of a replica")
        if other.name in self.partial:
            raise ViolationError(
                "I1", f"{self._actor} gives up all tables of {side.name} that were never replicated"
            )
        alone, shared = _values(story.model.tables), _values(self._shared)
        if self._actor not in self.giving_up and alone != shared:
            raise ViolationError(
                "I1", f"{self._actor} gives up what {side.name} has alone: {alone}, not {shared}"
            )
        story.is_master, story.loaded = False, None
        for reader in story.readers.values():
            reader.is_unsettled = True
            reader.places.clear()
        story.dropped.clear()
        story.left_rows.clear()
        cluster.foreign = [
            one
            for one in cluster.foreign
            if not one.is_movable or not one.path.startswith(f"{side.warehouse}/")
        ]
        own_event = _handover(other)
        if not side.parameter(_DIVERGED):
            story.loaded = Loaded([other.story.model.at(own_event)], own_event)

    @property
    def _actor(self) -> str:
        actor = self._cluster.scheduler.current
        return actor.name if actor else ""

    def _found(self, invariant: str, text: str) -> None:
        self._cluster.found(ViolationError(invariant, text))


_FENCED = "hms.bridge.repl.fenced"
_HANDOVER = "hms.bridge.repl.handover"
_DIVERGED = "hms.bridge.repl.diverged"
_SCOPE = "hms.bridge.repl.scope"


def _patterns_of(side: Side) -> Patterns:
    """Which tables the last load has brought a replica to, as that has noted it."""
    if side.story.loaded is not None:
        return side.story.loaded.patterns
    return Patterns(*re.findall("'([^']*)'", side.parameter(_SCOPE) or ""))


def _part_of(side: Side) -> Part:
    if not side.has_database():
        return Part.NONE
    if not side.parameter("repl.target.for"):
        return Part.OWN
    return Part.LEAVING if side.parameter(_HANDOVER) else Part.REPLICA


def _handover(side: Side) -> int:
    """The event from which its own commits count."""
    return int(json.loads(side.parameter(_HANDOVER) or "{}").get("ownEvent") or 0)


def shown(side: Side) -> Tables:
    """What is there, as a model has it."""
    tables: Tables = {}
    for name, partitions in replica_rows(side).items():
        definition = side.definition(name)
        tables[name] = TableModel(
            is_partitioned=bool(definition.partition_columns),
            partitions={
                part: cut_rows(rows, len(definition.columns)) for part, rows in partitions.items()
            },
            columns=definition.columns,
            definition=definition,
        )
    return tables


def _values(tables: Tables) -> dict[str, object]:
    """Columns and rows without their ids, which a rebalance changes."""
    return {
        name: (
            table.columns,
            {part: Counter(rows.values()) for part, rows in table.partitions.items()},
        )
        for name, table in tables.items()
    }


def dump_directories(disk: SimulatedDisk) -> Iterator[str]:
    """Where dumps are, of whichever database."""
    for database in list(disk.directory("/repl").names):
        for name in list(disk.directory(f"/repl/{database}").names):
            yield f"/repl/{database}/{name}/hive"
