"""Two sites of ours on HDFS change places and change back; real Hive writes at the one that is the
source, and reads both. What is compared is rows with ROW__IDs, as Hive reads them.
"""

from __future__ import annotations

import pytest

from integration.referees.cluster import Cluster
from integration.referees.errors import StatementError
from integration.story.shop import first_day, open_shop, second_day, third_day
from integration.story.sides import compact, rows_of

SHOP = "d_shop"


def test_a_replica_takes_its_sources_place_and_gives_it_back(cluster: Cluster) -> None:
    main, at_main = cluster.ours, cluster.hive_on_ours.main
    dr = cluster.our_side("dr")
    dr.ok("schema", "init")
    dr.ok(
        "repl", "policy", "add", SHOP, "--source", main.uri,
        "--source-set", f"hive.repl.cmrootdir={main.places.cmroot}",
        "--source-set", f"hive.metastore.warehouse.dir={main.places.warehouse}",
    )  # fmt: skip
    open_shop(at_main.sql, SHOP)
    first_day(at_main.sql, SHOP)
    dr.ok("repl", "run", SHOP)
    server = dr.serve("--cleaner")
    try:
        at_dr = cluster.hive_at(dr).main
        second_day(at_main.sql, SHOP)
        compact(main, at_main, f"{SHOP}.orders compact 'major'")
        switched = dr.told("repl", "promote", SHOP, "--planned", "--wait", "2m")
        assert switched["commits behind"] > 0
        assert rows_of(at_dr, SHOP) == rows_of(at_main, SHOP)
        # Hive keeps to itself why it was refused.
        with pytest.raises(StatementError, match="Failed to allocate write Id"):
            at_main.sql(f"insert into {SHOP}.stock values (9, 90)")

        third_day(at_dr.sql, SHOP)
        back = dr.told("repl", "failback", SHOP)
        assert (back["given up"], back["tables that come whole"]) == ([], [])
        assert rows_of(at_main, SHOP) == rows_of(at_dr, SHOP)

        at_dr.sql(f"delete from {SHOP}.stock where id = 5")
        dr.ok("repl", "promote", SHOP, "--planned", "--wait", "2m")
        dr.ok("repl", "failback", SHOP)
        at_main.sql(f"insert into {SHOP}.stock values (9, 90)")
        dr.ok("repl", "run", SHOP)
        assert rows_of(at_dr, SHOP) == rows_of(at_main, SHOP)
    finally:
        server.stop()
