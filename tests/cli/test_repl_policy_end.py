"""The end of a policy, and what its source has kept for it until then."""

from __future__ import annotations

from pathlib import Path

from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected_locally
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, LeaseRules, held_lease
from tests.support.policy_program import Replication


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
    replication.ok("policy", "import", str(other), "--replace")
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
    kept_at = f"sqlite:///{replication.program.folder}/dr/metastore.db"
    wanted = LeaseRequest(
        kind=LeaseKind.RUN,
        database_name="sales",
        user="other",
        host="h",
        rules=LeaseRules(),
        on_waiting=lambda _: None,
    )
    with (
        connected_locally(kept_at, Settings()) as store,
        held_lease(store.metastore, store.clock, wanted),
    ):
        refused = replication.run("policy", "remove", "sales")
    assert refused.exit_code == 1
    assert "another repl run of policy sales is at work" in refused.err
    assert replication.ok("policy", "list", "--format", "jsonl").json_lines
