"""hms-bridge where its users have it: warehouse, archive and dumps on an HDFS with permissions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.reading import settings_from
from hms_bridge.connect import connected
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Table
from hms_bridge.model.txn import (
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnState,
)
from integration.referees.errors import RefereeError, StatementError
from integration.referees.hdfs import STRANGER, Hdfs
from integration.referees.ours import OurProgram, OurServer, OurSession
from integration.referees.processes import Workplace
from integration.referees.spark import OurSparkDriver
from tests.support.table_rows import acid_rows

pytestmark = pytest.mark.hdfs

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
# Bare paths, as in a hive-site.xml: they are of fs.defaultFS, which is the HDFS.
PLACES = {
    "hive.repl.cmrootdir": "/site/cmroot",
    "hive.repl.rootdir": "/site/repl",
    "hms.bridge.repl.load.roots": "/site/warehouse,/site/cmroot",
}

RETAIN_NOTHING = ("--set", "hive.repl.cm.retain=1ms")


@dataclass
class Site:
    """One installation: a server on HDFS, its command line, and SQL in a Spark driver."""

    workplace: Workplace
    hdfs: Hdfs
    server: OurServer
    driver: OurSparkDriver

    @cached_property
    def program(self) -> OurProgram:
        """Verbs, as the same user with the same configuration."""
        return OurProgram(
            self.workplace,
            self.server.database_url,
            environment=self.hdfs.environment() | {"HOME_OF_TABLES": "/site/warehouse"},
        )

    @cached_property
    def session(self) -> OurSession:
        return OurSession(self.driver, self.server.uri, self.hdfs.hadoop())

    def other(self, name: str) -> OurProgram:
        """A metastore of its own on the same HDFS."""
        database = f"sqlite:///{self.workplace.folder(name)}/metastore.db"
        environment = self.hdfs.environment() | {"HOME_OF_TABLES": f"/site/{name}"}
        program = OurProgram(self.workplace, database, environment=environment)
        self.verb("schema", "init", program=program)
        return program

    def verb(self, *arguments: str, program: OurProgram | None = None) -> str:
        places = PLACES | {"hive.metastore.warehouse.dir": "${env:HOME_OF_TABLES}"}
        chosen = [word for key, value in places.items() for word in ("--set", f"{key}={value}")]
        return (program or self.program).run(*arguments, *chosen)

    def rows(self, database: str, table: str, *, program: OurProgram | None = None) -> list[object]:
        """All rows with their ROW__IDs."""
        metastore = (program or self.program).metastore
        known = self.hdfs.hadoop()
        settings = settings_from({**known.values, "hms.bridge.hadoop.user": str(known.user)})
        with connected(metastore, settings) as store:
            return sorted(acid_rows(store, file_systems(settings), database, table), key=str)

    def sql(self, *statements: str) -> list[tuple[str, ...]]:
        """Rows of the last one."""
        rows: list[tuple[str, ...]] = []
        for statement in statements:
            rows = self.session.sql(statement)
        return rows

    def names(self, path: str) -> list[str]:
        """Files below a directory, as Hadoop's own shell lists them."""
        lines = self.hdfs.shell("-ls", "-R", "-C", path).splitlines()
        return sorted(line.strip().removeprefix(path).lstrip("/") for line in lines)


@pytest.fixture(scope="module")
def our_driver(workplace: Workplace) -> Iterator[OurSparkDriver]:
    driver = OurSparkDriver(workplace)
    yield driver
    driver.stop()


@pytest.fixture(scope="module")
def site(workplace: Workplace, hdfs: Hdfs, our_driver: OurSparkDriver) -> Iterator[Site]:
    hdfs.make_home("/site", owner="hmsbridge")
    database = f"sqlite:///{workplace.folder('hdfs-site')}/metastore.db"
    server = OurServer(
        workplace,
        database,
        warehouse="/site/warehouse",
        settings=PLACES,
        environment=hdfs.environment(),
    )
    yield Site(workplace, hdfs, server, our_driver)
    server.stop()


