"""Who is alone with a policy is named by what was typed, whatever the lease is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hms_bridge.cli import policy_pins
from hms_bridge.errors import ReplError
from hms_bridge.repl.handover.sides import OpenSides
from hms_bridge.repl.repair.repl_repair import ReplRepair
from tests.support.policy_program import STORE, Replication


def locks(replication: Replication) -> dict[str, str]:
    """What stands in SHOW LOCKS of the replica's metastore, by the lease's name."""
    shown = replication.program.ok("locks", "--format", "jsonl", "--metastore", STORE).json_lines
    return {row["table"]: row["agent_info"].partition(",")[0] for row in shown}


@pytest.mark.parametrize(
    ("verb", "held_while", "name"),
    [
        (("policy", "remove", "sales"), policy_pins, "source_side"),
        (("repair", "sales"), ReplRepair, "run"),
        (("promote", "sales"), OpenSides, "same_policy"),
        (("failback", "sales"), OpenSides, "same_policy"),
    ],
    ids=["policy remove", "repair", "promote", "failback"],
)
def test_who_holds_a_policy_is_told(
    replication: Replication,
    monkeypatch: pytest.MonkeyPatch,
    verb: tuple[str, ...],
    held_while: Any,
    name: str,
) -> None:
    """It was 'repl run' whoever held it, and people looked for a cycle."""
    replication.end_writers()
    replication.ok("run", "sales")
    seen: list[dict[str, str]] = []

    def looked(*_: object) -> None:
        seen.append(locks(replication))
        raise ReplError("stopped here")

    with monkeypatch.context() as patched:
        patched.setattr(held_while, name, looked)
        replication.run(*verb)
    typed = " ".join(word for word in verb if word != "sales")
    assert seen[0] == {"repl-run": f"hms-bridge repl {typed}"}


def test_a_repair_without_a_policy_holds_those_it_keeps_off(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    replication.end_writers()
    replication.ok("run", "sales")
    seen: list[dict[str, str]] = []
    ran: Callable[..., Any] = ReplRepair.run

    def looked(*given: Any) -> Any:
        seen.append(locks(replication))
        return ran(*given)

    monkeypatch.setattr(ReplRepair, "run", looked)
    replication.run("repair", "sales", "--source", replication.program.url)
    assert set(seen[0].values()) == {"hms-bridge repl repair"}
    assert set(seen[0]) == {"repl-run", "repl-repair"}
