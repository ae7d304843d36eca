"""What a supervisor does with processes that cannot be made, or are no more."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NoReturn

import pytest

from hms_bridge.server import supervisor as module
from hms_bridge.server.supervisor import Life, Member, Supervisor


def _nothing(*_: object) -> None:
    pass


def _enter(_: object) -> NoReturn:
    raise SystemExit(0)


def _run(_: Life) -> None:
    pass


def _supervisor() -> Supervisor:
    return Supervisor([Member(name="one", stage=0, run=_run, on_end=_nothing)], _enter)


def _descriptors() -> list[str]:
    return sorted(link.name for link in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are seen on Linux only")
def test_a_night_without_room_for_a_process_takes_no_descriptors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    supervisor = _supervisor()
    (kept,) = supervisor._kept
    with monkeypatch.context() as patched:
        patched.setattr(os, "fork", refuse)
        before = _descriptors()
        for _ in range(3):
            supervisor._start_again(kept, 0.0)
        assert _descriptors() == before
        assert kept.process is None
        assert kept.due_at > 0
    supervisor._start_again(kept, 0.0)
    assert kept.ended() == "with code 0"


def test_no_signal_goes_to_a_number_that_may_be_another_ones_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supervisor = _supervisor()
    (kept,) = supervisor._kept
    supervisor._start(kept)
    assert kept.process is not None
    kept.process.join()
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda number, _: sent.append(number))
    module._signal(kept, signal.SIGKILL)
    assert sent == []
