"""The initiator through the program, on tables that a real Hive wrote."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from hms_bridge.cli.initiator import make_initiator
from hms_bridge.compaction.initiator import Initiator
from hms_bridge.connect import LocalStore
from hms_bridge.model.lock import DataOperation, LockType
from tests.conformance import objects
from tests.support.busy_metastore import copy_golden, opened, work
from tests.support.program import Program, serving

pytestmark = pytest.mark.golden

TABLES = {
    "i10": "00-before-i10",
    "i11": "01-before-i11",
    "over": "02-before-i_over",
    "under": "03-before-i_under",
    "off": "04-before-i_noauto",
}


def touch(store: LocalStore, name: str, partition: str | None = None) -> None:
    """A committed write without rows: the metastore knows that something happened."""
    metastore = store.metastore
    txn_id = objects.open_txn(metastore)
    insert = DataOperation.INSERT
    component = objects.component("g", name, LockType.SHARED_WRITE, insert, partition)
    metastore.lock(objects.request(component, txn=txn_id))
    objects.write_id(metastore, txn_id, "g", name)
    objects.commit(metastore, txn_id)


@pytest.fixture
def hives(program: Program) -> Program:
    for name, stage in TABLES.items():
        directory = copy_golden(f"g18_initiator/{stage}", program.warehouse / "g.db" / name)
        program.ok("table", "adopt", str(directory), "--name", f"g.{name}")
    with opened(program) as store:
        table = store.metastore.get_table("g", "off")
        parameters = {**table.parameters, "no_auto_compaction": "true"}
        store.metastore.alter_table("g", "off", replace(table, parameters=parameters))
        for name in TABLES:
            touch(store, name)
    return program


def planned(program: Program, *words: str) -> dict[str, Any]:
    rows = program.ok("initiator", "plan", "--format", "json", *words).json
    return {row["target"]: row for row in rows}


def queue(program: Program) -> dict[str, tuple[str, str]]:
    rows = program.ok("compactions", "--format", "json").json
    return {row["tabname"]: (row["type"], row["state"]) for row in rows}


def test_the_plan_is_that_of_a_real_hive(hives: Program) -> None:
    plan = planned(hives)
    assert {target: row["decision"] for target, row in plan.items()} == {
        "g.i10": "nothing",
        "g.i11": "major compaction",
        "g.over": "major compaction",
        "g.under": "nothing",
        "g.off": "left alone",
    }
    assert plan["g.i11"]["deltas"] == 11
    assert plan["g.i11"]["reason"] == "11 deltas, more than 10, no base"
    assert "more than 10%" in plan["g.over"]["reason"]
    assert plan["g.off"]["reason"] == "no_auto_compaction is true"
    assert planned(hives, "--set", "hive.compactor.delta.num.threshold=9")["g.i10"]["type"] == (
        "major"
    )
    shown = hives.ok("initiator", "plan")
    assert "11 deltas, more than 10, no base" in shown.out
    assert "would queue 2 compactions" in shown.err


def test_a_run_queues_once_and_a_worker_takes_it(hives: Program) -> None:
    hives.ok("initiator", "run", "--dry-run")
    assert queue(hives) == {}
    answer = hives.ok("initiator", "run", "--format", "json")
    assert {row["target"]: row["type"] for row in answer.json} == {
        "g.i11": "major", "g.over": "major",
    }  # fmt: skip
    assert "2 compactions queued" in answer.err
    assert queue(hives) == {"i11": ("MAJOR", "initiated"), "over": ("MAJOR", "initiated")}
    assert planned(hives)["g.i11"]["reason"].endswith("is initiated already")
    assert hives.ok("initiator", "run", "--format", "json").json == []
    assert work(hives) == ["compacted", "compacted"]
    assert "waits for the cleaner" in planned(hives)["g.i11"]["reason"]
    assert hives.ok("initiator", "run", "--format", "json").json == []


class CountingResolver:
    """Counts the directories that are looked at."""

    def __init__(self, store: LocalStore) -> None:
        self._resolve = store.resolver
        self.seen: list[str] = []

    def __call__(self, text: str) -> Any:
        self.seen.append(text.rpartition("/")[2])
        return self._resolve(text)


def test_what_did_not_change_is_not_looked_at_each_time(hives: Program) -> None:
    with opened(hives) as store:
        resolver = CountingResolver(store)
        initiator = Initiator(
            store.metastore, resolver, store.settings.compactor, store.clock,
            initiator_id="test", version="test",
        )  # fmt: skip
        initiator.run_once()
        assert sorted(resolver.seen) == ["i10", "i11", "over", "under"]
        resolver.seen.clear()
        initiator.run_once()
        assert resolver.seen == []
        touch(store, "under")
        initiator.run_once()
        assert resolver.seen == ["under"]
        resolver.seen.clear()
        for _ in range(10):
            initiator.run_once()
        assert sorted(resolver.seen) == ["i10", "under"]


def test_failures_block_and_are_told_once(hives: Program) -> None:
    with opened(hives) as store:
        metastore = store.metastore
        for number in (1, 2):
            make_initiator(store).run_once()
            claimed = metastore.find_next_compaction("w", "v")
            while claimed is not None:
                metastore.mark_failed(replace(claimed, error_message=f"disk full {number}"))
                claimed = metastore.find_next_compaction("w", "v")
        for _ in range(3):
            make_initiator(store).run_once()
        entries = [one for one in metastore.show_compactions() if one.target.table == "i11"]
        states = sorted(one.state.word for one in entries)
        assert states == ["did not initiate", "failed", "failed"]
    row = planned(hives)["g.i11"]
    assert row["decision"] == "blocked"
    assert "disk full 2" in row["reason"]


def test_one_that_cannot_be_looked_at_does_not_stop_the_others(hives: Program) -> None:
    with opened(hives) as store:
        directory = hives.warehouse / "g.db" / "i10" / "delta_0000001_0000001_0000"
        (directory / "_metadata_acid").write_text("no JSON")
        outcomes = make_initiator(store).run_once()
    assert {str(one.decision.target) for one in outcomes if one.id} == {"g.i11", "g.over"}
    assert planned(hives)["g.i10"]["decision"] == "blocked"
    assert queue(hives)["i10"][1] == "did not initiate"


def test_partitions_are_queued_one_by_one(program: Program) -> None:
    directory = copy_golden("g07_part/02-after-minor", program.warehouse / "g.db" / "events")
    program.ok("table", "adopt", str(directory), "--name", "g.events", "--partition-type", "b=int")
    with opened(program) as store:
        names = store.metastore.get_partition_names("g", "events")
        for name in names:
            touch(store, "events", name)
    low = ("--set", "hive.compactor.delta.num.threshold=0")
    plan = planned(program, *low)
    assert set(plan) == {f"g.events/{name}" for name in names}
    wanted = [target for target, row in plan.items() if row["type"]]
    assert wanted
    rows = program.ok("initiator", "run", *low, "--format", "json").json
    assert [row["target"] for row in rows] == wanted


@pytest.mark.process
@pytest.mark.parametrize(
    "words", [("--initiator",), ("--set", "metastore.compactor.initiator.on=true")]
)
def test_a_server_queues_by_itself(hives: Program, words: tuple[str, ...]) -> None:
    with serving(hives, "--port", "0", *words) as server:
        server.wait_until_ready()
        deadline = time.monotonic() + 60
        while set(queue(hives)) != {"i11", "over"}:
            assert time.monotonic() < deadline, server.lines
            time.sleep(0.1)
        assert server.stop() == 0
