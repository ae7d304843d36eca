"""What protects a snapshot's files, from when till when."""

from __future__ import annotations

import pytest

from hms_bridge.model.lock import LockType
from tests.conformance import objects
from tests.plans.driver import Driver, deltas


@pytest.fixture(autouse=True)
def tables(driver: Driver) -> None:
    for name in ("t", "u"):
        driver.create_table(name)
        driver.insert(name, (1, "a"))


def test_scans_of_a_statement_see_one_snapshot_and_share_a_transaction(driver: Driver) -> None:
    first = driver.plan(description="line one\nline two " + "x" * 200)
    driver.insert("t", (2, "b"))
    driver.insert("u", (2, "b"))
    again, other = driver.plan(), driver.plan("u")
    assert deltas(first) == deltas(again) == deltas(other) == ["delta_0000001_0000001_0000"]
    assert len(deltas(driver.plan(statement="later"))) == 2
    agents = [txn.agent or "" for txn in driver.readers()]
    assert len(agents) == 2
    assert agents[0].startswith("spark app: line one line two x")
    assert {lock.scope.table for lock in driver.metastore.show_locks()} == {"t", "u"}
    ids = [first["lease"], again["lease"], other["lease"]]
    driver.ask("read/end", leases=ids[:2])
    assert len(driver.readers()) == 2
    driver.ask("read/end", leases=[*ids, "unknown"])
    assert len(driver.readers()) == 1


def test_what_only_explains_holds_nothing_until_it_is_used(driver: Driver) -> None:
    lease = driver.plan(execution=None)["lease"]
    assert driver.readers() == []
    assert driver.ask("read/keep", leases=[lease]) == {"lost": [lease]}
    driver.insert("t", (2, "b"))
    assert driver.ask("read/use", lease=lease) == {"lease": lease}
    assert len(driver.readers()) == 1
    assert driver.ask("read/keep", leases=[lease]) == {"lost": []}
    assert len(deltas(driver.plan())) == 1  # of the same snapshot


def test_a_snapshot_that_was_compacted_after_its_end_is_gone(driver: Driver) -> None:
    """I3: and one that a lease protects is not."""
    driver.insert("t", (2, "b"))
    ended, held = driver.plan(), driver.plan(statement="held")
    driver.ask("read/end", leases=[ended["lease"]])
    driver.compact()
    driver.clean()
    assert set(deltas(held)) <= driver.names()
    assert driver.ask("read/use", lease=held["lease"]) == {"lease": held["lease"]}
    assert driver.ask("read/use", lease=ended["lease"]) == "SnapshotGone"
    assert driver.plan(statement="s") == "SnapshotGone"
    assert driver.ask("read/use", lease="unknown") == "SnapshotGone"
    assert len(driver.readers()) == 1


def test_a_second_table_that_was_compacted_meanwhile_is_gone(driver: Driver) -> None:
    driver.insert("u", (2, "b"))
    driver.plan()
    driver.compact("u")
    assert driver.plan("u") == "SnapshotGone"


def test_leases_of_which_nothing_is_heard_end(driver: Driver) -> None:
    kept, silent = driver.plan(statement="kept"), driver.plan(statement="silent")
    ids = [kept["lease"], silent["lease"]]
    driver.clock.advance_ms(100_000)
    driver.ask("read/keep", leases=ids[:1])
    driver.clock.advance_ms(100_000)
    driver.end_silent()
    assert driver.ask("read/keep", leases=ids) == {"lost": ids[1:]}
    assert len(driver.readers()) == 1
    assert driver.ask("read/use", lease=ids[1]) == {"lease": ids[1]}


def test_a_transaction_that_somebody_aborted_is_lost_and_replaced(driver: Driver) -> None:
    lease = driver.plan()["lease"]
    (reader,) = driver.readers()
    driver.abort(reader.id)
    assert driver.ask("read/use", lease=lease) == {"lease": lease}
    assert [txn.id for txn in driver.readers()] not in ([], [reader.id])


def test_a_changed_table_is_planned_no_more(driver: Driver) -> None:
    lease = driver.plan()["lease"]
    driver.ask("read/end", leases=[lease])
    assert driver.plan(definition="another") == "TableChanged"
    driver.drop_as_hive("t")
    assert driver.ask("read/use", lease=lease) == "NoSuchTable"
    driver.create_table("t")
    assert driver.ask("read/use", lease=lease) == "TableChanged"


def test_a_plan_that_fails_leaves_no_transaction(driver: Driver) -> None:
    writer = driver.open()
    exclusive = objects.component("db", "t", LockType.EXCLUSIVE)
    driver.metastore.lock(objects.request(exclusive, txn=writer))
    assert driver.plan() == "Refused"
    driver.plan("u")
    assert driver.plan() == "Refused"  # and none that waits behind the other is left
    driver.abort(writer)
    (driver.path() / "delta_0000009_0000009_0000").mkdir()
    assert driver.plan(statement="older database") == "Refused"
    assert driver.readers() == []
