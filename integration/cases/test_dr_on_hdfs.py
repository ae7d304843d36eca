"""docs/runbooks.md, typed step by step on two sites on HDFS, while real Hive 4.2 writes and reads.

Commands are killed half-way and typed again, as the page says. What is compared is rows with
ROW__IDs, read by real Hive at both sites, beside what the page's own commands find.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.model.properties import TARGET_FOR
from hms_bridge.repl.target_objects import FENCED, HANDOVER
from integration.referees.cluster import Cluster
from integration.referees.errors import StatementError
from integration.referees.hive42 import HiveSession
from integration.story.runbook import Runbook, dumping, loading, marked
from integration.story.shop import first_day, open_shop, second_day, third_day
from integration.story.sides import Rows, compact, rows_of

# Five minutes on two cores that nobody else uses.
pytestmark = pytest.mark.timeout(2700)

SHOP = "sales"
NORTH = "day=2026-03-01/shop=north"


class Sites:
    """Main and dr, the admin with the page, and real Hive at both."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.hdfs = cluster.hdfs
        self.main, self.dr = cluster.ours, cluster.our_side("dr")
        self.server = self.dr.serve("--cleaner")
        self.at_main, self._hive = cluster.hive_on_ours.main, cluster.hive_at(self.dr)
        self.admin = Runbook(folder, cluster.hdfs, self.main, self.dr)

    @property
    def at_dr(self) -> HiveSession:
        return self._hive.main

    def same_rows(self) -> Rows:
        """What both sites have, as Hive reads it."""
        rows = rows_of(self.at_main, SHOP)
        assert rows_of(self.at_dr, SHOP) == rows
        return rows


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[Sites]:
    made = Sites(tmp_path_factory.mktemp("host") / "admin", cluster)
    yield made
    made.server.stop()


def test_the_runbook(sites: Sites, cluster: Cluster) -> None:
    assert sites.main is cluster.ours
    _replicates(sites)
    _repairs_and_drills(sites)
    _switches_over(sites)
    _goes_back_and_home(sites)
    _fails_over(sites)
    assert sites.admin.untyped == set()


def _replicates(sites: Sites) -> None:
    """The first cycle dies in its load, the second in its dump; between them files are replaced."""
    open_shop(sites.at_main.sql, SHOP)
    first_day(sites.at_main.sql, SHOP)
    sites.admin.types("sh begin")
    sites.admin.is_killed("sh cycle", loading(sites.dr))
    north = "partition (day = '2026-03-01', shop = 'north')"
    compact(
        sites.main, sites.at_main, f"{SHOP}.orders compact 'major'",
        f"{SHOP}.visits {north} compact 'minor'",
    )  # fmt: skip
    sites.admin.types("sh cycle")
    sites.admin.types("sh keep")
    # "kept until" stands there once a cleaner has come to replaced files after the dump.
    assert f"policy:{SHOP}:" in sites.admin.types("sh outage-1")
    sites.same_rows()
    second_day(sites.at_main.sql, SHOP)
    sites.admin.is_killed("sh cycle", dumping(sites.main))
    compact(sites.main, sites.at_main, f"{SHOP}.stock compact 'major'")
    sites.admin.types("sh cycle")
    sites.same_rows()


def _repairs_and_drills(sites: Sites) -> None:
    """Files of a partition are gone; the repair that brings its table dies in its load."""
    gone = f"{sites.dr.places.path}/warehouse/{SHOP}.db/visits/{NORTH}/delta_*"
    sites.hdfs.shell("-rm", "-r", "-skipTrash", gone)
    assert "visits" in sites.admin.types("sh repair-1 differs")
    assert "dump with visits whole" in sites.admin.types("sh repair-2")
    sites.admin.is_killed("sh repair-3", loading(sites.dr))
    sites.admin.types("sh repair-3")
    sites.same_rows()
    assert "equal" in sites.admin.types("sh drill")


def _switches_over(sites: Sites) -> None:
    """The promotion dies with its fence up, and is given up; the next one dies as it takes over."""
    sites.at_main.sql(f"update {SHOP}.orders set item = 'black tea' where id = 1")
    assert "fence the source" in sites.admin.types("sh switch-1")
    sites.admin.is_killed("sh switch-2", marked(sites.main, SHOP, FENCED))
    _is_refused(sites.at_main)
    assert "is fenced no more" in sites.admin.types("sh cancel")
    sites.at_main.sql(f"insert into {SHOP}.stock values (8, 80)")
    written = rows_of(sites.at_main, SHOP)
    sites.admin.is_killed("sh switch-2", marked(sites.dr, SHOP, HANDOVER))
    sites.admin.types("sh switch-2")
    assert sites.same_rows() == written
    _is_refused(sites.at_main)


