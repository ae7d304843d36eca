"""What a client may claim over the wire without being what it says it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.metastore import LocalMetastore, Metastore
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from hms_bridge.model.event import InsertNotification, WriteNotification
from hms_bridge.model.ids import SEED_MAX, CompactionId, TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import (
    AllocateWriteIdsRequest,
    OpenTxnsRequest,
    ReplLastId,
    TableWriteIdState,
    TxnToWriteId,
    TxnType,
)
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.txn.open_txns import REPLAYED_MAX
from hms_bridge.txn.write_id_state import ABORTED_MAX
from tests.conformance.objects import abort, commit, new_database, new_table, open_txn, write
from tests.support.simulated_clock import SimulatedClock
from tests.support.world import World


class Served(NamedTuple):
    client: Metastore
    local: LocalMetastore
    clock: SimulatedClock


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    world = World(tmp_path)
    with (
        MetastoreServer(0, world.metastore) as server,
        ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}") as client,
    ):
        yield Served(client, world.metastore, world.clock)


def seen(metastore: Metastore, database: str) -> str:
    (valid,) = metastore.get_valid_write_ids([f"{database}.t"])
    return valid.format()


def with_an_aborted_write(served: Served) -> str:
    """A table whose write id 2 is aborted."""
    database = new_database(served.client)
    new_table(served.client, database)
    txns = [write(served.client, database)[0] for _ in range(3)]
    commit(served.client, txns[0])
    abort(served.client, txns[1])
    commit(served.client, txns[2])
    assert seen(served.client, database) == f"{database}.t:3:9223372036854775807::2"
    return database


def keep_house(served: Served) -> None:
    served.clock.advance_ms(3_600_000)
    commit(served.client, open_txn(served.client))
    served.clock.advance_ms(3_600_000)
    served.local.run_housekeeping()


def claim(database: str, kind: CompactionType, number: int = 0) -> Compaction:
    """What somebody says who cleaned nothing."""
    return Compaction(
        id=CompactionId(number),
        target=Target(database, "t"),
        type=kind,
        state=CompactionState.READY_FOR_CLEANING,
        highest_write_id=WriteId(SEED_MAX),
    )


def replay(metastore: Metastore, database: str, first: int) -> None:
    """What a REPL LOAD does with the source's write id."""
    source = TxnId(900 + abs(first) % 90)
    metastore.open_txns(
        OpenTxnsRequest(
            user="u",
            host="h",
            type=TxnType.REPL_CREATED,
            repl_policy=f"{database}.*",
            repl_source_txn_ids=(source,),
        )
    )
    pair = TxnToWriteId(txn_id=source, write_id=WriteId(first))
    metastore.allocate_table_write_ids(
        AllocateWriteIdsRequest(
            database_name=database,
            table_name="t",
            repl_policy=f"{database}.*",
            repl_source=(pair,),
        )
    )


def test_nobody_says_over_the_wire_that_aborted_rows_are_gone(served: Served) -> None:
    database = with_an_aborted_write(served)
    with pytest.raises(MetaError, match="a client cannot say that aborted writes"):
        served.client.mark_cleaned(claim(database, CompactionType.ABORT_TXN_CLEANUP))
    keep_house(served)
    assert seen(served.client, database).endswith(":3:9223372036854775807::2")


def test_nor_by_an_entry_that_it_claims(served: Served) -> None:
    database = with_an_aborted_write(served)
    served.client.compact(
        CompactionRequest(target=Target(database, "t"), type=CompactionType.MAJOR)
    )
    entry = served.client.find_next_compaction("me", "4.0")
    assert entry is not None
    entry = replace(entry, highest_write_id=WriteId(SEED_MAX))
    own = open_txn(served.client, TxnType.COMPACTION)
    served.client.update_compactor_state(entry, own)
    served.clock.advance_ms(CompactorSettings().abort_retention_ms)  # which would keep the abort
    served.client.mark_cleaned(entry)
    keep_house(served)
    assert seen(served.client, database).endswith(":3:9223372036854775807::2")


def test_who_is_no_replica_replays_no_write_ids(served: Served) -> None:
    database = with_an_aborted_write(served)
    with pytest.raises(MetaError, match="is no replica"):
        replay(served.client, database, 1)
    assert seen(served.client, database).endswith(":3:9223372036854775807::2")
    assert write(served.client, database)[1] == 4


