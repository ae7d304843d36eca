"""Plans for programs without Python, and the page about Spark's own tables, typed as it stands."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changemanager.location import FsspecResolver
from hms_bridge.connect import connected
from hms_bridge.model.catalog import Column, Database
from hms_bridge.spark.jar import JAR, jar_version
from integration.referees.acid_writes import write
from integration.referees.errors import RefereeError, StartError
from integration.referees.ours import PROGRAM, OurPlans, OurServer, environment_of_ours
from integration.referees.processes import Workplace, free_port
from integration.referees.spark import spark_environment
from tests.conformance import objects
from tests.support.documents import blocks
from tests.support.golden import CHECKOUT

PAGE = CHECKOUT / "docs" / "spark.md"
COLUMNS = (Column(name="id", type="int"), Column(name="item", type="string"))


@pytest.fixture(scope="module")
def server(workplace: Workplace) -> Iterator[OurServer]:
    """With the table of the page."""
    started = OurServer(workplace, f"sqlite:///{workplace.folder('page')}/metastore.db")
    with connected(started.uri) as port:
        place = f"file:{started.warehouse}/sales.db"
        port.create_database(Database(name="sales", location=place))
        storage = objects.orc_storage(COLUMNS, location=f"{place}/orders")
        port.create_table(objects.acid_table("sales", "orders", storage=storage))
        columns = [pa.array([1, 2, 3], pa.int32()), pa.array(["tea", "tea", "salt"])]
        rows = pa.record_batch(columns, names=["id", "item"])
        write(port, FsspecResolver(), "sales.orders", lambda one: one.insert([rows]))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def shell(workplace: Workplace) -> dict[str, str]:
    """What a person's environment has: the program, and a small Spark."""
    programs = workplace.folder("programs")
    program = programs / "hms-bridge"
    program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    spark = spark_environment() | {"SPARK_DRIVER_MEMORY": "700m", "SPARK_MASTER": "local[1]"}
    path = f"{programs}:{spark['SPARK_HOME']}/bin:{os.environ['PATH']}"
    return dict(environment_of_ours()) | spark | {"PATH": path}


def test_sessions_outlive_a_restart_and_leases_do_not(
    workplace: Workplace, server: OurServer
) -> None:
    words = ("--port", str(free_port()), "--token-file", str(workplace.folder("t") / "token"))
    first = OurPlans(workplace, server.uri, *words)
    token_file = Path(first.settings["spark.sql.catalog.acid.token-file"])
    assert token_file.stat().st_mode & 0o777 == 0o600
    token = token_file.read_text().strip()
    assert token not in json.dumps(first.settings)
    ask = Asker(first.settings, token)
    loaded = ask("table/load", namespace="sales", name="orders", timestamps="timestamp")
    planned = ask(
        "read/plan", namespace="sales", name="orders", definition=loaded["definition"],
        statement="s", execution="1", parallelism=1, split_bytes=1 << 20,
    )  # fmt: skip
    assert planned["lease"]
    assert _open_txns(server) == 1
    assert first.stop() == 0
    assert _open_txns(server) == 0
    second = OurPlans(workplace, server.uri, *words)
    assert second.settings == first.settings
    assert Asker(second.settings, token)("namespace/list") == {"names": ["default", "sales"]}
    assert second.stop() == 0
    token_file.chmod(0o644)
    with pytest.raises(StartError, match=r"everybody .* chmod 600 .*/token"):
        OurPlans(workplace, server.uri, *words)


def test_other_hosts_are_let_in_by_name(workplace: Workplace, server: OurServer) -> None:
    open_to_all = OurPlans(workplace, server.uri, "--host", "0.0.0.0")
    url = open_to_all.settings["spark.sql.catalog.acid.url"]
    assert url.startswith(f"http://{socket.getfqdn()}:")
    assert open_to_all.says("nothing is encrypted")
    open_to_all.stop()


def test_the_page(workplace: Workplace, server: OurServer, shell: dict[str, str]) -> None:
    folder = workplace.folder("typed")
    typed = [block.text.replace("thrift://metastore:9083", server.uri) for block in blocks(PAGE)]
    start, attach, plans, client, append = typed
    program = f"{start}spark = spark.newSession()\n{attach}{append}"
    count = "SELECT item, count(*) FROM acid.sales.orders GROUP BY item"
    program += f'print(sorted(map(tuple, spark.sql("{count}").collect())))\n'
    both = ["sh", "-c", 'exec "$@" 2>&1', "sh"]
    said = workplace.run("page", [*both, sys.executable, "-c", program], env=shell, cwd=folder)
    assert "[('pear', 2), ('salt', 2), ('tea', 4)]" in said  # all rows and a pear, once more
    assert "plan service" not in said  # which has gone before Spark ends
    service = workplace.start("page-plans", ["sh", "-c", f"exec {plans}"], env=shell, cwd=folder)
    service.wait_until(lambda: service.log_contains("serving plans at http://127.0.0.1:"))
    said = workplace.run("page-client", ["sh", "-e", "-c", client], env=shell, cwd=folder)
    once = ["pear\t2", "salt\t2", "tea\t4"]
    assert sorted(said.splitlines()) == sorted(once * 2)
    service.stop()
    assert _open_txns(server) == 0


def test_a_program_for_spark_submit(
    workplace: Workplace, server: OurServer, shell: dict[str, str]
) -> None:
    """Its Java runs already when `configure` is called, and takes no jar for a catalog any more."""
    folder = workplace.folder("submitted")
    text = blocks(PAGE)[0].text.replace("thrift://metastore:9083", server.uri)
    (folder / "program.py").write_text(text)
    with pytest.raises(RefereeError, match=rf"--jars .*{JAR.name}, or use attach"):
        workplace.run("no-jar", ["spark-submit", "program.py"], env=shell, cwd=folder)
    submit = ["spark-submit", "--jars", JAR, "program.py"]
    said = workplace.run("jar", submit, env=shell, cwd=folder)
    assert re.search(r"tea *\| *\d", said), said


class Asker:
    """Asks as the jar does, over a connection that it keeps."""

    def __init__(self, settings: dict[str, str], token: str) -> None:
        url = settings["spark.sql.catalog.acid.url"]
        self._asking = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        self._head = {"Authorization": f"Bearer {token}"}

    def __call__(self, verb: str, **fields: Any) -> Any:
        body = json.dumps({"jar": jar_version(), **fields})
        self._asking.request("POST", f"/v1/{verb}", body, self._head)
        return json.loads(self._asking.getresponse().read())


def _open_txns(server: OurServer) -> int:
    with connected(server.uri) as port:
        return len(port.get_open_txns_info())
