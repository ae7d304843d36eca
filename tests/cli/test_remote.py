"""The same verbs over thrift: what a server tells is what its database holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hms_bridge.server.serve import MetastoreServer
from tests.support.busy_metastore import BusyMetastore, copy_golden, opened, work


@pytest.fixture
def remote(busy: BusyMetastore) -> Iterator[tuple[str, str]]:
    """Options that name the server."""
    with opened(busy.program) as store, MetastoreServer(0, store.metastore) as server:
        yield "--metastore", f"thrift://127.0.0.1:{server.port}"


@pytest.mark.parametrize("verb", ["txns", "locks", "compactions"])
def test_listings(busy: BusyMetastore, remote: tuple[str, str], verb: str) -> None:
    here = busy.program.ok(verb, "--format", "json").json
    there = busy.program.ok(verb, *remote, "--format", "json").json
    assert len(there) > 1
    for row in here + there:
        row.pop("acquired_at", None)  # the interface has seconds where the database has more
        row.pop("lastheartbeattime", None)
        row.pop("startedtime", None)
        row.pop("last_heartbeat", None)
        row.pop("enqueuetime", None)
    assert there == here


def test_abort_and_compact(busy: BusyMetastore, remote: tuple[str, str]) -> None:
    busy.program.ok("txns", "abort", str(busy.open_txn), *remote)
    plan = busy.program.ok("compact", "sales.events", "major", "--partition", "a=日本/b=3",
                           "--dry-run", *remote, "--format", "json").json  # fmt: skip
    assert plan["decision"].startswith("major compaction")
    busy.program.ok("compact", "sales.events", "major", "--partition", "a=日本/b=3", *remote)
    assert work(busy.program) == ["compacted", "compacted"]


def test_adopt(busy: BusyMetastore, remote: tuple[str, str]) -> None:
    directory = copy_golden("g01_insert/01-three-inserts", busy.program.folder / "left" / "t")
    busy.program.ok("table", "adopt", str(directory), "--name", "more.t", *remote)
    again = busy.program.run("table", "adopt", str(directory), "--name", "more.t", *remote)
    assert again.exit_code == 1
    assert "more.t is adopted already" in again.err


def test_replicate(busy: BusyMetastore, remote: tuple[str, str]) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("txns", "abort", str(busy.open_txn))
    report = busy.program.ok("repl", "dump", "sales", *remote, "--format", "json").json
    assert report["kind"] == "incremental"
    assert busy.program.ok("repl", "verify", report["dump_dir"])
    loaded = busy.program.ok("repl", "load", "sales", *busy.replica, "--format", "json").json
    assert loaded["last_repl_id"] == report["last_repl_id"]


def test_a_table_that_is_not_there(busy: BusyMetastore, remote: tuple[str, str]) -> None:
    answer = busy.program.run("compact", "sales.ordres", "major", *remote)
    assert answer.exit_code == 1
    assert "did you mean sales.orders?" in answer.err