def test_definitions_make_move_and_remove_directories(site: Site) -> None:
    client = ThriftMetastoreClient(site.server.uri)
    site.sql(
        "CREATE DATABASE made",
        f"CREATE TABLE made.t (id INT) {ACID}",
        f"CREATE TABLE made.part (id INT) PARTITIONED BY (p STRING) {ACID}",
        "INSERT INTO made.t VALUES (1)",
        "INSERT INTO made.part VALUES (1, 'a b'), (2, 'c')",
    )
    table = client.get_table("made", "part")
    assert table.storage.location == f"{site.hdfs.uri}/site/warehouse/made.db/part"
    found = site.names("/site/warehouse/made.db")
    assert [name for name in found if "delta" not in name] == [
        "part",
        "part/p=a b",
        "part/p=c",
        "t",
    ]
    client.drop_partitions("made", "part", ["p=c"])
    client.alter_table("made", "t", replace(client.get_table("made", "t"), name="renamed"))
    assert site.sql("SELECT id FROM made.renamed") == [("1",)]
    found = [name for name in site.names("/site/warehouse/made.db") if "delta" not in name]
    assert found == ["part", "part/p=a b", "renamed"]
    _truncate(client, "made", "renamed")
    assert site.sql("SELECT id FROM made.renamed") == []
    site.sql("DROP TABLE made.renamed", "DROP TABLE made.part", "DROP DATABASE made")
    assert [n for n in site.names("/site/warehouse") if n.startswith("made.db")] == []
    client.close()


def _archived(site: Site) -> list[str]:
    """Without the file that says that our metastore pins files there."""
    return [name for name in site.names("/site/cmroot") if not name.startswith(".cm-metastore-")]


def test_rows_live_through_compaction_cleaning_replication_and_purge(site: Site) -> None:
    site.sql(
        "CREATE DATABASE story",
        f"CREATE TABLE story.t (id INT, v STRING) {ACID}",
        f"CREATE TABLE story.part (id INT) PARTITIONED BY (p STRING) {ACID}",
        "INSERT INTO story.t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "INSERT INTO story.part VALUES (1, 'x'), (2, 'y')",
        "UPDATE story.t SET v = 'B' WHERE id = 2",
    )
    site.verb("repl", "dump", "story")
    at_dump = {table: site.rows("story", table) for table in ("t", "part")}
    site.sql("DELETE FROM story.t WHERE id = 1", "INSERT INTO story.t VALUES (4, 'd')")
    site.verb("compact", "story.t", "major")
    assert site.session.work() is not None
    site.verb("cleaner", "run")
    (base,) = (name for name in site.names("/site/warehouse/story.db/t") if "/" not in name)
    assert base.startswith("base_0000004")
    archived = _archived(site)
    assert len(archived) == 6, "five buckets, and the one text of all _orc_acid_version"
    assert {len(name.rpartition("_")[2]) for name in archived} == {56}, "HDFS's own checksums"

    replica = site.other("replica")
    site.verb("repl", "load", "story", program=replica)
    assert {table: site.rows("story", table, program=replica) for table in at_dump} == at_dump
    site.verb("repl", "dump", "story")
    site.verb("repl", "load", "story", program=replica)
    for table in at_dump:
        assert site.rows("story", table, program=replica) == site.rows("story", table)

    purged = json.loads(site.verb("cm", "purge", "--format", "json", *RETAIN_NOTHING))
    assert {row["what"] for row in purged} == {"deleted"}
    assert _archived(site) == []


