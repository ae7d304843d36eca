"""Whose lease ends at once: that of a process of this host which is not there any more."""

from __future__ import annotations

import socket
import subprocess
import sys

from changemanager.lease import WorkLease
from cleaner.owners import is_dead, new_owner
from tests.support.archive_manifest import InMemoryManifest
from tests.support.simulated_clock import SimulatedClock


def owner_of(process: int, host: str | None = None) -> str:
    return f"{'0' * 32}:{process}:{host or socket.gethostname()}"[:64]


def test_a_process_that_is_gone_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert not is_dead(owner_of(other.pid))
        other.kill()
    assert is_dead(owner_of(other.pid))
    assert not is_dead(owner_of(other.pid, "another-host"))


def test_nobody_else_is_known_to_be_dead() -> None:
    assert len(new_owner()) <= 64
    for owner in (new_owner(), "", "one", "one:two:three", owner_of(999_999_999, "x")):
        assert not is_dead(owner)


def test_the_lease_of_a_dead_process_is_free_at_once() -> None:
    leases, clock = InMemoryManifest(), SimulatedClock()
    leases.take_leases(["x"], "dead", clock.now_ms())
    leases.take_leases(["y"], "alive", clock.now_ms())
    work = WorkLease(leases, clock, lambda: "me", lambda owner: owner == "dead")
    with work.over("x") as is_held:
        assert is_held
        assert leases.lease_owner("x") == "me"
    with work.over("y") as is_held:
        assert not is_held
    assert leases.lease_owner("y") == "alive"
