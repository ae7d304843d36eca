"""docs/howto/cluster.md, typed line by line on HDFS with permissions, PostgreSQL and Hive 4.2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from integration.referees.cluster import Cluster, write_hadoop_client
from integration.referees.hive42 import Hive42, HiveSession
from integration.referees.ours import CHECKOUT
from integration.referees.postgresql import Database
from integration.referees.processes import Server, Workplace, free_port
from integration.story.page import Typist
from integration.story.sides import Rows, rows_of
from tests.support.documents import Block, blocks

PAGE = CHECKOUT / "docs" / "howto" / "cluster.md"
# What only a person on a machine of his own can type.
NOT_TYPED = {"sh setup", "xml proxies"}
"""Nothing comes from another machine here, so nobody needs to be a proxy user."""
EXTERNAL = ("hive.metastore.warehouse.external.dir", "metastore.warehouse.external.dir")


class Operator:
    """Goes through the page; `hive` and `server` are there once the page has told how."""

    def __init__(self, folder: Path, cluster: Cluster, workplace: Workplace) -> None:
        self._cluster = cluster
        self._workplace = workplace
        self._port = free_port()
        hdfs, store = cluster.hdfs, cluster.hive.database
        local = "127.0.0.1"
        self.typist = Typist(
            folder,
            hdfs,
            {
                "hdfs://nn1.prod.example:8020": hdfs.uri,
                "db.prod.example:5432": f"{local}:{store.port}",
                "thrift://hms.prod.example:9083": cluster.first.uri,
                "thrift://hms.dr.example:9083": cluster.second.uri,
                "bridge.prod.example:9083": f"{local}:{self._port}",
                "--host 0.0.0.0 --port 9083": f"--host {local} --port {self._port}",
            },
        )
        self._other_site = folder / "other-site"
        write_hadoop_client(hdfs, self._other_site)
        self._store = Database(name="metastore", port=store.port)
        self._unit: list[str] = []
        self._server: Server | None = None
        self._hive: Hive42 | None = None
        self.printed: list[str] = []

    @property
    def hive(self) -> HiveSession:
        assert self._hive is not None
        return self._hive.main

    @property
    def replica(self) -> HiveSession:
        return self._cluster.hive_at_second

    def does(self, block: Block) -> None:
        """One block of the page."""
        match block.info:
            case "xml core-site":
                self.typist.site("hadoop/conf/core-site.xml", block)
            case "xml hive-site":
                self.typist.site("hms-bridge/hive-site.xml", block)
            case "sh env":
                (self.typist.etc / "hms-bridge" / "env").write_text(self.typist.put_in(block.text))
            case "ini":
                self._unit = self.typist.exec_start(block)
                self._start()
            case "xml hive":
                told = self.typist.properties(block)
                # The referee's own defaults, as a stock Hive has them beside what the page says.
                stock = dict.fromkeys(EXTERNAL, "") | {
                    "metastore.warehouse.dir": told["hive.metastore.warehouse.dir"]
                }
                self._hive = self._cluster.hive_with("hive-of-the-page", self._store, stock | told)
            case "sql":
                self._says(self.hive, block)
            case "sql replica":
                self._says(self.replica, block)
            case "cron" | "cron replica":
                self.printed.append(self.typist.cron(block.text, **self._site_of(block)))
            case "sh stop":
                self.stop()
            case "sh start":
                typed = block.text.replace("systemctl start hms-bridge\n", "")
                self.printed.append(self.typist.types(typed))
                self._start()
            case _:
                assert block.info in {"sh", "sh superuser", "sh replica", "sh discard"}, block
                self.printed.append(self.typist.types(block.text, **self._site_of(block)))

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def _site_of(self, block: Block) -> dict[str, str]:
        is_other = block.info.endswith(" replica")
        return {"HADOOP_CONF_DIR": str(self._other_site)} if is_other else {}

    def _start(self) -> None:
        server = self._workplace.start("page-serve", self._unit, env=self.typist.environment)
        server.wait_until(lambda: server.log_contains("serving thrift://"))
        self._server = server

    def _says(self, hive: HiveSession, block: Block) -> None:
        for statement in self.typist.put_in(block.text).split(";"):
            if statement.strip():
                hive.sql(statement.strip())


@pytest.fixture
def operator(tmp_path: Path, cluster: Cluster, workplace: Workplace):  # type: ignore[no-untyped-def]
    made = Operator(tmp_path / "host", cluster, workplace)
    yield made
    made.stop()


def test_the_page(operator: Operator, cluster: Cluster) -> None:
    hive = cluster.hive.main
    hive.sql("create database shop with dbproperties('repl.source.for'='page')")
    hive.sql("create table shop.t (id int) stored as orc tblproperties('transactional'='true')")
    hive.sql("insert into shop.t values (1)")
    number = 100
    for block in blocks(PAGE):
        if block.info in NOT_TYPED:
            continue
        if block.info in {"cron", "sh discard"} or "REPL LOAD" in block.text:
            number += 1
            operator.hive.sql(f"insert into sales.orders values ({number}, 'x', 1, '2026-03-01')")
        if "REPL LOAD" in block.text or block.info == "sh discard":
            operator.typist.types(". /etc/hms-bridge/env; hms-bridge repl dump sales")
        operator.does(block)
        if "repl load" in block.text or "REPL LOAD" in block.text:
            assert _sales(operator.replica) == _sales(operator.hive), block.text
    assert number == 103
    (made_in,) = {row[2] for row in operator.hive.sql("describe database sales")}
    assert made_in == f"{cluster.hdfs.uri}/warehouse/sales.db"
    told = operator.printed
    assert any("bootstrap" in text for text in told)
    assert any(re.search(r"missing files +0", text) for text in told)
    assert any("incremental" in text for text in told)


def _sales(hive: HiveSession) -> Rows:
    return rows_of(hive, "sales")
