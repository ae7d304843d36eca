"""Over thrift a claim cannot choose by kind, and nobody gives a claimed entry back: the program
takes nothing from the default pool that others were asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.server.serve import MetastoreServer
from tests.conformance import objects
from tests.support.busy_metastore import BusyMetastore, opened

WORDS = ("compact", "sales.events", "major", "--partition", "a=日本/b=3", "--run")


@pytest.fixture
def remote(busy: BusyMetastore) -> Iterator[tuple[str, str]]:
    """Options that name a server beside which a Hive's workers serve the default pool: it holds a
    rebalance for them."""
    with opened(busy.program, compactor=CompactorSettings(has_hive_workers=True)) as store:
        store.metastore.create_table(objects.acid_table("sales", "skewed"))
        answer = store.metastore.compact(
            CompactionRequest(target=Target("sales", "skewed"), type=CompactionType.REBALANCE)
        )
        assert answer.is_accepted
        with MetastoreServer(0, store.metastore) as server:
            yield "--metastore", f"thrift://127.0.0.1:{server.port}"


def states(busy: BusyMetastore) -> dict[str, tuple[str, str | None]]:
    """Of the entry of each table: its state and pool."""
    rows = busy.program.ok("compactions", "--format", "json").json
    return {row["tabname"]: (row["state"], row["poolname"]) for row in reversed(rows)}


def test_the_default_pool_is_left_to_others(busy: BusyMetastore, remote: tuple[str, str]) -> None:
    busy.program.ok("txns", "abort", str(busy.open_txn), *remote)
    answer = busy.program.ok(*WORDS, *remote, "--format", "json").json
    assert (answer["state"], answer["poolname"]) == ("ready for cleaning", "hms-bridge")
    assert states(busy)["skewed"] == ("initiated", None)


def test_an_entry_of_the_default_pool_is_not_taken_unasked(
    busy: BusyMetastore, remote: tuple[str, str]
) -> None:
    busy.program.ok("txns", "abort", str(busy.open_txn), *remote)
    busy.program.ok(*WORDS[:-1], *remote)
    answer = busy.program.run(*WORDS, *remote)
    assert answer.exit_code == 1
    assert "waits in the default pool" in answer.err
    assert "--default-pool" in answer.err
    assert states(busy)["events"] == ("initiated", None)


def test_the_default_pool_is_not_taken_while_it_holds_what_others_do(
    busy: BusyMetastore, remote: tuple[str, str]
) -> None:
    busy.program.ok("txns", "abort", str(busy.open_txn), *remote)
    answer = busy.program.run(*WORDS, "--default-pool", *remote)
    assert answer.exit_code == 1
    assert "sales.skewed, which hms-bridge does not do" in answer.err
    assert "it is a rebalance compaction" in answer.err
    assert re.search(r"compaction \d+ of sales\.events/a=日本/b=3 waits in that pool", answer.err)
    assert states(busy)["skewed"] == ("initiated", None)


def test_what_only_a_hive_does_is_not_to_be_run_here(
    busy: BusyMetastore, remote: tuple[str, str]
) -> None:
    """The advice named --run and a worker of ours, and both refused it."""
    answer = busy.program.run("compact", "sales.skewed", "major", *remote)
    assert answer.exit_code == 1
    assert "waits for a worker of a Hive, as hms-bridge does not do it" in answer.err
    assert "--run" not in answer.err


def test_the_default_pool_is_taken_whole_where_it_is_asked_for(
    busy: BusyMetastore, remote: tuple[str, str]
) -> None:
    busy.program.ok("txns", "abort", str(busy.open_txn), *remote)
    rows = busy.program.ok("compactions", "--format", "json").json
    skewed = next(row["compactionid"] for row in rows if row["tabname"] == "skewed")
    with opened(busy.program) as with_client:
        with_client.metastore.abort_compactions([skewed])
    answer = busy.program.ok(*WORDS, "--default-pool", *remote, "--format", "json").json
    assert (answer["state"], answer["poolname"]) == ("ready for cleaning", None)


def test_a_worker_over_thrift_has_a_pool_of_its_own(
    busy: BusyMetastore, remote: tuple[str, str]
) -> None:
    with ThriftMetastoreClient(remote[1]) as client:
        assert client.find_next_compaction("w", "1", is_selective=True) is None
        client.compact(
            CompactionRequest(
                target=Target("sales", "orders"), type=CompactionType.MINOR, pool_name="hms-bridge"
            )
        )
        taken = client.find_next_compaction("w", "1", is_selective=True)
    assert taken is not None
    assert taken.target.table == "orders"
    assert states(busy)["skewed"] == ("initiated", None)


@pytest.mark.parametrize(
    "words",
    [("--default-pool",), ("--default-pool", "--run"), ("--default-pool", "--run", "--pool", "x")],
)
def test_the_default_pool_goes_with_a_server_and_a_run(
    busy: BusyMetastore, words: tuple[str, ...]
) -> None:
    answer = busy.program.run(*WORDS[:-1], *words)
    assert answer.exit_code == 2
    assert "--default-pool goes with --run" in answer.err
