"""The compaction queue."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.errors import MetaError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    CompactionType,
    DeltaCount,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import Scope, Target
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import table_name
from hms_bridge.server.served_metastore import ServedCompactions
from hms_bridge.wire import convert_compaction
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

_COUNTS = {count.number: count for count in DeltaCount}
_DONE = (CompactionState.SUCCEEDED, CompactionState.READY_FOR_CLEANING)


class CompactionCalls(Calls[ServedCompactions]):
    """The queue, for users and for workers."""

    @answers("compact", of="rqst")
    def compact(self, request: Struct) -> None:
        """Queue one; whether it was refused is not answered."""
        self._store.compact(convert_compaction.compaction_request_from_struct(request))

    @answers("compact2", of="rqst")
    def compact2(self, request: Struct) -> Struct:
        """Queue one, and answer its id."""
        return convert_compaction.compaction_response_to_struct(
            self._store.compact(convert_compaction.compaction_request_from_struct(request))
        )

    @answers("submit_for_cleanup")
    def submit_for_cleanup(self, args: Struct) -> bool:
        """Queue the directory of a table that was never made (RollbackCTASHook asks for it)."""
        request = given(args.o1, "o1")
        return self._store.submit_for_cleanup(
            convert_compaction.compaction_request_from_struct(request),
            WriteId(given(args.o2, "o2")),
            TxnId(given(args.o3, "o3")),
        )

    @answers("show_compact", of="rqst")
    def show_compactions(self, request: Struct) -> Struct:
        entries = self._store.show_compactions(convert_compaction.show_request_from_struct(request))
        return hive.ShowCompactResponse(
            compacts=[convert_compaction.compaction_to_element(entry) for entry in entries]
        )

    @answers("find_next_compact", of="workerId")
    def find_next_compaction(self, worker: str) -> Struct:
        return _optional(self._store.find_next_compaction(worker, None))

    @answers("find_next_compact2", of="rqst")
    def find_next_compaction2(self, request: Struct) -> Struct:
        return _optional(
            self._store.find_next_compaction(
                given(request.workerId, "workerId"),
                request.workerVersion or None,
                request.poolName or None,
            )
        )

    @answers("update_compactor_state")
    def update_compactor_state(self, args: Struct) -> None:
        self._store.update_compactor_state(_entry(args), TxnId(given(args.txn_id, "txn_id")))

    @answers("set_hadoop_jobid")
    def set_hadoop_job_id(self, args: Struct) -> None:
        job, number = given(args.jobId, "jobId"), given(args.cq_id, "cq_id")
        self._store.set_hadoop_job_id(job, CompactionId(number))

    @answers("mark_compacted")
    def mark_compacted(self, args: Struct) -> None:
        self._store.mark_compacted(_entry(args))

    @answers("mark_cleaned")
    def mark_cleaned(self, args: Struct) -> None:
        """Done. Records of aborted writes stay, whatever the client says: without them rows that
        are still in some file would count as committed, and only the cleaner here has looked."""
        entry = _entry(args)
        if entry.type is CompactionType.ABORT_TXN_CLEANUP:
            raise MetaError(
                f"a client cannot say that aborted writes of {entry.target} are cleaned up; let "
                "the cleaner of this metastore do it (serve --cleaner, or cleaner run)"
            )
        self._store.mark_cleaned(replace(entry, highest_write_id=WriteId(0)))

    @answers("mark_failed")
    def mark_failed(self, args: Struct) -> None:
        self._store.mark_failed(_entry(args))

    @answers("mark_refused")
    def mark_refused(self, args: Struct) -> None:
        self._store.mark_refused(_entry(args))

    @answers("abort_Compactions", of="rqst")
    def abort_compactions(self, request: Struct) -> Struct:
        ids = [CompactionId(number) for number in given(request.compactionIds, "compactionIds")]
        outcomes = self._store.abort_compactions(ids)
        return hive.AbortCompactResponse(
            abortedcompacts={
                number: hive.AbortCompactionResponseElement(
                    compactionId=number,
                    status="Success" if outcome.is_aborted else "Error",
                    message=outcome.message,
                )
                for number, outcome in outcomes.items()
            }
        )

    @answers("get_latest_committed_compaction_info", of="rqst")
    def latest_committed(self, request: Struct) -> Struct:
        wanted, last = frozenset(request.partitionnames or ()), request.lastCompactionId or 0
        entries = self._store.show_compactions(
            ShowCompactionsRequest(
                scope=Scope(
                    given_name(request.dbname, "dbname"), given_name(request.tablename, "tablename")
                ),
            )
        )
        newest: dict[str | None, Compaction] = {}
        for compaction in sorted(entries, key=lambda entry: entry.id):
            if (
                compaction.state in _DONE
                and compaction.id > last
                and (not wanted or compaction.target.partition in wanted)
            ):
                newest[compaction.target.partition] = compaction
        return hive.GetLatestCommittedCompactionInfoResponse(
            compactions=[
                hive.CompactionInfoStruct(
                    id=compaction.id,
                    dbname=compaction.target.database,
                    tablename=compaction.target.table,
                    partitionname=compaction.target.partition,
                    type=compaction.type.number,
                )
                for compaction in newest.values()
            ]
        )

    @answers("update_compaction_metrics_data", of="data")
    def update_delta_count(self, data: Struct) -> bool:
        """What a worker counted; forgotten below its threshold. Never false: nobody comes between.
        The version that is sent is not heeded, as Hive does not."""
        target = _counted(data.dbname, data.tblname, data.partitionname)
        count, value = _count_of(data.type), given(data.metricvalue, "metricvalue")
        if value < (data.threshold or 0):
            self._store.remove_delta_count(target, count)
        else:
            self._store.put_delta_count(target, count, value)
        return True

    @answers("remove_compaction_metrics_data", of="request")
    def remove_delta_count(self, request: Struct) -> None:
        """What a worker knows not to be many any more."""
        target = _counted(request.dbName, request.tblName, request.partitionName)
        self._store.remove_delta_count(target, _count_of(request.type))


def _counted(database: str | None, table: str | None, partition: str | None) -> Target:
    name = table_name(database, table)
    return Target(name.database, name.table, partition or None)


def _count_of(number: int | None) -> DeltaCount:
    count = _COUNTS.get(given(number, "type"))
    if count is None:
        known = ", ".join(f"{kind.number} {kind.stored}" for kind in DeltaCount)
        raise MetaError(f"no count of deltas has the kind {number}; send one of {known}")
    return count


def _entry(args: Struct) -> Compaction:
    return convert_compaction.compaction_info_from_struct(given(args.cr, "cr"))


def _optional(compaction: Compaction | None) -> Struct:
    info = None if compaction is None else convert_compaction.compaction_info_to_struct(compaction)
    return hive.OptionalCompactionInfoStruct(ci=info)