def _goes_back_and_home(sites: Sites) -> None:
    """Hive writes and compacts at dr; the failback dies as main becomes a replica, and in its
    load."""
    third_day(sites.at_dr.sql, SHOP)
    sites.at_dr.sql(f"alter table {SHOP}.orders compact 'major'")
    sites.at_dr.run("Worker")
    without = " --discard-divergence"
    is_replica = marked(sites.main, SHOP, TARGET_FOR)
    sites.admin.is_killed("sh failback-3", is_replica, without=without)
    sites.admin.is_killed("sh failback-3", loading(sites.main), without=without)
    sites.admin.types("sh failback-3", without=without)
    sites.admin.types("sh failback-4")
    sites.same_rows()
    sites.at_dr.sql(f"delete from {SHOP}.stock where id = 5")
    sites.admin.types("sh home")
    sites.at_main.sql(f"insert into {SHOP}.stock values (9, 90)")
    sites.admin.types("sh cycle")
    sites.same_rows()


def _fails_over(sites: Sites) -> None:
    """Main is lost with a commit that nobody else has, and comes back."""
    sites.at_main.sql(
        f"insert into {SHOP}.orders values (1001, 'lost', 1.00, null, null, 'never replicated')"
    )
    with sites.admin.without_main():
        assert "cannot be reached" in sites.admin.types("sh failover-1 fails")
        sites.admin.types("sh failover-2")
        sites.at_dr.sql(f"insert into {SHOP}.stock values (10, 100)")
    assert "its old source is fenced now" in sites.admin.types("sh failover-4")
    _is_refused(sites.at_main)
    assert "orders: 1 commit or change" in sites.admin.types("sh failback-1 fails")
    assert "never replicated" in sites.admin.types("sh failback-2")
    sites.admin.types("sh failback-3")
    sites.admin.types("sh failback-4")
    rows = sites.same_rows()
    assert not [row for row in rows["orders"] if row[1] == "1001"]
    assert [row for row in rows["stock"] if row[1] == "10"]


def test_a_hive_with_its_own_metastore_changes_places(sites: Sites, cluster: Cluster) -> None:
    """It heeds no fence, so its writers rest; dumps and loads go through its thrift server."""
    shop, dr, hive, places = "h_shop", sites.dr, cluster.hive.main, cluster.hive_places
    open_shop(hive.sql, shop, "with dbproperties('repl.source.for'='policy')")
    first_day(hive.sql, shop)
    dr.ok(
        "repl", "policy", "add", shop, "--source", cluster.first.uri,
        "--source-set", f"hive.metastore.warehouse.dir={places.warehouse}",
        "--source-set", f"hive.repl.cmrootdir={places.cmroot}",
    )  # fmt: skip
    dr.ok("repl", "run", shop)
    second_day(hive.sql, shop)
    hive.sql(f"alter table {shop}.orders compact 'major'")
    hive.run("Worker")
    hive.run("Cleaner")
    switch = ("repl", "promote", shop, "--planned", "--wait", "2m")
    planned = dr.run(*switch, "--dry-run")
    assert (planned.exit_code, "heeds no fence" in planned.err) == (1, True), planned
    refused = dr.run(*switch)
    assert (refused.exit_code, "heeds no fence" in refused.err) == (1, True), refused
    hive.sql(f"insert into {shop}.stock values (8, 80)")
    dr.ok(*switch, "--source-is-quiet")
    assert rows_of(sites.at_dr, shop) == rows_of(hive, shop)
    third_day(sites.at_dr.sql, shop)
    dr.ok("repl", "failback", shop)
    assert rows_of(hive, shop) == rows_of(sites.at_dr, shop)
    dr.ok(*switch)
    dr.ok("repl", "failback", shop)
    hive.sql(f"insert into {shop}.stock values (9, 90)")
    dr.ok("repl", "run", shop)
    assert rows_of(sites.at_dr, shop) == rows_of(hive, shop)


def _is_refused(hive: HiveSession) -> None:
    """Hive keeps to itself why it was refused."""
    with pytest.raises(StatementError, match="Failed to allocate write Id"):
        hive.sql(f"insert into {SHOP}.stock values (99, 990)")
