"""What every metastore does with its compaction queue, as users and workers see it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.errors import NoSuchCompactionError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import TxnType
from tests.conformance.objects import (
    DS,
    commit,
    new_database,
    new_table,
    open_txn,
    partition,
    unique,
    write,
)


def ask(
    metastore: Metastore, database: str, partition: str | None = None, **given: object
) -> CompactionId:
    wanted = CompactionRequest(
        target=Target(database, "t", partition), type=CompactionType.MAJOR, **given  # type: ignore[arg-type]
    )  # fmt: skip
    answer = metastore.compact(wanted)
    assert answer.is_accepted
    assert answer.id is not None
    return answer.id


def shown(metastore: Metastore, database: str) -> tuple[Compaction, ...]:
    return metastore.show_compactions(ShowCompactionsRequest(scope=Scope(database)))


class CompactionBehaviour:
    """Inherit through MetastoreBehaviour. Each test has a pool of its own."""

    def _claimed(self, metastore: Metastore) -> tuple[str, Compaction, TxnId]:
        """A table with one committed write, and a compaction of it that a worker has begun."""
        name, pool = new_database(metastore), unique("pool")
        new_table(metastore, name)
        txn, given = write(metastore, name)
        commit(metastore, txn)
        ask(metastore, name, pool_name=pool)
        found = metastore.find_next_compaction("worker-1", "4.0", pool)
        assert found is not None
        own = open_txn(metastore, TxnType.COMPACTION)
        ready = replace(found, highest_write_id=given, run_as="hive", txn_id=own)
        metastore.update_compactor_state(ready, own)
        return name, ready, own

    def test_a_request_is_queued(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        queued = ask(metastore, name, run_as="hive")
        (found,) = shown(metastore, name)
        assert (found.id, found.state, found.type) == (
            queued, CompactionState.INITIATED, CompactionType.MAJOR,
        )  # fmt: skip
        assert (found.target.table, found.target.partition) == ("t", None)

    def test_an_entry_shows_its_pool(self, metastore: Metastore) -> None:
        """Whoever does the work of an entry asks for it under the pool that is shown."""
        name, other, pool = new_database(metastore), new_database(metastore), unique("pool")
        new_table(metastore, name)
        new_table(metastore, other)
        ask(metastore, name)
        ask(metastore, other, pool_name=pool)
        assert [one.pool_name for one in shown(metastore, name)] == [None]
        assert [one.pool_name for one in shown(metastore, other)] == [pool]

    def test_a_worker_is_told_the_properties(self, metastore: Metastore) -> None:
        # Thrift's show_compact has no field for them; what a worker claims has.
        name, pool = new_database(metastore), unique("pool")
        new_table(metastore, name)
        ask(metastore, name, pool_name=pool, properties={"k": "v:1", "ü": ""})
        claimed = metastore.find_next_compaction("w", "4.0", pool)
        assert claimed is not None
        assert dict(claimed.properties) == {"k": "v:1", "ü": ""}

    def test_the_same_target_is_queued_once(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)
        metastore.add_partitions(name, "t", [partition(name, "t", v) for v in ("a", "b")])
        first = ask(metastore, name, "ds=a")
        again = metastore.compact(
            CompactionRequest(
                target=Target(name, "t", "ds=a"),
                type=CompactionType.MINOR,
            )
        )  # fmt: skip
        assert not again.is_accepted
        assert again.state == "refused"
        assert str(first) in (again.error_message or "")
        ask(metastore, name, "ds=b")

    def test_an_unknown_target_is_refused(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)
        for table, part in (("none", None), ("t", "ds=none")):
            with pytest.raises(NoSuchObjectError):
                metastore.compact(
                    CompactionRequest(
                        target=Target(name, table, part),
                        type=CompactionType.MAJOR,
                    )
                )  # fmt: skip

    def test_workers_take_the_oldest_of_their_pool(self, metastore: Metastore) -> None:
        pool = unique("pool")
        queued = []
        for _ in range(2):
            name = new_database(metastore)
            new_table(metastore, name)
            queued.append(ask(metastore, name, pool_name=pool))
        taken = [metastore.find_next_compaction(f"w-{n}", "4.0", pool) for n in range(3)]
        assert [one and one.id for one in taken] == [*queued, None]
        assert taken[0] is not None
        assert (taken[0].state, taken[0].worker_id) == (CompactionState.WORKING, "w-0")

    def test_a_compaction_commits_with_its_transaction(self, metastore: Metastore) -> None:
        name, ready, own = self._claimed(metastore)
        metastore.mark_compacted(ready)
        commit(metastore, own)
        (found,) = shown(metastore, name)
        assert found.state is CompactionState.READY_FOR_CLEANING
        assert found.highest_write_id == ready.highest_write_id
        assert found.next_txn_id is not None
        assert found.next_txn_id >= own

    def test_what_is_compacted_already_is_refused(self, metastore: Metastore) -> None:
        name, ready, own = self._claimed(metastore)
        metastore.mark_compacted(ready)
        commit(metastore, own)
        answer = metastore.compact(
            CompactionRequest(target=Target(name, "t"), type=CompactionType.MAJOR)
        )
        assert not answer.is_accepted

    def test_a_cleaned_compaction_has_succeeded(self, metastore: Metastore) -> None:
        name, ready, own = self._claimed(metastore)
        metastore.mark_compacted(ready)
        commit(metastore, own)
        metastore.mark_cleaned(shown(metastore, name)[0])
        (found,) = shown(metastore, name)
        assert found.state is CompactionState.SUCCEEDED
        assert found.ended_ms is not None

    def test_a_failed_compaction_tells_why(self, metastore: Metastore) -> None:
        name, ready, _ = self._claimed(metastore)
        metastore.mark_failed(replace(ready, error_message="disk full"))
        (found,) = shown(metastore, name)
        assert (found.state, found.error_message) == (CompactionState.FAILED, "disk full")

    def test_a_refused_compaction_tells_why(self, metastore: Metastore) -> None:
        name, ready, _ = self._claimed(metastore)
        metastore.mark_refused(replace(ready, error_message="not now"))
        (found,) = shown(metastore, name)
        assert (found.state, found.error_message) == (CompactionState.REFUSED, "not now")

    def test_who_refuses_commits(self, metastore: Metastore) -> None:
        _, ready, own = self._claimed(metastore)
        metastore.mark_refused(replace(ready, error_message="not now"))
        commit(metastore, own)
        ids = {txn.id for txn in metastore.get_open_txns_info()}
        assert own not in ids

    def test_only_waiting_compactions_are_aborted(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        waiting = ask(metastore, name, pool_name=unique("pool"))
        other, ready, _ = self._claimed(metastore)
        told = metastore.abort_compactions([waiting, ready.id])
        assert {number: outcome.is_aborted for number, outcome in told.items()} == {
            waiting: True,
            ready.id: False,
        }
        assert told[ready.id].message.endswith("compaction is in state-working")
        assert shown(metastore, name)[0].state is CompactionState.ABORTED
        assert shown(metastore, other)[0].state is CompactionState.WORKING

    def test_an_unknown_compaction_is_refused(self, metastore: Metastore) -> None:
        unknown = Compaction(
            id=CompactionId(9_000_000_000), target=Target("d", "t"),
            type=CompactionType.MAJOR, state=CompactionState.WORKING, highest_write_id=WriteId(1),
        )  # fmt: skip
        with pytest.raises(NoSuchCompactionError):
            metastore.mark_compacted(unknown)
