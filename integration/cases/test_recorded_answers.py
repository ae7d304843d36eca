"""What real Hives answered when tests/golden/wire/more-*.jsonl.gz was made, they answer again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from integration.recorded.odd_calls import FLAVOURS, outcomes
from integration.recorded.record import RECORDINGS, Recording, recorded
from integration.referees.hive_schema import HiveSchemas
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from tests.support.golden_fields import differences
from tests.support.golden_wire import RecordedCall, calls_of, lines, request_of
from tests.support.odd_calls import recorded_lines
from tests.support.recorded_replay import Outcome, recorded_answer
from tests.support.wire_answers import Thrown

TIMES = {"aliveSince"}
"""What they answer is a time."""
_OBJECT = re.compile(r"@[0-9a-f]+")
"""Which Java object a message speaks of."""

Row = Mapping[str, Any]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_hive_answers_as_it_was_recorded(
    recording: Recording, workplace: Workplace, hive_schemas: HiveSchemas, postgresql: PostgreSql
) -> None:
    """``postgresql``: under the schemas."""
    rows = list(lines(recording.name)), recorded(recording, workplace, hive_schemas)
    before, now = (list(calls_of(recording.name, found)) for found in rows)
    assert [str(call) for call in now] == [str(call) for call in before]
    different = [
        (str(call), found)
        for call, again, *events in zip(before, now, *rows, strict=True)
        for found in _different(call, again, *events)
    ]
    assert different == []


@pytest.mark.parametrize("version", FLAVOURS)
def test_hive_refuses_what_it_refused(
    version: str, workplace: Workplace, hive_schemas: HiveSchemas, postgresql: PostgreSql
) -> None:
    """Of tests/golden/wire/odd-calls.tsv.gz; ``postgresql``: under the schemas."""
    header, *rows = (line.split("\t") for line in recorded_lines())
    column = header.index(version)
    calls = [": ".join(row[:2]) for row in rows]
    again = outcomes(workplace, hive_schemas, FLAVOURS[version]())
    before = [(call, row[column]) for call, row in zip(calls, rows, strict=True)]
    assert list(zip(calls, again, strict=True)) == before


def _different(call: RecordedCall, again: RecordedCall, row: Row, row_again: Row) -> Iterator[Any]:
    """But for times and ids."""
    yield from differences(request_of(call), request_of(again))
    events = (tuple(found.get("events", ())) for found in (row, row_again))
    outcome = Outcome(call, recorded_answer(call), recorded_answer(again), *events)
    thrown = [_without_objects(answer) for answer in (outcome.theirs, outcome.ours)]
    if thrown[0] != thrown[1]:
        yield thrown
    if call.method not in TIMES:
        yield from outcome.differences()


def _without_objects(answer: Any) -> Thrown | None:
    if not isinstance(answer, Thrown):
        return None
    return Thrown(answer.cls, _OBJECT.sub("", answer.message))
