"""The part of a metastore that replication needs, in memory, with Hive's rules for replayed ids."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hms_bridge.clock import Clock
from hms_bridge.errors import (
    AlreadyExistsError,
    MetaError,
    NoSuchLockError,
    NoSuchObjectError,
    NoSuchTxnError,
)
from hms_bridge.model.catalog import Database, Partition, Table, TableType
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId, LockId, TxnId, WriteId
from hms_bridge.model.lock import LockFilter, LockInfo, LockRequest, LockResponse, LockState
from hms_bridge.model.partition_name import parse_partition_name, partition_name
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxn,
    OpenTxns,
    OpenTxnsRequest,
    TableWriteIdState,
    TxnState,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.txn.lock_rules import LockTarget, blocks
from tests.support.simulated_clock import SimulatedClock


class ReplMetastore:
    """Catalog, transactions, locks, events. Locations are local paths below ``warehouse``."""

    def __init__(self, warehouse: Path, clock: Clock | None = None) -> None:
        self.warehouse = warehouse
        self.clock = clock or SimulatedClock()
        self.databases: dict[str, Database] = {}
        self.tables: dict[tuple[str, str], Table] = {}
        self.partitions: dict[tuple[str, str], dict[tuple[str, ...], Partition]] = {}
        self.txns: dict[TxnId, OpenTxn] = {}
        self.next_txn = 1
        self.write_ids: dict[tuple[str, str], dict[WriteId, TxnId]] = {}
        self.next_write_id: dict[tuple[str, str], int] = {}
        self.repl_map: dict[tuple[str, TxnId], TxnId] = {}
        self.events: list[NotificationEvent] = []
        self.current_event = 0
        self.write_events: dict[TxnId, list[WriteEvent]] = {}
        self.locks: list[LockInfo] = []
        self.next_lock = 1
        self.queued_majors: list[str] = []

    def _tick(self) -> None:
        self.current_event += 1

    # catalog

    def create_database(self, database: Database) -> None:
        if database.name in self.databases:
            raise AlreadyExistsError(database.name)
        location = database.location or str(self.warehouse / f"{database.name}.db")
        Path(location).mkdir(parents=True, exist_ok=True)
        self.databases[database.name] = replace(database, location=location)
        self._tick()

    def get_database(self, name: str, catalog: str = "hive") -> Database:
        if name not in self.databases:
            raise NoSuchObjectError(f"database {name}")
        return self.databases[name]

    def alter_database(self, name: str, database: Database) -> None:
        self.databases[name] = replace(self.get_database(name), **_altered(database))
        self._tick()

    def create_table(self, table: Table) -> None:
        key = (table.database_name, table.name)
        database = self.get_database(table.database_name)
        if key in self.tables:
            raise AlreadyExistsError(table.full_name)
        location = table.storage.location
        if location is None and table.type != TableType.VIRTUAL_VIEW.value:
            location = f"{database.location}/{table.name}"
        if location is not None:
            Path(location).mkdir(parents=True, exist_ok=True)
        self.tables[key] = replace(table, storage=replace(table.storage, location=location))
        self.partitions[key] = {}
        self._tick()

    def get_table(self, database: str, name: str, catalog: str = "hive") -> Table:
        if (database, name) not in self.tables:
            raise NoSuchObjectError(f"{database}.{name}")
        return self.tables[database, name]

    def get_tables(
        self,
        database: str,
        pattern: str | None = None,
        table_type: str | None = None,
        catalog: str = "hive",
    ) -> tuple[str, ...]:
        return tuple(sorted(name for db, name in self.tables if db == database))

    def alter_table(
        self,
        database: str,
        name: str,
        table: Table,
        *,
        environment: Mapping[str, str] | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        old = self.get_table(database, name)
        if table.name != name:
            self._rename(old, table)
        else:
            self.tables[database, name] = table
        self._tick()

    def _rename(self, old: Table, new: Table) -> None:
        before, after = (old.database_name, old.name), (new.database_name, new.name)
        location = new.storage.location
        if old.type == TableType.MANAGED_TABLE.value:
            location = f"{self.get_database(new.database_name).location}/{new.name}"
            Path(str(old.storage.location)).rename(location)
        self.tables[after] = replace(new, storage=replace(new.storage, location=location))
        del self.tables[before]
        self.partitions[after] = {
            values: replace(
                one,
                table_name=new.name,
                storage=replace(
                    one.storage,
                    location=str(one.storage.location).replace(
                        str(old.storage.location), str(location), 1
                    ),
                ),
            )
            for values, one in self.partitions.pop(before).items()
        }
        for kept in (self.write_ids, self.next_write_id):
            if before in kept:
                kept[after] = kept.pop(before)  # type: ignore[index, attr-defined]

    def truncate_table(
        self,
        database: str,
        name: str,
        partition_names: Sequence[str] | None = None,
        *,
        write_id: WriteId | None = None,
        valid_write_ids: str | None = None,
        is_data_deleted: bool = True,
        catalog: str = "hive",
    ) -> None:
        raise NotImplementedError("nothing in a replication truncates through the metastore")

    def drop_table(
        self,
        database: str,
        name: str,
        *,
        catalog: str = "hive",
        is_data_deleted: bool = True,
        is_purge: bool = False,
    ) -> None:
        table = self.get_table(database, name)
        key = (database, name)
        if table.type == TableType.MANAGED_TABLE.value and table.storage.location:
            shutil.rmtree(table.storage.location, ignore_errors=True)
        for kept in (self.tables, self.partitions, self.write_ids, self.next_write_id):
            kept.pop(key, None)  # type: ignore[attr-defined]
        self._tick()

    def add_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        is_if_not_exists: bool = False,
        catalog: str = "hive",
    ) -> tuple[Partition, ...]:
        owner = self.get_table(database, table)
        known = self.partitions[database, table]
        added = []
        for one in partitions:
            if one.values in known:
                if is_if_not_exists:
                    continue
                raise AlreadyExistsError(str(one.values))
            name = partition_name(owner.partition_columns, one.values)
            location = one.storage.location or f"{owner.storage.location}/{name}"
            Path(location).mkdir(parents=True, exist_ok=True)
            known[one.values] = replace(one, storage=replace(one.storage, location=location))
            added.append(known[one.values])
        self._tick()
        return tuple(added)

    def get_partition(
        self, database: str, table: str, values: Sequence[str], catalog: str = "hive"
    ) -> Partition:
        self.get_table(database, table)
        if tuple(values) not in self.partitions[database, table]:
            raise NoSuchObjectError(f"{database}.{table}{values}")
        return self.partitions[database, table][tuple(values)]

    def get_partitions(
        self, database: str, table: str, max_parts: int = -1, catalog: str = "hive"
    ) -> tuple[Partition, ...]:
        self.get_table(database, table)
        return tuple(self.partitions[database, table].values())

    def get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str], catalog: str = "hive"
    ) -> tuple[Partition, ...]:
        wanted = {tuple(value for _, value in parse_partition_name(name)) for name in names}
        return tuple(one for one in self.get_partitions(database, table) if one.values in wanted)

    def alter_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        environment: Mapping[str, str] | None = None,
        catalog: str = "hive",
        is_event_each: bool = False,
    ) -> None:
        for one in partitions:
            self.get_partition(database, table, one.values)
            self.partitions[database, table][one.values] = one
        self._tick()

    def drop_partitions(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        *,
        catalog: str = "hive",
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> None:
        owner = self.get_table(database, table)
        for name in names:
            values = tuple(value for _, value in parse_partition_name(name))
            gone = self.partitions[database, table].pop(values, None)
            if gone is None and not is_if_exists:
                raise NoSuchObjectError(name)
            if gone is not None and owner.type == TableType.MANAGED_TABLE.value:
                shutil.rmtree(str(gone.storage.location), ignore_errors=True)
        self._tick()

    # transactions

    def open_txns(self, request: OpenTxnsRequest) -> tuple[TxnId, ...]:
        opened = []
        sources = request.repl_source_txn_ids or (None,) * request.count
        for source in sources:
            key = (request.repl_policy or "", source or TxnId(0))
            if source is not None and key in self.repl_map:
                opened.append(self.repl_map[key])
                continue
            txn_id = TxnId(self.next_txn)
            self.next_txn += 1
            self.txns[txn_id] = OpenTxn(id=txn_id, state=TxnState.OPEN, type=request.type)
            if source is not None:
                self.repl_map[key] = txn_id
            opened.append(txn_id)
        self._tick()
        return tuple(opened)

    def get_open_txns(
        self, excluded_types: frozenset[TxnType] = frozenset({TxnType.READ_ONLY})
    ) -> OpenTxns:
        shown = tuple(
            one
            for one in self.txns.values()
            if one.state is not TxnState.COMMITTED and one.type not in excluded_types
        )
        return OpenTxns(high_watermark=TxnId(self.next_txn - 1), txns=shown)

    def commit_txn(self, request: CommitTxnRequest) -> None:
        txn_id = request.txn_id
        if request.repl_policy is not None:
            target = self.repl_map.pop((request.repl_policy, txn_id), None)
            if target is None:
                return
            txn_id = target
        if self.txns[txn_id].state is TxnState.ABORTED:
            raise NoSuchTxnError(str(txn_id))
        self.txns[txn_id] = replace(self.txns[txn_id], state=TxnState.COMMITTED)
        if request.repl_last_id is not None:
            name = request.repl_last_id.database_name
            database = self.databases[name]
            parameters = {
                **database.parameters,
                "repl.last.id": str(request.repl_last_id.last_repl_id),
            }
            self.databases[name] = replace(database, parameters=parameters)
        self._tick()

    def abort_txn(self, request: AbortTxnRequest) -> None:
        txn_id = request.txn_id
        if request.repl_policy is not None:
            target = self.repl_map.pop((request.repl_policy, txn_id), None)
            if target is None:
                return
            txn_id = target
        self.txns[txn_id] = replace(self.txns[txn_id], state=TxnState.ABORTED)
        self._tick()

    def get_txn_timeout_ms(self) -> int:
        return 300_000

    def heartbeat(self, txn_id: TxnId, lock_id: LockId) -> None:
        if lock_id:
            self._change_lock(lock_id, last_heartbeat_ms=self.clock.now_ms())
        if txn_id and self.txns[txn_id].state is not TxnState.OPEN:
            raise NoSuchTxnError(str(txn_id))

    def allocate_table_write_ids(
        self, request: AllocateWriteIdsRequest
    ) -> tuple[TxnToWriteId, ...]:
        key = (request.database_name, request.table_name)
        known = self.write_ids.setdefault(key, {})
        answer = []
        pairs: list[tuple[TxnId, WriteId | None]] = [(one, None) for one in request.txn_ids]
        for source in request.repl_source:
            mapped = self.repl_map.get((request.repl_policy or "", source.txn_id))
            if mapped is None:
                raise MetaError(f"no transaction for {source}")
            pairs.append((mapped, source.write_id))
        for txn_id, wanted in pairs:
            mine = next((one for one, owner in known.items() if owner == txn_id), None)
            if mine is None:
                mine = WriteId(self.next_write_id.get(key, 1))
                if wanted is not None and wanted != mine:
                    raise MetaError(f"Write id allocation failed for: {txn_id}")
                self.next_write_id[key] = mine + 1
                known[mine] = txn_id
            answer.append(TxnToWriteId(txn_id=txn_id, write_id=mine))
        self._tick()
        return tuple(answer)

    def get_max_allocated_write_id(self, database: str, table: str) -> WriteId:
        return WriteId(self.next_write_id.get((database, table), 1) - 1)

    def get_valid_write_ids(
        self,
        full_table_names: Sequence[str],
        valid_txns: ValidTxnList | None = None,
        write_id: WriteId | None = None,
    ) -> tuple[ValidWriteIdList, ...]:
        if write_id is not None:
            (name,) = full_table_names
            if write_id not in self.write_ids.get(tuple(name.split(".")), {}):
                raise MetaError(f"invalid write id {write_id} for table {name}")
        return tuple(self.write_id_list(*name.split("."), valid_txns) for name in full_table_names)

    def write_id_list(
        self, database: str, table: str, seen: ValidTxnList | None = None
    ) -> ValidWriteIdList:
        """Judged by the transactions' states, or by a snapshot of them."""
        known = self.write_ids.get((database, table), {})
        states = {one: self.txns[owner].state for one, owner in known.items()}
        if seen is not None:
            for one, owner in known.items():
                states[one] = TxnState.ABORTED if seen.is_aborted(owner) else (
                    TxnState.COMMITTED if seen.is_valid(owner) else TxnState.OPEN
                )  # fmt: skip
        return ValidWriteIdList(
            table=f"{database}.{table}",
            high_watermark=self.get_max_allocated_write_id(database, table),
            open_ids=tuple(one for one, state in states.items() if state is TxnState.OPEN),
            aborted_ids=tuple(one for one, state in states.items() if state is TxnState.ABORTED),
        )

    def repl_table_write_id_state(self, state: TableWriteIdState) -> None:
        key = (state.database_name, state.table_name)
        if key in self.next_write_id:
            return
        ids = ValidWriteIdList.parse(state.valid_write_ids)
        for aborted in ids.aborted_ids:
            txn_id = TxnId(self.next_txn)
            self.next_txn += 1
            self.txns[txn_id] = OpenTxn(id=txn_id, state=TxnState.ABORTED)
            self.write_ids.setdefault(key, {})[aborted] = txn_id
        self.next_write_id[key] = ids.high_watermark + 1
        if ids.aborted_ids:
            self.queued_majors.append(".".join(key))

    def drop_function(self, database: str, name: str, catalog: str = "hive") -> None:
        raise NoSuchObjectError(f"{database}.{name}")

    # locks of one component

    def lock(self, request: LockRequest) -> LockResponse:
        (component,) = request.components
        lock_id = LockId(self.next_lock)
        self.next_lock += 1
        self.locks.append(
            LockInfo(
                lock_id=lock_id,
                internal_id=1,
                scope=component.scope,
                state=LockState.WAITING,
                type=component.type,
                txn_id=request.txn_id,
                last_heartbeat_ms=0,
                acquired_at_ms=None,
                user=request.user,
                host=request.host,
                agent=request.agent,
            )
        )
        return self.check_lock(lock_id)

    def check_lock(self, lock_id: LockId) -> LockResponse:
        now_ms = self.clock.now_ms()
        mine = self._change_lock(lock_id, last_heartbeat_ms=now_ms)
        before = [one for one in self.locks if one.lock_id < lock_id]
        if any(blocks(_lock_target(one), _lock_target(mine)) for one in before):
            return LockResponse(lock_id=lock_id, state=LockState.WAITING)
        self._change_lock(lock_id, state=LockState.ACQUIRED, acquired_at_ms=now_ms)
        return LockResponse(lock_id=lock_id, state=LockState.ACQUIRED)

    def unlock(self, lock_id: LockId) -> None:
        self.locks = [one for one in self.locks if one.lock_id != lock_id]

    def show_locks(self, lock_filter: LockFilter | None = None) -> tuple[LockInfo, ...]:
        return tuple(self.locks)

    def _change_lock(self, lock_id: LockId, **changes: Any) -> LockInfo:
        for number, one in enumerate(self.locks):
            if one.lock_id == lock_id:
                self.locks[number] = replace(one, **changes)
                return self.locks[number]
        raise NoSuchLockError(f"No such lock: lockid:{lock_id}")

    # events

    def get_current_event_id(self) -> EventId:
        return EventId(max([self.current_event, *(one.id for one in self.events)]))

    def get_next_notification(self, request: NotificationRequest) -> tuple[NotificationEvent, ...]:
        found = [one for one in self.events if one.id > request.last_event_id]
        return tuple(found[: request.max_events])

    def get_write_events(
        self, txn_id: TxnId, database: str | None = None, table: str | None = None
    ) -> tuple[WriteEvent, ...]:
        return tuple(
            one
            for one in self.write_events.get(txn_id, [])
            if database in (None, one.target.database) and table in (None, one.target.table)
        )


def _lock_target(lock: LockInfo) -> LockTarget:
    return LockTarget(lock.type, lock.scope)


def _altered(database: Database) -> dict[str, object]:
    return {
        "description": database.description,
        "parameters": database.parameters,
        "owner_name": database.owner_name,
        "owner_type": database.owner_type,
    }


class FaultyMetastore:
    """A metastore that dies before or after each call that changes something."""

    _READS = ("get_", "show_", "find_")

    def __init__(self, metastore: object, faults: object) -> None:
        self._metastore = metastore
        self._faults = faults

    def __getattr__(self, name: str) -> object:
        method = getattr(self._metastore, name)
        if name.startswith(self._READS) or not callable(method):
            return method
        return lambda *args, **kwargs: self._faults.around(  # type: ignore[attr-defined]
            name, lambda: method(*args, **kwargs)
        )