@pytest.mark.parametrize("first", [0, -5, -(2**63), SEED_MAX + 1, 2**63 - 2])
def test_a_replayed_write_id_is_one_that_a_source_gives(served: Served, first: int) -> None:
    database = new_database(served.client, parameters={"repl.target.for": "true"})
    new_table(served.client, database)
    with pytest.raises(MetaError, match="are no write ids"):
        replay(served.client, database, first)
    assert served.client.get_max_allocated_write_id(database, "t") == 0


def state(database: str, text: str) -> TableWriteIdState:
    return TableWriteIdState(
        valid_write_ids=text, user="u", host="h", database_name=database, table_name="t"
    )


@pytest.mark.parametrize("highest", [-5, SEED_MAX + 1, 2**63 - 2])
def test_a_state_after_which_no_ids_follow_is_refused(served: Served, highest: int) -> None:
    database = new_database(served.client)
    new_table(served.client, database)
    with pytest.raises(MetaError, match="names no highest write id"):
        served.client.repl_table_write_id_state(state(database, f"{database}.t:{highest}:1::"))
    assert write(served.client, database)[1] == 1


def test_one_call_opens_so_many_that_others_need_not_wait(served: Served) -> None:
    database = new_database(served.client)
    aborted = ",".join(map(str, range(1, ABORTED_MAX + 2)))
    text = f"{database}.t:{ABORTED_MAX + 5}:9223372036854775807::{aborted}"
    with pytest.raises(MetaError, match=f"at most {ABORTED_MAX} are taken over"):
        served.client.repl_table_write_id_state(state(database, text))
    with pytest.raises(MetaError, match=f"ask for {REPLAYED_MAX} or fewer"):
        served.client.open_txns(
            OpenTxnsRequest(
                count=REPLAYED_MAX + 1,
                user="u",
                host="h",
                type=TxnType.REPL_CREATED,
                repl_policy="db.*",
                repl_source_txn_ids=tuple(TxnId(one) for one in range(1, REPLAYED_MAX + 2)),
            )
        )
    assert served.client.get_open_txns().txns == ()


def test_who_is_no_replica_is_given_no_position_and_no_broken_replay(served: Served) -> None:
    """A commit that names a position would make a replica of any database; the abort of a replay
    that somebody made up would stop its dumps."""
    database = new_database(served.client)
    own = open_txn(served.client)
    position = ReplLastId(database_name=database, last_repl_id=10**9)
    with pytest.raises(MetaError, match="is no replica"):
        commit(served.client, own, repl_last_id=position)
    commit(served.client, own)
    (made_up,) = served.client.open_txns(
        OpenTxnsRequest(
            user="u",
            host="h",
            type=TxnType.REPL_CREATED,
            repl_policy=f"{database}.*",
            repl_source_txn_ids=(TxnId(5),),
        )
    )
    abort(served.client, made_up)
    assert served.client.get_database(database).parameters == {}


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("{place}/a#b/c", "cannot be named in a dump"),
        ("/etc/passwd", "is not below"),
        ("{place}2/bucket_00000", "is not below"),
        ("{place}/../other/bucket_00000", "has a level"),
        ("bucket_00000", "is no absolute path"),
        ("", "is no absolute path"),
        ("hdfs://evil.example:8020{path}/bucket_00000", "is not below"),
        ("s3a://evil{path}/bucket_00000", "is not below"),
    ],
)
def test_a_write_names_files_of_its_table_only(
    served: Served, caplog: pytest.LogCaptureFixture, file: str, why: str
) -> None:
    """What it names goes into a dump, and from there to the replica."""
    database = new_database(served.client)
    place = new_table(served.client, database).storage.location
    txn, given = write(served.client, database)
    told = WriteNotification(
        txn_id=txn,
        write_id=given,
        database_name=database,
        table_name="t",
        files=(file.format(place=place, path=place.removeprefix("file:")),),
        checksums=("x",),
        subdirectories=("",),
    )
    inserted = InsertNotification(database_name=database, table_name="t", files=told.files)
    last = served.local.get_current_event_id()
    with pytest.raises(InvalidObjectError, match=why):
        served.client.add_write_notifications([told])
    with pytest.raises(InvalidObjectError, match=why):
        served.client.fire_inserts([inserted])
    assert served.local.get_current_event_id() == last
    assert not [one for one in caplog.records if one.exc_info]
    assert served.client.get_write_events(txn) == ()
    good = replace(told, files=(f"{place}/delta_0000001_0000001_0000/bucket_00000",))
    served.client.add_write_notifications([good])
    assert served.client.fire_inserts([replace(inserted, files=good.files)])
    assert len(served.client.get_write_events(txn)) == 1
