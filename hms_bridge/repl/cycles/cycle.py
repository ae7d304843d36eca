"""One cycle: dump what is new, load it, let its files go; in parts, where a dump has a limit.

A cycle that was killed needs no repair: the dump that it left unfinished is removed by the next
one, the dump that was not loaded, or in part, is loaded first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.model.replication import CycleOutcome, CycleResult
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.load.plan import LoadKind, LoadReport, LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCycle:
    """Both sides of a policy, at hand. ``release`` lets the purge have what loaded dumps held;
    ``given_up`` says what the purge has given up of it, with what to do."""

    dumper: ReplDump
    loader: ReplLoad
    dump: DumpRequest
    load: LoadRequest
    release: Callable[[], object]
    given_up: Callable[[], str] = lambda: ""

    def plan(self) -> DumpPlan:
        """What the cycle would dump now; a plan that is BLOCKED means that a load comes first.
        Changes nothing. Raises ReplError."""
        return self.dumper.plan(self.dump)

    def require_possible(self) -> None:
        """Raises what the cycle would be refused with now: its dump, or the load that comes first.
        Changes nothing."""
        if self.plan().kind is DumpKind.BLOCKED:
            self.loader.plan(self.load)

    def run(self) -> CycleResult:
        """Raises what dump and load raise: ReplError above all."""
        try:
            return self._run()
        except SourceFileMissingError as error:
            why = self.given_up()
            if not why:
                raise
            raise SourceFileMissingError(f"{error}. Besides, {why}", error.missing) from error

    def _run(self) -> CycleResult:
        loads: list[LoadReport] = []
        plan = self._marking_plan()
        if plan.kind is DumpKind.BLOCKED:
            loads.append(self._load())
            plan = self._marking_plan()
        goal: int | None = None
        while True:
            with self.dumper.marking(self.dump):
                dump = self.dumper.run(plan)
            if dump.kind is DumpKind.BLOCKED:
                raise ReplError(dump.reason)
            # Also where nothing was dumped: the replica may have been set back.
            loads.append(self._load())
            reached = dump.last_event_id or 0
            # What writers add meanwhile is the next cycle's: they may be faster than the limit.
            goal = reached + dump.left_event_count if goal is None else goal
            if dump.left_event_count == 0 or reached >= goal:
                break
            plan = self._marking_plan()
        self.release()
        return cycle_result(dump.directory, loads)

    def _marking_plan(self) -> DumpPlan:
        with self.dumper.marking(self.dump):
            return self.plan()

    def _load(self) -> LoadReport:
        with self.loader.marking(self.load):
            return self.loader.run(self.loader.plan(self.load))


def cycle_result(directory: str | None, loads: Sequence[LoadReport]) -> CycleResult:
    """The sum of a cycle, whose dump is in a directory. Events that mean nothing to the replica are
    nothing new."""
    brought = [load for load in loads if _has_brought(load)]
    last = loads[-1]
    return CycleResult(
        outcome=CycleOutcome.REPLICATED if brought else CycleOutcome.NOTHING_NEW,
        dump_kind=_kind(brought),
        dump_directory=directory,
        until_event_id=last.last_event_id,
        event_count=sum(sum(load.events.values()) for load in loads),
        file_count=sum(load.copied.copied_files for load in loads),
        byte_count=sum(load.copied.bytes for load in loads),
    )


def _kind(brought: Sequence[LoadReport]) -> str | None:
    """A bootstrap that was waiting counts for more than what came after it."""
    kinds = [load.kind for load in brought]
    if LoadKind.BOOTSTRAP in kinds:
        return LoadKind.BOOTSTRAP.value
    return kinds[-1].value if kinds else None


def _has_brought(load: LoadReport) -> bool:
    if load.kind is LoadKind.INCREMENTAL:
        return bool(load.events or load.tables)
    return load.kind in (LoadKind.BOOTSTRAP, LoadKind.DROP)
