"""What every metastore does with transactions, write ids and locks."""

from __future__ import annotations

import pytest

from hms_bridge.errors import (
    MetaError,
    NoSuchLockError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnOpenError,
)
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockFilter, LockState, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import (
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    DynamicPartitions,
    OpenTxnsRequest,
    TableWriteIdState,
    TxnState,
    TxnType,
)
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.repl.load.write_id_owner import owns
from hms_bridge.repl.whole_lists import whole_lists
from tests.conformance.objects import (
    abort,
    commit,
    component,
    new_database,
    new_table,
    open_txn,
    request,
    unique,
    write,
    write_id,
)


def state_of(metastore: Metastore, txn: TxnId) -> TxnState | None:
    return {one.id: one.state for one in metastore.get_open_txns().txns}.get(txn)


class TransactionBehaviour:
    """Inherit through MetastoreBehaviour, and give the fixture `metastore`."""

    def test_ids_ascend(self, metastore: Metastore) -> None:
        ids = metastore.open_txns(OpenTxnsRequest(count=3, user="u", host="h"))
        later = open_txn(metastore)
        assert list(ids) == sorted(ids)
        assert len(set(ids)) == 3
        assert later > ids[-1]
        assert metastore.get_open_txns().high_watermark >= later
        metastore.abort_txns([*ids, later])

    def test_a_committed_transaction_is_not_listed(self, metastore: Metastore) -> None:
        txn = open_txn(metastore)
        assert state_of(metastore, txn) is TxnState.OPEN
        commit(metastore, txn)
        assert state_of(metastore, txn) is None

    def test_committing_twice_is_one_commit(self, metastore: Metastore) -> None:
        txn = open_txn(metastore)
        commit(metastore, txn)
        commit(metastore, txn)

    def test_an_aborted_transaction_does_not_commit(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, _ = write(metastore, name)
        abort(metastore, txn)
        abort(metastore, txn)
        assert state_of(metastore, txn) is TxnState.ABORTED
        with pytest.raises(TxnAbortedError):
            commit(metastore, txn)

    def test_a_committed_transaction_does_not_abort(self, metastore: Metastore) -> None:
        txn = open_txn(metastore)
        commit(metastore, txn)
        with pytest.raises(NoSuchTxnError):
            abort(metastore, txn)

    def test_unknown_transactions_are_refused(self, metastore: Metastore) -> None:
        unknown = TxnId(9_000_000_000)
        for verb in (commit, abort):
            with pytest.raises(NoSuchTxnError):
                verb(metastore, unknown)
        with pytest.raises(NoSuchTxnError):
            metastore.heartbeat(unknown, LockId(0))

    def test_aborting_many_leaves_out_what_is_not_open(self, metastore: Metastore) -> None:
        done, open_ = open_txn(metastore), open_txn(metastore)
        commit(metastore, done)
        metastore.abort_txns([done, open_, TxnId(9_000_000_000)])
        with pytest.raises(TxnAbortedError):
            commit(metastore, open_)

    def test_read_only_transactions_are_not_listed(self, metastore: Metastore) -> None:
        txn = open_txn(metastore, TxnType.READ_ONLY)
        assert state_of(metastore, txn) is None
        listed = metastore.get_open_txns(frozenset())
        assert txn in {one.id for one in listed.txns}
        assert metastore.get_open_txns().high_watermark >= txn
        commit(metastore, txn)

    def test_the_lowest_open_transaction_is_told(self, metastore: Metastore) -> None:
        txn = open_txn(metastore, TxnType.READ_ONLY)
        lowest = metastore.get_open_txns().min_open_txn
        assert lowest is not None
        assert lowest <= txn
        commit(metastore, txn)

    def test_transactions_are_shown_with_their_users(self, metastore: Metastore) -> None:
        txn = open_txn(metastore)
        shown = {one.id: one for one in metastore.get_open_txns_info()}[txn]
        assert (shown.user, shown.host, shown.state) == ("u", "h", TxnState.OPEN)
        abort(metastore, txn)

    def test_a_heartbeat_tells_how_it_stands(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        open_, done = open_txn(metastore), open_txn(metastore)
        gone, _ = write(metastore, name)
        commit(metastore, done)
        abort(metastore, gone)
        metastore.heartbeat(open_, LockId(0))
        metastore.heartbeat(TxnId(0), LockId(0))
        with pytest.raises(TxnAbortedError):
            metastore.heartbeat(gone, LockId(0))
        with pytest.raises(NoSuchLockError):
            metastore.heartbeat(TxnId(0), LockId(9_000_000_000))
        told = metastore.heartbeat_txn_range(open_, gone)
        assert open_ not in {*told.aborted, *told.missing}
        assert gone in told.aborted
        assert done in told.missing
        abort(metastore, open_)

    # -- write ids

    def test_write_ids_count_for_each_table(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        first, second = open_txn(metastore), open_txn(metastore)
        assert metastore.get_max_allocated_write_id(name, "t") == 0
        assert [write_id(metastore, txn, name) for txn in (first, second)] == [1, 2]
        assert write_id(metastore, first, name, "u") == 1
        assert write_id(metastore, first, name) == 1
        assert metastore.get_max_allocated_write_id(name, "t") == 2
        metastore.abort_txns([first, second])

    def test_whose_a_write_id_is_can_be_told(self, metastore: Metastore) -> None:
        """Asked with snapshots only, as a load asks any metastore."""
        name = new_database(metastore)
        first, second, third = (open_txn(metastore) for _ in range(3))
        for txn in (first, second, third):
            write_id(metastore, txn, name)
        metastore.abort_txns([first])
        commit(metastore, second)
        for txn, own in ((first, 1), (second, 2), (third, 3)):
            owned = [one for one in (1, 2, 3) if owns(metastore, f"{name}.t", txn, WriteId(one))]
            assert owned == [own]
        with pytest.raises(MetaError, match="(?i)invalid write id 4"):
            metastore.get_valid_write_ids([f"{name}.t"], write_id=WriteId(4))
        (seen,) = metastore.get_valid_write_ids([f"{name}.t"], write_id=WriteId(2))
        assert seen.is_valid(WriteId(2))
        metastore.abort_txns([third])

    def test_a_list_of_unseen_ids_only_is_told_whole(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        txns = [open_txn(metastore) for _ in range(5)]
        for txn in txns:
            write_id(metastore, txn, name)
        metastore.abort_txns(txns[:3])
        (whole,) = whole_lists(metastore, [f"{name}.t"], metastore.get_open_txns().snapshot())
        assert whole.high_watermark == 5
        assert (whole.aborted_ids, whole.open_ids) == ((1, 2, 3), (4, 5))
        metastore.abort_txns(txns)

    def test_write_ids_ascend_with_transactions(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        ids = metastore.open_txns(OpenTxnsRequest(count=3, user="u", host="h"))
        given = metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(
                database_name=name, table_name="t", txn_ids=(ids[2], ids[0], ids[1])
            )
        )
        assert [(one.txn_id, one.write_id) for one in given] == list(
            zip(ids, (1, 2, 3), strict=True)
        )
        metastore.abort_txns(ids)

    def test_only_open_writers_get_write_ids(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        done, reader = open_txn(metastore), open_txn(metastore, TxnType.READ_ONLY)
        commit(metastore, done)
        for txn in (done, reader):
            with pytest.raises(MetaError):
                write_id(metastore, txn, name)
        commit(metastore, reader)

    def test_a_seed_comes_before_the_first_write(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        metastore.seed_write_id(name, "t", 10_000_000)  # type: ignore[arg-type]
        txn = open_txn(metastore)
        assert write_id(metastore, txn, name) == 10_000_001
        with pytest.raises(MetaError):
            metastore.seed_write_id(name, "t", 5)  # type: ignore[arg-type]
        abort(metastore, txn)

    def test_a_snapshot_sees_what_was_committed(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        (done, one), (open_, two), (gone, three) = (write(metastore, name) for _ in range(3))
        commit(metastore, done)
        abort(metastore, gone)
        (seen,) = metastore.get_valid_write_ids([f"{name}.t"])
        assert seen.table == f"{name}.t"
        assert seen.high_watermark == 3
        assert seen.is_valid(one)
        assert not seen.is_valid(two)
        assert not seen.is_valid(three)
        assert seen.is_aborted(three)
        assert not seen.is_aborted(two)
        commit(metastore, open_)
        (later,) = metastore.get_valid_write_ids([f"{name}.t"])
        assert later.is_valid(two)

    def test_a_table_without_writes_has_an_empty_list(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        lists = metastore.get_valid_write_ids([f"{name}.b", f"{name}.a"])
        assert [one.table for one in lists] == [f"{name}.b", f"{name}.a"]
        assert [one.high_watermark for one in lists] == [0, 0]

    def test_an_older_snapshot_does_not_see_later_writes(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        first, one = write(metastore, name)
        commit(metastore, first)
        second, two = write(metastore, name)
        commit(metastore, second)
        (seen,) = metastore.get_valid_write_ids(
            [f"{name}.t"], ValidTxnList.parse(f"{first}:9223372036854775807::")
        )
        assert (seen.is_valid(one), seen.is_valid(two)) == (True, False)

    def test_a_replica_gets_the_state_of_its_source(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        state = TableWriteIdState(
            valid_write_ids=f"src.t:5:{2**63 - 1}::3,4",
            user="u", host="h", database_name=name, table_name="t",
        )  # fmt: skip
        metastore.repl_table_write_id_state(state)
        metastore.repl_table_write_id_state(state)
        assert metastore.get_max_allocated_write_id(name, "t") == 5
        (seen,) = metastore.get_valid_write_ids([f"{name}.t"])
        assert [seen.is_valid(n) for n in (1, 2, 3, 4)] == [True, True, False, False]  # type: ignore[arg-type]

    def test_replayed_transactions_keep_their_ids(self, metastore: Metastore) -> None:
        policy = f"{unique('db')}.*"
        opening = OpenTxnsRequest(
            count=2, user="u", host="h", type=TxnType.REPL_CREATED, repl_policy=policy,
            repl_source_txn_ids=(TxnId(71), TxnId(72)),
        )  # fmt: skip
        ids = metastore.open_txns(opening)
        assert metastore.open_txns(opening) == ids
        for source in (71, 72, 72, 99):
            commit(metastore, TxnId(source), type=TxnType.REPL_CREATED, repl_policy=policy)
        assert [state_of(metastore, txn) for txn in ids] == [None, None]

    def test_replayed_transactions_commit_together(self, metastore: Metastore) -> None:
        policy = f"{unique('db')}.*"
        sources = tuple(TxnId(one) for one in (91, 92, 93))
        ids = metastore.open_txns(
            OpenTxnsRequest(
                count=3, user="u", host="h", type=TxnType.REPL_CREATED, repl_policy=policy,
                repl_source_txn_ids=sources,
            )
        )  # fmt: skip
        metastore.commit_replays(
            [
                CommitTxnRequest(txn_id=TxnId(one), type=TxnType.REPL_CREATED, repl_policy=policy)
                for one in (92, 91, 92, 99)
            ]
        )
        assert [state_of(metastore, txn) for txn in ids] == [None, None, TxnState.OPEN]
        assert list(metastore.get_replayed_txns(policy)) == [93]

    def test_replayed_transactions_are_told_until_they_end(self, metastore: Metastore) -> None:
        policy, other = f"{unique('db')}.*", f"{unique('db')}.*"
        for name, sources in ((policy, (81, 82)), (other, (82,))):
            opening = OpenTxnsRequest(
                count=len(sources), user="u", host="h", type=TxnType.REPL_CREATED,
                repl_policy=name, repl_source_txn_ids=tuple(TxnId(one) for one in sources),
            )  # fmt: skip
            ids = metastore.open_txns(opening)
            assert metastore.get_replayed_txns(name) == dict(zip(sources, ids, strict=True))
        commit(metastore, TxnId(82), type=TxnType.REPL_CREATED, repl_policy=policy)
        assert list(metastore.get_replayed_txns(policy)) == [81]
        assert metastore.get_replayed_txns(other) == {82: ids[0]}
        assert metastore.get_replayed_txns(f"{unique('db')}.*") == {}

    # -- conflicts

    def test_the_first_committer_wins(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        first, _ = write(metastore, name, operation=DataOperation.UPDATE)
        second, _ = write(metastore, name, operation=DataOperation.DELETE)
        commit(metastore, first, is_exclusive_write_enabled=False)
        with pytest.raises(TxnAbortedError):
            commit(metastore, second, is_exclusive_write_enabled=False)
        # The abort stays although the call failed.
        assert state_of(metastore, second) is TxnState.ABORTED

    def test_a_writer_learns_that_its_snapshot_is_too_old(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        first, _ = write(metastore, name, operation=DataOperation.UPDATE)
        second, _ = write(metastore, name, operation=DataOperation.DELETE)
        inserter, _ = write(metastore, name)
        assert metastore.get_latest_txn_in_conflict(second) is None
        commit(metastore, first, is_exclusive_write_enabled=False)
        assert metastore.get_latest_txn_in_conflict(second) == first
        assert metastore.get_latest_txn_in_conflict(inserter) is None
        abort(metastore, second)
        commit(metastore, inserter)

    def test_inserts_never_conflict(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        first, _ = write(metastore, name, operation=DataOperation.UPDATE)
        second, _ = write(metastore, name)
        commit(metastore, first, is_exclusive_write_enabled=False)
        commit(metastore, second, is_exclusive_write_enabled=False)

    def test_different_partitions_do_not_conflict(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txns = []
        for value in ("a", "b"):
            txn = open_txn(metastore)
            given = write_id(metastore, txn, name)
            metastore.add_dynamic_partitions(
                DynamicPartitions(
                    txn_id=txn, write_id=given, database_name=name, table_name="t",
                    partition_names=(f"ds={value}",), operation=DataOperation.UPDATE,
                )
            )  # fmt: skip
            txns.append(txn)
        for txn in txns:
            commit(metastore, txn, is_exclusive_write_enabled=False)


class LockBehaviour:
    """Inherit through MetastoreBehaviour, and give the fixture `metastore`."""

    def test_shared_locks_stand_together(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        for _ in range(2):
            assert metastore.lock(request(component(name))).state is LockState.ACQUIRED

    def test_an_exclusive_lock_waits_its_turn(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        reader = metastore.lock(request(component(name)))
        writer = metastore.lock(request(component(name, kind=LockType.EXCLUSIVE)))
        late = metastore.lock(request(component(name)))
        assert (writer.state, late.state) == (LockState.WAITING, LockState.WAITING)
        metastore.unlock(reader.lock_id)
        assert metastore.check_lock(late.lock_id).state is LockState.WAITING
        assert metastore.check_lock(writer.lock_id).state is LockState.ACQUIRED
        metastore.unlock(writer.lock_id)
        assert metastore.check_lock(late.lock_id).state is LockState.ACQUIRED

    def test_locks_are_granted_all_or_none(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        held = metastore.lock(request(component(name, "a", LockType.EXCLUSIVE)))
        both = metastore.lock(
            request(component(name, "a"), component(name, "b", LockType.EXCLUSIVE))
        )
        assert both.state is LockState.WAITING
        # The waiting one keeps its place on both tables.
        behind = metastore.lock(request(component(name, "b")))
        assert behind.state is LockState.WAITING
        metastore.unlock(held.lock_id)
        assert metastore.check_lock(both.lock_id).state is LockState.ACQUIRED

    def test_writers_that_may_conflict_share(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        for kind, expected in (
            (LockType.SHARED_WRITE, LockState.ACQUIRED),
            (LockType.SHARED_WRITE, LockState.ACQUIRED),
            (LockType.SHARED_READ, LockState.ACQUIRED),
            (LockType.EXCL_WRITE, LockState.WAITING),
        ):
            assert metastore.lock(request(component(name, kind=kind))).state is expected

    def test_a_read_that_does_not_wait_is_not_enqueued(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        metastore.lock(request(component(name, kind=LockType.EXCLUSIVE)))
        txn = open_txn(metastore, TxnType.READ_ONLY)
        refused = metastore.lock(request(component(name), txn=txn, is_zero_wait_read=True))
        assert refused.state is LockState.NOT_ACQUIRED
        assert len(metastore.show_locks(LockFilter(scope=Scope(name)))) == 1
        commit(metastore, txn)

    def test_unlocking_is_idempotent(self, metastore: Metastore) -> None:
        held = metastore.lock(request(component(new_database(metastore))))
        metastore.unlock(held.lock_id)
        metastore.unlock(held.lock_id)
        with pytest.raises(NoSuchLockError):
            metastore.check_lock(held.lock_id)

    def test_locks_of_a_transaction_go_with_it(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, _ = write(metastore, name)
        (shown,) = metastore.show_locks(LockFilter(scope=Scope(name)))
        assert (shown.txn_id, shown.scope.table, shown.state) == (txn, "t", LockState.ACQUIRED)
        with pytest.raises(TxnOpenError):
            metastore.unlock(shown.lock_id)
        commit(metastore, txn)
        assert metastore.show_locks(LockFilter(scope=Scope(name))) == ()

    def test_an_ended_transaction_gets_no_locks(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, _ = write(metastore, name)
        abort(metastore, txn)
        with pytest.raises(TxnAbortedError):
            metastore.lock(request(component(name), txn=txn))
        with pytest.raises(NoSuchTxnError):
            metastore.lock(request(component(name), txn=TxnId(9_000_000_000)))
