"""What hooks are told of that Hive's log has no event for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import Compaction
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.hook import PointDraft, PointType
from hms_bridge.model.lateness import LatePolicy
from hms_bridge.model.properties import LAST_EVENT, TARGET_LAST_EVENT
from hms_bridge.model.replication import CycleResult


def acid_written(written: WriteNotification) -> PointDraft:
    """ACID_WRITE: files were added under a transaction, which may still be aborted."""
    message = {
        "txnid": written.txn_id,
        "writeId": written.write_id,
        "db": written.database_name.lower(),
        "table": written.table_name.lower(),
        "partVals": list(written.partition_values),
        "files": list(written.files),
    }
    return PointDraft(
        type=PointType.ACID_WRITE,
        database_name=written.database_name.lower(),
        table_name=written.table_name.lower(),
        message=message,
    )


def compaction_started(compaction: Compaction) -> PointDraft:
    """START_COMPACTION: a worker took an entry of the queue."""
    return _of_compaction(PointType.START_COMPACTION, compaction, {"worker": compaction.worker_id})


def compaction_stopped(compaction: Compaction) -> PointDraft:
    """STOP_COMPACTION: it was refused by a worker, or aborted before anybody took it."""
    more = {"state": compaction.state.word, "errorMessage": compaction.error_message}
    return _of_compaction(PointType.STOP_COMPACTION, compaction, more)


def compaction_cleaned(compaction: Compaction) -> PointDraft:
    """CLEAN_COMPACTION: the cleaner has removed what nobody can see any more."""
    return _of_compaction(PointType.CLEAN_COMPACTION, compaction, {})


def _of_compaction(kind: PointType, compaction: Compaction, more: Mapping[str, Any]) -> PointDraft:
    target = compaction.target
    message = {
        "compactionId": compaction.id,
        "type": compaction.type.name,
        "dbname": target.database,
        "tableName": target.table,
        "partName": target.partition,
        **more,
    }
    return PointDraft(
        type=kind, database_name=target.database, table_name=target.table, message=message
    )


def files_archived(cmroot: str, names: Sequence[str]) -> list[PointDraft]:
    """ARCHIVE_FILE, of each; files of one content have one name."""
    return [_of_file(PointType.ARCHIVE_FILE, cmroot, name) for name in dict.fromkeys(names)]


def file_purged(cmroot: str, name: str) -> PointDraft:
    """PURGE_FILE."""
    return _of_file(PointType.PURGE_FILE, cmroot, name)


def file_restored(cmroot: str, name: str) -> PointDraft:
    """RESTORE_FILE: it is archived as before, after a purge had begun that did not end."""
    return _of_file(PointType.RESTORE_FILE, cmroot, name)


def _of_file(kind: PointType, cmroot: str, name: str) -> PointDraft:
    return PointDraft(type=kind, message={"cmroot": cmroot, "name": name})


def dump_ended(facts: Mapping[str, str | int | None]) -> PointDraft:
    """END_DUMP: a dump is finished, and can be loaded."""
    database = facts.get("db")
    return PointDraft(
        type=PointType.END_DUMP,
        database_name=None if database is None else str(database),
        message=facts,
    )


def load_ended(before: Database, after: Database) -> list[PointDraft]:
    """END_LOAD, if it is one: the last step of a load notes at which event of its own the replica
    stands (ReplLoad; Hive's REPL LOAD does, too). So does a failback, of a database that was no
    replica before: whoever calls leaves that out."""
    noted = after.parameters.get(TARGET_LAST_EVENT)
    if noted is None or noted == before.parameters.get(TARGET_LAST_EVENT):
        return []
    message = {
        "db": after.name,
        "lastReplId": after.parameters.get(LAST_EVENT),
        "lastReplIdBefore": before.parameters.get(LAST_EVENT),
    }
    return [PointDraft(type=PointType.END_LOAD, database_name=after.name, message=message)]


def cycle_ended(policy: str, number: int, result: CycleResult) -> PointDraft:
    """END_CYCLE: a policy's dump and its load are finished, or failed."""
    message = {
        "policy": policy,
        "cycle": number,
        "outcome": result.outcome.value,
        "dumpKind": result.dump_kind,
        "dumpDirectory": result.dump_directory,
        "untilEventId": result.until_event_id,
        "eventCount": result.event_count,
        "fileCount": result.file_count,
        "byteCount": result.byte_count,
        "errorMessage": result.message,
    }
    return PointDraft(type=PointType.END_CYCLE, message=message)


def policy_late(late: LatePolicy) -> PointDraft:
    """LATE_POLICY: a policy's replica has not been brought to its source's state for too long."""
    message = {
        "policy": late.policy,
        "sinceMs": late.since_ms,
        "lastSuccessMs": late.last_success_ms,
        "lateAfterMs": late.late_after_ms,
    }
    return PointDraft(type=PointType.LATE_POLICY, message=message)
