"""``hms-bridge serve`` as a process: ready, answering, compacting, stopping."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pyarrow.orc
import pytest
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore import ttypes as hive3

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.connect import open_local
from hms_bridge.model.catalog import Database
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import hive
from tests.conformance.objects import DS, acid_table, partition
from tests.support.busy_metastore import copy_golden
from tests.support.golden import acid_goldens
from tests.support.program import Program, serving
from tests.support.raw_thrift import RawClient, call
from tests.support.wire_answers import WireClient

pytestmark = pytest.mark.process

MINUTES = 300
STAGE = "g02_iud/01-before-minor"
ON_SPARK = "hms.bridge.compactor.local.bytes=0"
SIX = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_a_server_answers_until_it_is_told_to_stop(program: Program) -> None:
    with serving(program, "--port", "0", "--cleaner") as server:
        address = server.wait_until_ready()
        assert address.startswith("thrift://127.0.0.1:")
        with HMSClient(host="127.0.0.1", port=_port(address)) as client:
            client.create_database(hive3.Database(name="one", parameters={}))
            assert client.get_all_databases() == ["default", "one"]
            warehouse = client.get_config_value("hive.metastore.warehouse.dir", "none")
            assert warehouse == f"file:{program.warehouse}"
            assert client.get_config_value("metastore.txn.timeout", "") == "300000ms"
            assert client.get_config_value("metastore.thrift.port", "none") == "none"
        with WireClient(_port(address)) as wire:
            asked = method("get_metastore_db_uuid")
            database_id = wire.call(asked.name, asked.arguments())
        listed = program.start("compact", "one.t", "major", "--metastore", address)
        assert (listed.exit_code, "no table one.t" in listed.err) == (1, True)
        assert server.stop(signal.SIGTERM) == 0
        assert server.lines[-1] == "stopping"
    assert program.ok("txns", "--format", "json").json == []
    assert open_local(program.url).database_id() == database_id


def test_it_stops_while_a_filter_and_a_big_answer_are_under_way(program: Program) -> None:
    with serving(program, "--port", "0") as server:
        address = server.wait_until_ready()
        with ThriftMetastoreClient(address) as client:
            client.create_database(Database(name="busy"))
            client.create_table(acid_table("busy", partition_columns=DS))
            client.add_partitions(
                "busy", "t", [partition("busy", "t", f"{n:04d}{'x' * 200}") for n in range(1000)]
            )
        endless = " or ".join(f'ds = "{n}"' for n in range(70_000))
        filtering = hive.GetPartitionsByFilterRequest(
            dbName="busy", tblName="t", filter=endless, maxParts=-1
        )
        with RawClient(_port(address)) as busy, RawClient(_port(address)) as deaf:
            busy.send(call("get_partitions_by_filter_req", req=filtering))
            # Far more than what sockets keep, to somebody who does not read.
            deaf.send(call("get_partitions", db_name="busy", tbl_name="t", max_parts=-1) * 200)
            time.sleep(3)
            began = time.monotonic()
            assert server.stop(signal.SIGTERM) == 0
            assert time.monotonic() - began < 40
        assert server.lines[-1] == "stopping"


def test_a_second_signal_stops_at_once(program: Program) -> None:
    hook = "import time\nclass Stuck:\n    def on_event(self, event):\n        time.sleep(600)\n"
    (program.folder / "stuck_hook.py").write_text(hook)
    words = ("--port", "0", "--set", "hms.bridge.event.hooks=stuck_hook:Stuck")
    with serving(program, *words) as server:
        with ThriftMetastoreClient(server.wait_until_ready()) as client:
            client.create_database(Database(name="one"))
        server.process.send_signal(signal.SIGTERM)
        time.sleep(2)
        began = time.monotonic()
        assert server.stop(signal.SIGTERM) == 1
        assert time.monotonic() - began < 5


def test_a_port_has_one_server(program: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    site = program.folder / "hive-site.xml"  # which says where else it is: that is not heeded
    bound = "<name>hive.metastore.thrift.bind.host</name><value>192.0.2.1</value>"
    site.write_text(f"<configuration><property>{bound}</property></configuration>")
    with serving(program, "--port", port, "--config", str(site)) as server:
        assert server.wait_until_ready() == f"thrift://127.0.0.1:{port}"
        second = program.start("serve", "--port", port)
        assert second.exit_code == 1
        assert f"port {port} on 127.0.0.1 is in use" in second.err
        assert "Traceback" not in second.err
        with HMSClient(host="127.0.0.1", port=int(port)) as client:
            assert client.get_all_databases() == ["default"]
        assert server.stop(signal.SIGINT) == 0


def test_the_ready_line_tells_no_password_and_archives_are_tried_first(program: Program) -> None:
    (program.folder / "somefile").write_text("x")
    answer = program.start(
        "serve", "--port", "0", "--cleaner", "--set", "hive.repl.cmrootdir=somefile"
    )
    assert answer.exit_code == 1
    assert "somefile is no directory" in answer.err
    answer = program.start("serve", "--port", "0", "--host", "192.0.2.1", "--insecure")
    assert answer.exit_code == 1
    assert "192.0.2.1" in answer.err
    answer = program.start(
        "serve",
        "--port",
        "0",
        "--database",
        "postgresql://ann:secret@127.0.0.1:1/m",
        "--set",
        "hms.bridge.database.start.wait=0s",
    )
    assert answer.exit_code == 1
    assert "127.0.0.1:1" in answer.err
    assert "secret" not in answer.err


@pytest.mark.spark
@pytest.mark.golden
@pytest.mark.timeout(2 * MINUTES)
def test_a_worker_compacts_what_is_queued(program: Program, spark: Any) -> None:
    """I2: readers of ORC find the rows that Hive saw, with their row ids, in the new base."""
    directory = copy_golden(STAGE, program.warehouse / "sales.db" / "orders")
    told = [
        json.loads(line)
        for line in (acid_goldens() / STAGE / "rows.jsonl").read_text().splitlines()
    ]
    with serving(program, "--port", "0", "--worker", "--set", ON_SPARK) as server:
        remote = ("--metastore", server.wait_until_ready(MINUTES))
        program.ok("table", "adopt", str(directory), "--name", "sales.orders", *remote)
        done = program.start(
            "compact", "sales.orders", "major", "--wait", *remote, "--format", "json",
            seconds=MINUTES,
        )  # fmt: skip
        assert done.exit_code == 0, (done.err, server.lines)
        assert (done.json["state"], done.json["highestwriteid"]) == ("ready for cleaning", 7)
        assert server.stop(signal.SIGTERM) == 0
    (base,) = directory.glob("base_*")
    assert base.name == f"base_0000007_v{done.json['txnid']:07d}"
    (file,) = (path for path in base.iterdir() if path.name.startswith("bucket_"))
    expected = sorted((tuple(row["row__id"]), row["values"]["id"]) for row in told)
    assert _by_pyarrow(file) == expected
    frame = spark.read.orc(str(base))
    assert frame.columns == SIX
    by_spark = [
        ((row.originalTransaction, row.bucket, row.rowId), row.row.id) for row in frame.collect()
    ]
    assert sorted(by_spark) == expected


def _by_pyarrow(file: Path) -> list[tuple[tuple[int, int, int], int]]:
    table = pyarrow.orc.ORCFile(str(file)).read()
    assert table.column_names == SIX
    rows = table.to_pylist()
    assert {row["operation"] for row in rows} == {0}
    return sorted(
        ((row["originalTransaction"], row["bucket"], row["rowId"]), row["row"]["id"])
        for row in rows
    )
