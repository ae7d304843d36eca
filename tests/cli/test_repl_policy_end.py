"""The end of a policy, and what its source has kept for it until then."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from hms_bridge.cli import policy_pins as policy_pins_of_program
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected_locally
from hms_bridge.model.lock import LockFilter
from hms_bridge.model.target import Scope
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, LeaseRules, held_lease
from tests.support.policy_program import STORE, Replication
from tests.support.program import command, process_environment


def policy_pins(replication: Replication) -> set[str]:
    rows = replication.program.ok("cm", "pins", "--format", "jsonl").json_lines
    return {row["holder"] for row in rows if row["kind"] == "policy"}


def test_a_policy_that_is_removed_keeps_nothing_in_the_archive(replication: Replication) -> None:
    """What the source replaces would be kept for a dump that nobody makes."""
    replication.ok("run", "sales")
    assert policy_pins(replication) == {replication.busy.policy_pin}
    replication.ok("policy", "remove", "sales", "--keep-pins")
    assert policy_pins(replication) == {replication.busy.policy_pin}
    assert replication.add().exit_code == 0
    told = replication.ok("policy", "remove", "sales").err
    assert "holds nothing more for its next dump" in told
    assert policy_pins(replication) == set()
    assert replication.add().exit_code == 0
    assert "held nothing" in replication.ok("policy", "remove", "sales").err


def test_a_policy_of_a_lost_source_can_be_removed(replication: Replication, tmp_path: Path) -> None:
    text = replication.ok("policy", "export").out
    other = tmp_path / "lost.toml"
    other.write_text(text.replace(replication.program.url, "sqlite:////nowhere/lost.db"))
    replication.ok("policy", "import", str(other), "--replace", "--source-later")
    told = replication.ok("policy", "remove", "sales").err
    assert "cannot be reached" in told
    assert f"'cm release {replication.busy.policy_pin}'" in told
    assert replication.ok("policy", "list", "--format", "jsonl").json_lines == []


def test_a_policy_with_another_root_names_what_the_old_one_holds(
    replication: Replication, tmp_path: Path
) -> None:
    moved = replication.add("--root", str(tmp_path / "elsewhere"), "--replace")
    assert f"'cm release {replication.busy.policy_pin}'" in moved.err
    again = replication.add("--root", str(tmp_path / "elsewhere"), "--replace")
    assert "cm release" not in again.err


def test_a_policy_is_not_removed_under_a_cycle(replication: Replication) -> None:
    """It would pin anew what was let go."""
    with (
        connected_locally(_kept_at(replication), Settings()) as store,
        held_lease(store.metastore, store.clock, _lease_of_another(beat_seconds=0.2)),
    ):
        refused = replication.run("policy", "remove", "sales")
    assert refused.exit_code == 1
    assert "another repl run of policy sales is at work" in refused.err
    assert replication.ok("policy", "list", "--format", "jsonl").json_lines


@pytest.mark.process
def test_a_policy_that_is_changed_while_its_removal_waits_stays_with_its_pins(
    replication: Replication, tmp_path: Path
) -> None:
    """What was typed is of another policy; and the archive would keep nothing for the one that
    stays."""
    replication.ok("run", "sales")
    program = replication.program
    with (
        connected_locally(_kept_at(replication), Settings()) as store,
        held_lease(store.metastore, store.clock, _lease_of_another()),
    ):
        removal = subprocess.Popen(
            [*command(), "repl", "policy", "remove", "sales", "--metastore", STORE],
            cwd=program.folder,
            env=process_environment(program.environment),
            stderr=subprocess.PIPE,
            text=True,
        )
        wanted = LockFilter(scope=Scope("sales", LeaseKind.RUN.value))
        deadline = time.monotonic() + 60
        while len(store.metastore.show_locks(wanted)) < 2:
            assert removal.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        moved = ("policy", "add", "sales", "--replace", "--root", str(tmp_path / "elsewhere"))
        replication.ok(*moved)
    _, told = removal.communicate(timeout=60)
    assert (removal.returncode, "was changed by somebody else meanwhile" in told) == (1, True), told
    (kept,) = replication.ok("policy", "list", "--format", "jsonl").json_lines
    assert kept["root"] == str(tmp_path / "elsewhere")
    assert policy_pins(replication) == {replication.busy.policy_pin}


def test_a_removal_that_was_killed_is_gone_on_with(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looked for the pins of a policy that was forgotten: they stayed for thirty days."""
    replication.ok("run", "sales")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(policy_pins_of_program, "source_side", interrupted)
        stopped = replication.run("policy", "remove", "sales")
    assert stopped.exit_code == 1
    assert "policy sales is being removed" in stopped.err
    assert policy_pins(replication) == {replication.busy.policy_pin}
    for words in (("policy", "list"), ("status", "sales")):
        assert "'repl policy remove sales' again" in replication.ok(*words).err
    before = replication.ok("policy", "export").out
    for words in (
        ("policy", "resume", "sales"),
        ("policy", "add", "sales", "--replace"),
        ("policy", "add", "sales", "--source", replication.program.url),
    ):
        refused = replication.run(*words)
        assert (refused.exit_code, "is being removed" in refused.err) == (1, True), words
    assert replication.run("run", "sales").exit_code == 1
    assert replication.ok("policy", "export").out == before
    assert policy_pins(replication) == {replication.busy.policy_pin}
    told = replication.ok("policy", "remove", "sales").err
    assert "holds nothing more for its next dump" in told
    assert replication.ok("policy", "list", "--format", "jsonl").json_lines == []
    assert policy_pins(replication) == set()


@pytest.mark.process
def test_a_policy_whose_cycle_was_killed_here_is_removed_soon(replication: Replication) -> None:
    """Its lease would last for five minutes more, and who holds it was all that was said."""
    program = replication.program
    process = subprocess.Popen(
        [*command(), "repl", "run", "sales", "--bandwidth", "1KB", "--metastore", STORE],
        cwd=program.folder,
        env=process_environment(program.environment),
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while "repl-load" not in (held := _locked(replication)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.kill()
    process.wait()
    for verb in ("status", "lag"):
        answer = replication.run(verb, "sales")
        text = answer.err if verb == "status" else answer.out
        assert "a load into sales was killed (" in text
        assert f"process {process.pid})" in text
        assert "that process is gone" in text
        assert "nothing was loaded yet" not in text
    assert f"process {process.pid}" in held["repl-run"]
    told = replication.ok("policy", "remove", "sales", "--set", "hive.txn.timeout=6s").err
    assert "another repl run of policy sales was killed" in told
    assert f"process {process.pid}) holds EXCLUSIVE lock" in told
    assert "that process is gone. This one goes on in" in told
    assert "policy sales is forgotten" in told


def _kept_at(replication: Replication) -> str:
    return f"sqlite:///{replication.program.folder}/dr/metastore.db"


def _lease_of_another(beat_seconds: float = 10) -> LeaseRequest:
    """Who waits is refused at the first beat that it hears."""
    return LeaseRequest(
        kind=LeaseKind.RUN,
        database_name="sales",
        user="other",
        host="h",
        rules=LeaseRules(heartbeat_seconds=beat_seconds),
        on_waiting=lambda _: None,
    )


def _locked(replication: Replication) -> dict[str, str]:
    shown = replication.program.ok("locks", "--format", "jsonl", "--metastore", STORE).out
    return {row["table"]: row["agent_info"] for row in map(json.loads, shown.splitlines())}
