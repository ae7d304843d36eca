"""Partition filters select what a real Hive 4.0.1 selected."""

from __future__ import annotations

import pytest

from hms_bridge.catalog.partition_filter import parse_filter
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column
from tests.support.golden_wire import (
    RecordedCall,
    recorded_calls,
    request_of,
    response_of,
)

pytestmark = pytest.mark.golden

COLUMNS = (Column(name="ds", type="string"), Column(name="hr", type="int"))
ALSO_TAKEN = {
    "ds in ('2024-01-01','2024-01-02')": 3,
    "not ds = '2024-01-03'": 8,
    "ds is null": 1,
}
"""What Hive answers with an error, and we with partitions: a client that asks gets them."""


def recorded() -> tuple[list[tuple[str, ...]], dict[str, RecordedCall]]:
    partitions, calls = [], {}
    for call in recorded_calls():
        if call.method not in ("get_partitions", "get_partitions_by_filter") or not call.request:
            continue
        asked = request_of(call)
        if (asked.db_name, asked.tbl_name) != ("gdb", "p1"):
            continue
        if call.method == "get_partitions_by_filter":
            calls[asked.filter] = call
        elif asked.max_parts == -1:
            partitions = partitions or answered(call)
    return partitions, calls


def answered(call: RecordedCall) -> list[tuple[str, ...]]:
    answer = response_of(call)
    assert answer is not None
    return [tuple(one.values) for one in answer.success]


PARTITIONS, CALLS = recorded()


def selected(text: str) -> set[tuple[str, ...]]:
    tree = parse_filter(text)
    if tree is None:
        return set(PARTITIONS)
    chosen = bind_filter(tree, COLUMNS)
    found = {values for values in PARTITIONS if chosen.selects(values)}
    for place, texts in chosen.required_values.items():
        assert {values[place] for values in found} <= texts
    return found


@pytest.mark.parametrize("text", list(CALLS))
def test_selects_what_hive_selected(text: str) -> None:
    call = CALLS[text]
    if text in ALSO_TAKEN:
        assert call.error is not None
        assert len(selected(text)) == ALSO_TAKEN[text]
    elif call.error is not None:
        with pytest.raises(MetaError) as caught:
            selected(text)
        if call.error["message"].startswith("Error parsing"):
            assert str(caught.value).startswith("Error parsing partition filter:")
        else:
            assert str(caught.value) == call.error["message"]
    else:
        assert selected(text) == set(answered(call))


def test_there_is_something_to_compare() -> None:
    assert len(PARTITIONS) == 11
    assert len(CALLS) >= 18
