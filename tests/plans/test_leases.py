"""What protects a snapshot's files, from when till when."""

import pytest

from hms_bridge.model.lock import LockType
from tests.conformance import objects
from tests.plans.conftest import Driver, deltas


@pytest.fixture(autouse=True)
def tables(driver: Driver) -> None:
    for name in ("t", "u"):
        driver.create_table(name)
        driver.insert(name, (1, "a"))


def test_scans_of_a_statement_see_one_snapshot_and_share_a_transaction(driver: Driver) -> None:
    first = driver.plan(application="app", description="line one\nline two " + "x" * 200)
    driver.insert("t", (2, "b"))
    driver.insert("u", (2, "b"))
    again, other = driver.plan(), driver.plan("u")
    assert deltas(first) == deltas(again) == deltas(other) == ["1"]
    assert deltas(driver.plan(statement="later")) == ["1", "2"]
    agents = ["spark app: line one line two xx", "spark"]
    assert [str(txn.agent)[:31] for txn in driver.readers()] == agents
    assert {lock.scope.table for lock in driver.metastore.show_locks()} == {"t", "u"}
    driver.ask("read/end", leases=[first["lease"], again["lease"], "unknown"])
    assert len(driver.readers()) == 2
    driver.ask("read/end", leases=[other["lease"]])
    assert len(driver.readers()) == 1


def test_what_only_explains_holds_nothing_until_it_is_used(driver: Driver) -> None:
    lease = driver.plan(execution=None)["lease"]
    assert driver.readers() == []
    assert driver.ask("read/keep", leases=[lease]) == {"lost": [lease]}
    driver.insert("t", (2, "b"))
    assert driver.ask("read/use", lease=lease) == {"lease": lease}
    assert driver.ask("read/keep", leases=[lease]) == {"lost": []}
    assert (len(driver.readers()), deltas(driver.plan())) == (1, ["1"])


def test_a_snapshot_that_was_compacted_while_nothing_protected_it_is_gone(driver: Driver) -> None:
    """I3: and one that a lease protects is not."""
    for name in ("t", "u"):
        driver.insert(name, (2, "b"))
    ended, held = driver.plan(), driver.plan(statement="held")
    driver.ask("read/end", leases=[ended["lease"]])
    driver.compact("t")
    driver.compact("u")
    driver.clean()
    assert {f"delta_000000{n}_000000{n}_0000" for n in deltas(held)} <= driver.names()
    assert driver.ask("read/use", lease=held["lease"]) == {"lease": held["lease"]}
    assert driver.ask("read/use", lease=ended["lease"]) == "SnapshotGone"
    assert driver.plan() == driver.plan("u", statement="held") == "SnapshotGone"
    assert driver.ask("read/use", lease="unknown") == "SnapshotGone"
    assert len(driver.readers()) == 1


def test_a_lease_of_which_nothing_is_heard_ends(driver: Driver) -> None:
    kept, silent = (driver.plan(statement=name)["lease"] for name in ("kept", "silent"))
    for _ in range(4):
        driver.clock.advance_ms(50_000)
        driver.ask("read/keep", leases=[kept])
        driver.end_silent()
    assert driver.ask("read/keep", leases=[kept, silent]) == {"lost": [silent]}
    driver.abort(driver.readers()[0].id)  # somebody does, and so it is lost, too
    for lease in (kept, silent):
        assert driver.ask("read/use", lease=lease) == {"lease": lease}
    assert len(driver.readers()) == 2


def test_a_service_that_stood_still_ends_no_lease(driver: Driver) -> None:
    lease = driver.plan()["lease"]
    driver.clock.advance_ms(180_000)
    driver.end_silent()
    assert driver.ask("read/keep", leases=[lease]) == {"lost": []}


def test_a_plan_that_fails_leaves_no_transaction(driver: Driver) -> None:
    lease = driver.plan("u")["lease"]
    writer = driver.open()
    exclusive = objects.component("db", "t", LockType.EXCLUSIVE)
    driver.metastore.lock(objects.request(exclusive, txn=writer))
    assert (driver.plan(), driver.readers()) == ("Refused", [])
    driver.abort(writer)
    (driver.path() / "delta_0000009_0000009_0000").mkdir()
    assert (driver.plan(statement="no such write id"), driver.readers()) == ("Refused", [])
    assert driver.plan("u", definition="another") == "TableChanged"
    driver.drop_as_hive("u")
    assert driver.ask("read/use", lease=lease) == "NoSuchTable"
    driver.create_table("u")
    assert driver.ask("read/use", lease=lease) == "TableChanged"
