"""The state diagrams of the lifecycle pages have the states that the code has."""

from __future__ import annotations

import re
from enum import Enum

import pytest

from changemanager.manifest import EntryState, IntentState
from hms_bridge.model.compaction import CompactionState
from hms_bridge.model.lock import LockState
from hms_bridge.model.replication import CycleOutcome
from hms_bridge.model.txn import TxnState
from hms_bridge.repl.format.directories import DumpState
from tests.support.documents import blocks
from tests.support.golden import CHECKOUT

_ARROW = re.compile(r"^ *(\S+) --> ([^\s:]+)", re.MULTILINE)
_ALIAS = re.compile(r'^ *state "([^"]+)" as (\S+)$', re.MULTILINE)


def _diagrams(page: str) -> list[set[str]]:
    """The names of the states of each diagram of a page, as people read them."""
    found = []
    for block in blocks(CHECKOUT / "docs" / "lifecycle" / page):
        if block.info == "mermaid":
            names = {alias: name for name, alias in _ALIAS.findall(block.text)}
            ends = {name for arrow in _ARROW.findall(block.text) for name in arrow} - {"[*]"}
            found.append({names.get(name, name) for name in ends})
    return found


def _words(states: type[Enum]) -> set[str]:
    return {state.name.lower() for state in states}


@pytest.mark.parametrize(
    ("page", "place", "known", "more"),
    [
        ("transaction.md", 0, _words(TxnState), {"forgotten"}),
        # An answer with ABORT is not given; NOT_ACQUIRED is the refusal of a request.
        (
            "transaction.md", 1, _words(LockState) - {"abort", "not_acquired"}, {"refused"},
        ),
        # Nothing becomes unknown: others wrote it.
        ("compaction.md", 0, {state.word for state in CompactionState} - {"unknown"}, set()),
        ("archive.md", 0, _words(IntentState), set()),
        ("archive.md", 1, _words(EntryState), set()),
        (
            "replication.md",
            0,
            {state.value for state in DumpState} - {"unfinished"},
            {"being written (unfinished)", "being loaded"},
        ),
        ("replication.md", 2, {state.value for state in CycleOutcome}, set()),
    ],
)  # fmt: skip
def test_a_diagram_has_the_states_of_the_code(
    page: str, place: int, known: set[str], more: set[str]
) -> None:
    assert _diagrams(page)[place] == known | more
