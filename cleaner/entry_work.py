"""An entry on its way through the steps of a cleaning, beside others or alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from changemanager.errors import ChangeManagerError, LeaseLostError
from cleaner.errors import CleanerError
from cleaner.plan import CleaningOutcome, CleaningTarget, EntryPlan
from cleaner.planner import CleanerLists
from cleaner.remover import RemovalReport
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.compaction import Compaction

CleaningError = HmsBridgeError | ChangeManagerError | OSError
"""What fails one entry, and no other."""


class PartlyCleanedError(CleanerError):
    """The error of an entry of which something has gone already: what, and the error itself."""

    def __init__(self, cause: CleaningError, removed: RemovalReport) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.removed = removed


@dataclass(eq=False, slots=True)
class EntryWork:
    """What is known of it so far; at its end the ``result``. ``goes_alone``: it leaves the others
    behind, and is to be cleaned by itself afterwards. ``recorded``: the entry that ends with it,
    where that is another one."""

    entry: Compaction
    goes_alone: bool = False
    recorded: Compaction | None = None
    result: CleaningOutcome | CleaningError | None = None
    known_target: CleaningTarget | None = None
    known_lists: CleanerLists | None = None
    known_plan: EntryPlan | None = None
    known_after: EntryPlan | None = None
    known_report: RemovalReport | None = None

    @property
    def target(self) -> CleaningTarget:
        """What it points at."""
        assert self.known_target is not None
        return self.known_target

    @property
    def lists(self) -> CleanerLists:
        """Under which its directories are judged."""
        assert self.known_lists is not None
        return self.known_lists

    @property
    def plan(self) -> EntryPlan:
        """What goes."""
        assert self.known_plan is not None
        return self.known_plan

    @property
    def after(self) -> EntryPlan:
        """What would go still, after that has gone."""
        assert self.known_after is not None
        return self.known_after

    @property
    def report(self) -> RemovalReport:
        """What has gone."""
        assert self.known_report is not None
        return self.known_report

    @property
    def has_failed(self) -> bool:
        """Whether an error is what became of it."""
        return isinstance(self.result, Exception)

    def note_what_went(self) -> None:
        """A failure says what had gone by then."""
        report = self.known_report
        if isinstance(self.result, Exception) and report is not None and not report.is_empty:
            self.result = PartlyCleanedError(self.result, report)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """What goes wrong within is this entry's failure; a lost lease is all's."""
        try:
            yield
        except LeaseLostError:
            raise
        except (HmsBridgeError, ChangeManagerError, OSError) as error:
            self.result = error


def going_on(works: Iterable[EntryWork]) -> list[EntryWork]:
    """Those that are still with the others."""
    return [work for work in works if work.result is None and not work.goes_alone]
