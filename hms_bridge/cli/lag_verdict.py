"""What a monitor makes of a replica's status, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from hms_bridge.cli.output import size_text, time_text
from hms_bridge.cli.repl_status import behind_text, duration_text

if TYPE_CHECKING:
    from hms_bridge.repl.status.report import Headroom, StatusReport


class State(IntEnum):
    """What a monitor makes of it; the numbers are the exit codes of Nagios plugins."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


_GRAVITY = (State.OK, State.WARNING, State.UNKNOWN, State.CRITICAL)


def worst(states: Iterable[State]) -> State:
    """What is known to be bad is worse than what is not known. OK for none."""
    return max(states, key=_GRAVITY.index, default=State.OK)


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """A replica that is looked at: its database, the URL of its metastore, without a password, and
    its policy, if that is how it was found."""

    database: str
    metastore: str
    policy: str | None = None

    def unknown(self, why: str) -> Verdict:
        """Nobody can say how it is."""
        return Verdict(self, State.UNKNOWN, why)


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one replica. ``why`` is empty where all is well; no ``report`` where nothing is known.
    ``is_blind``: policies could not be read, so nobody knows of which replicas this is."""

    watched: Watched
    state: State
    why: str = ""
    report: StatusReport | None = None
    is_blind: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LagLimits:
    """How old the oldest commit that a replica lacks may be, and how little time may be left until
    it cannot follow any more; in seconds."""

    warning: int
    critical: int
    headroom: int

    def judge(self, watched: Watched, report: StatusReport) -> Verdict:
        """The state of one replica, and why it is not OK."""
        state, why = self._judged(report)
        if report.time_doubt:
            state = worst([state, State.WARNING])
            why = "; ".join(filter(None, (why, report.time_doubt_text)))
        return Verdict(watched, state, why, report)

    def _judged(self, report: StatusReport) -> tuple[State, str]:
        if report.troubles:
            return State.CRITICAL, "; ".join(report.troubles)
        headroom = report.headroom
        if headroom is not None and headroom.seconds < self.headroom:
            return State.CRITICAL, _ends_text(headroom)
        if report.rpo_seconds is None:
            return State.UNKNOWN, _why_unknown(report)
        for state, limit in ((State.CRITICAL, self.critical), (State.WARNING, self.warning)):
            if report.rpo_seconds > limit:
                return state, f"more than {duration_text(limit)} behind"
        return State.OK, ""


def verdict_record(verdict: Verdict) -> dict[str, object]:
    """For programs: numbers are numbers, with their unit in the name."""
    report = verdict.report
    backlog = report.backlog if report else None
    headroom = report.headroom if report else None
    return {
        "policy": verdict.watched.policy,
        "database": verdict.watched.database,
        "state": verdict.state.name,
        "commits_behind": backlog.commits if backlog else None,
        "changes_behind": backlog.changes if backlog else None,
        "rpo_seconds": report.rpo_seconds if report else None,
        "bytes_to_copy": report.bytes_to_copy if report else None,
        "last_loaded": time_text(report.last_loaded_ms) if report else None,
        "headroom_seconds": headroom.seconds if headroom else None,
        "headroom_limit": headroom.limit if headroom else None,
        "why": verdict.why,
    }


def shown_verdict(verdict: Verdict) -> dict[str, object]:
    """Columns of the table by their headings; None where nothing is known."""
    report = verdict.report
    backlog = report.backlog if report else None
    headroom = report.headroom if report else None
    size = report.bytes_to_copy if report else None
    policy = verdict.watched.policy
    return ({} if policy is None else {"policy": policy}) | {
        "database": verdict.watched.database,
        "state": verdict.state.name,
        "behind": behind_text(backlog) if backlog else None,
        "oldest behind": duration_text(report.rpo_seconds) if report else None,
        "to copy": None if size is None else size_text(size),
        "last loaded": time_text(report.last_loaded_ms) if report else None,
        "headroom": duration_text(headroom.seconds) if headroom else None,
        "why": verdict.why or None,
    }


def _ends_text(headroom: Headroom) -> str:
    """When incremental ends. Past that it may still be had: nothing is gone before a purge."""
    if headroom.seconds < 0:
        return (
            f"incremental may be lost at any moment: the {headroom.limit} ended "
            f"{duration_text(-headroom.seconds)} ago; dump and load now ('repl run')"
        )
    return f"incremental is lost in {duration_text(headroom.seconds)}, by the {headroom.limit}"


def _why_unknown(report: StatusReport) -> str:
    if report.last_event_id is None and report.unfinished_load is not None:
        return report.unfinished_load
    if report.last_event_id is None:
        return "nothing was loaded yet: 'repl run', or 'repl load' after 'repl dump'"
    return "the log has no longer what the waiting dump holds: load it"
