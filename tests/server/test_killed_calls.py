"""Whoever is killed in the middle of a call has done all of it, or nothing (I2).

A database holds what was committed and nothing else, so a kill matters only by the commits that it
comes before. What a real Hive was asked is asked here, in its order: each method that was recorded
is killed in the states that its recording went through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from changemanager.manifest import LEASE_MS
from hms_bridge.errors import HmsBridgeError
from hms_bridge.server.serve import offered_names
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct
from tests.support.faults import CrashError
from tests.support.filled_requests import DEPTH_MAX, filled
from tests.support.golden_wire import RecordedCall, recorded_calls, request_of
from tests.support.killed_server import COMMIT, KilledServer, State, hives
from tests.support.unrecorded_calls import CASES, DATABASE, prepare

pytestmark = pytest.mark.golden

_FILES = "what is removed is archived first, each step of which is a row of HMSB_ tables"
GOES_ON = {
    "drop_database": _FILES,
    "drop_partition": _FILES,
    "drop_partitions_req": _FILES,
    "drop_table": _FILES,
}
"""Methods with more than one transaction, and why: all that Hive's tables say is in the first."""
NOTES_FIRST = frozenset({
    "alter_table_with_environment_context", "exchange_partition", "exchange_partitions",
})  # fmt: skip
"""They move a directory, which is noted in a transaction of its own: Hive's tables say
nothing until the second."""

FILE_BY_FILE = {
    "cm_recycle": "it moves files one by one, each of them wholly; asked again, the rest"
}
"""What is done in parts, and why; whoever asks again ends it."""
ONLY_READING = frozenset({
    "aliveSince", "fetch_partition_names_req", "find_columns_with_stats", "find_package",
    "flushCache", "getMetaConf", "isPartitionMarkedForEvent", "list_privileges", "list_roles",
    "partition_name_has_valid_characters", "partition_name_to_spec", "partition_name_to_vals",
    "reinitialize", "setMetaConf", "set_ugi", "show_compact", "show_locks", "shutdown",
    "translate_table_dryrun", "validate_resource_plan",
})  # fmt: skip
"""Besides those whose names begin with `get`: what they are asked changes no row."""
MORE_TEXTS = frozenset({"compact"})
"""Recorded as well, but without some of the texts whose bounds are tried."""
WRITES_TOO = frozenset({"get_lock_materialization_rebuild"})
"""Its name begins so all the same."""


def _only_reading() -> set[str]:
    reads = {name for name in offered_names() if name.startswith("get")} - WRITES_TOO
    return reads | ONLY_READING


@pytest.fixture
def server(fast_folder: Path) -> Iterator[KilledServer]:
    made = KilledServer(fast_folder)
    yield made
    made.close()


STEPS_TRIED = 2
COMMITS_TRIED = 2


def answered_calls() -> Iterator[RecordedCall]:
    for call in recorded_calls():
        if call.method in offered_names() and call.request:
            yield call


def test_a_call_that_is_killed_is_done_as_a_whole_or_not_at_all(server: KilledServer) -> None:
    killed: set[str] = set()
    goes_on: set[str] = set()
    for call in answered_calls():
        before = server.rows()
        try:
            server.ask(call, dies_at=1)
        except CrashError:
            killed.add(call.method)
            server.restart()
            assert server.rows() == before, f"{call}: something is left of it"
            server.save()
            if server.ask(call) > 1:
                goes_on.add(call.method)
                whole = server.rows()
                server.restore()
                with pytest.raises(CrashError):
                    server.ask(call, dies_at=2)
                server.restart()
                left = before if call.method in NOTES_FIRST else whole
                assert hives(server.rows()) == hives(left), f"{call}: it was answered by halves"
                if call.method in NOTES_FIRST:  # what is dropped later must not be on its way
                    server.go_on()
                    server.pass_time(LEASE_MS + 1)
    assert len(killed) > 60
    assert goes_on == GOES_ON.keys() | NOTES_FIRST


def test_a_call_that_is_killed_at_any_step_is_done_as_a_whole_or_not_at_all(
    fast_folder: Path,
) -> None:
    """Of each method that changes something, in the first state of its recording in which it did;
    those that were not recorded with a change have a case of their own."""
    tried: set[str] = set()
    server = KilledServer(fast_folder)
    for call in answered_calls():
        try:
            server.ask(call, dies_at=None if call.method in tried else 1)
        except CrashError:
            server.restart()
            _is_killed_at_steps(server, call.method, request_of(call))
            tried.add(call.method)
    assert tried & CASES.keys() == MORE_TEXTS
    prepare(server.call)
    for name, case in CASES.items():
        _is_killed_at_steps(server, name, method(name).arguments(**case(server.call)))
    server.close()
    assert tried | CASES.keys() == offered_names() - _only_reading()


def test_what_only_reads_changes_no_row(server: KilledServer) -> None:
    prepare(server.call)
    before = server.rows()
    for name in sorted(_only_reading()):
        for depth in range(1, DEPTH_MAX):
            for text in ("x", DATABASE):
                with suppress(HmsBridgeError):
                    server.call(name, **vars(filled(method(name).arguments, depth, text, 1)))
        assert server.rows() == before, name


def _is_killed_at_steps(server: KilledServer, name: str, request: Struct) -> None:
    """At last it is done."""
    server.save()
    server.pass_time()
    before = server.state()
    labels = server.steps(name, request)
    server.go_on()
    after = server.state()
    assert after.rows != before.rows, f"{name} changes nothing"
    server.restore()
    for step in _some(labels):
        with pytest.raises(CrashError):
            server.steps(name, request, dies_at=step)
        server.restart()
        left = server.state()
        if left == before:
            continue
        assert left.hives in (before.hives, after.hives), f"{name}: half of it is left at {step}"
        if name in FILE_BY_FILE:
            server.steps(name, request)
        server.go_on()
        ended = server.state()
        assert ended.file_work == [], f"{name}: it comes to no end after {step}"
        _is_whole(ended, before, after, name)
        server.restore()
    server.steps(name, request)
    server.go_on()


def _is_whole(ended: State, before: State, after: State, name: str) -> None:
    """What is not committed may lie in files that nobody sees; nothing else is more or less."""
    if ended.hives == after.hives:
        assert ended.files == after.files or ended.hives == before.hives, name
    else:
        assert ended.hives == before.hives, name
        assert before.files.items() <= ended.files.items(), name


def _some(labels: Sequence[str]) -> list[int]:
    """Which steps are tried, from 1: the first and last, those around the first commits, and some
    between."""
    count = len(labels)
    ends = [place for place, label in enumerate(labels, 1) if label == COMMIT]
    around = {place + more for place in ends[:COMMITS_TRIED] for more in (0, 1)}
    between = {1 + place * (count - 1) // STEPS_TRIED for place in range(STEPS_TRIED + 1)}
    return sorted(place for place in around | between if place <= count)