def test_a_directory_of_a_lost_metastore_is_adopted(site: Site) -> None:
    site.sql(
        "CREATE DATABASE lost",
        f"CREATE TABLE lost.t (id INT, v STRING) {ACID}",
        "INSERT INTO lost.t VALUES (1, 'a'), (2, 'b')",
        "DELETE FROM lost.t WHERE id = 1",
    )
    again = site.other("again")
    # bare: of the HDFS
    site.verb("table", "adopt", "/site/warehouse/lost.db/t", "--name", "lost.t", program=again)
    assert site.rows("lost", "t", program=again) == site.rows("lost", "t")


def test_a_stranger_is_told_what_it_may_not_do(site: Site) -> None:
    site.sql("CREATE DATABASE closed", f"CREATE TABLE closed.t (id INT) {ACID}",
             "INSERT INTO closed.t VALUES (1)")  # fmt: skip
    stranger = OurProgram(
        site.workplace,
        site.server.database_url,
        environment=site.hdfs.environment(STRANGER) | {"HOME_OF_TABLES": "/site/warehouse"},
    )
    site.hdfs.shell("-chmod", "770", "/site/warehouse/closed.db")
    for words in (("repl", "dump", "closed"), ("compact", "closed.t", "major", "--run")):
        with pytest.raises(RefereeError) as refused:
            site.verb(*words, program=stranger)
        text = str(refused.value)
        assert "user=stranger, access=" in text
        assert "HADOOP_USER_NAME" in text
        assert "Traceback" not in text


def test_a_full_quota_leaves_nothing_half_done(site: Site) -> None:
    client = ThriftMetastoreClient(site.server.uri)
    site.sql("CREATE DATABASE full", f"CREATE TABLE full.t (id INT) {ACID}",
             "INSERT INTO full.t VALUES (1)")  # fmt: skip
    directory = "/site/warehouse/full.db"
    site.hdfs.admin("-setQuota", "5", directory)
    with pytest.raises(StatementError, match=r"quota.*raise the quota"):
        site.sql("INSERT INTO full.t VALUES (2)")
    with pytest.raises(MetaError, match=r"full\.db/t2.*quota.*raise the quota"):
        client.create_table(_without_place(client.get_table("full", "t"), "t2"))
    assert client.get_tables("full") == ("t",)
    assert [one.state for one in client.get_open_txns_info() if one.state is TxnState.OPEN] == []
    site.hdfs.admin("-clrQuota", directory)
    site.sql("INSERT INTO full.t VALUES (3)")
    assert site.sql("SELECT id FROM full.t ORDER BY id") == [("1",), ("3",)]
    client.close()


def test_a_name_node_in_safe_mode_is_waited_for_by_people(site: Site) -> None:
    client = ThriftMetastoreClient(site.server.uri)
    site.sql("CREATE DATABASE safe", f"CREATE TABLE safe.t (id INT) {ACID}",
             "INSERT INTO safe.t VALUES (1)")  # fmt: skip
    site.hdfs.admin("-safemode", "enter")
    try:
        with pytest.raises(MetaError, match=r"safe mode.*wait until the NameNode has left"):
            client.create_table(_without_place(client.get_table("safe", "t"), "t2"))
        with pytest.raises(StatementError, match=r"safe mode.*wait until the NameNode has left"):
            site.sql("INSERT INTO safe.t VALUES (2)")
        assert client.get_tables("safe") == ("t",)
        assert site.sql("SELECT id FROM safe.t") == [("1",)]
    finally:
        site.hdfs.admin("-safemode", "leave")
    client.close()


def _truncate(client: ThriftMetastoreClient, database: str, table: str) -> None:
    (txn,) = client.open_txns(OpenTxnsRequest(user="hmsbridge", host="localhost"))
    request = AllocateWriteIdsRequest(database_name=database, table_name=table, txn_ids=(txn,))
    (given,) = client.allocate_table_write_ids(request)
    client.truncate_table(database, table, write_id=given.write_id)
    client.commit_txn(CommitTxnRequest(txn_id=txn))


def _without_place(table: Table, name: str) -> Table:
    """The same table without a place, to be made anew."""
    return replace(table, name=name, storage=replace(table.storage, location=None))
