"""Real Hive 4.2, with a metastore of its own, loads our dumps of some tables only."""

from __future__ import annotations

import pytest

from integration.referees.cluster import Cluster
from integration.story.shop import ACID
from integration.story.sides import Rows, load_into, rows_of, table_rows

pytestmark = pytest.mark.timeout(900)

LOGS = "pat"


def test_hive_loads_dumps_of_some_tables(cluster: Cluster) -> None:
    """A bootstrap; writes, a new table and renames into and out of the patterns; other patterns."""
    side, writer, reader = cluster.ours, cluster.hive_on_ours.main, cluster.hive.main
    writer.sql(f"create database {LOGS}")
    for name in ("web_a", "web_b", "web_tmp", "app"):
        writer.sql(f"create table {LOGS}.{name} (id int, v string) {ACID}")
        writer.sql(f"insert into {LOGS}.{name} values (1, '{name}')")

    def brought(*words: str) -> Rows:
        """Both sides have the same rows of these tables, and the reader has no other table."""
        side.ok("repl", "dump", *words)
        load_into(reader, LOGS, LOGS, side.places.dumps)
        rows = rows_of(reader, LOGS)
        assert rows == {name: table_rows(writer, f"{LOGS}.{name}") for name in rows}
        return rows

    assert brought(f"{LOGS}.'web_.*'.'.*_tmp'").keys() == {"web_a", "web_b"}
    writer.sql(f"insert into {LOGS}.web_a values (2, 'two')")
    writer.sql(f"update {LOGS}.web_a set v = 'one' where id = 1")
    writer.sql(f"insert into {LOGS}.web_tmp values (2, 'left out')")
    writer.sql(f"create table {LOGS}.web_c (id int, v string) {ACID}")
    writer.sql(f"insert into {LOGS}.web_c values (1, 'new')")
    writer.sql(f"alter table {LOGS}.web_b rename to {LOGS}.old_b")
    writer.sql(f"alter table {LOGS}.app rename to {LOGS}.web_app")
    rows = brought(LOGS)
    assert {name: len(found) for name, found in rows.items()} == {
        "web_a": 2,
        "web_app": 1,
        "web_c": 1,
    }
    writer.sql(f"insert into {LOGS}.web_app values (3, 'more')")
    assert brought(f"{LOGS}.'web_a|old.*'", "--change-scope").keys() == {"old_b", "web_a"}
