"""A source that writes, compacts and cleans, its replica, and the dumps between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.archive import ChangeManager
from changemanager.purge import Purge
from hms_bridge.config.settings import TxnSettings
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.repl.dump.plan import DumpReport, DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.lease import LeaseRules
from hms_bridge.repl.load.plan import LoadReport, LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.repl.pins import policy_holder
from hms_bridge.service.metastore_service import MetastoreService
from tests.support.databases import sqlite_file
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore
from tests.support.simulated_clock import SimulatedClock
from tests.support.world import World

LEASE = LeaseRules(dead_after_seconds=30, heartbeat_seconds=10)


class ReplWorld(World):
    """The source, with database `src`; `replica` has `dst`, and there is one archive."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Any = None,
        txn: TxnSettings | None = None,
        source_url: str | None = None,
    ) -> None:
        # Files get the time of the machine, and the purge looks at both.
        time_of_both = clock or SimulatedClock(time.time_ns() // 1_000_000)
        settings: dict[str, Any] = {"clock": time_of_both, "txn": txn or TxnSettings()}
        super().__init__(
            folder,
            warehouse="source",
            url=source_url or sqlite_file(folder, "source.db3"),
            database="src",
            parameters={"repl.source.for": "policy"},
            **settings,
        )
        self.replica = World(
            folder,
            warehouse="target",
            url=sqlite_file(folder, "target.db3"),
            database="dst",
            has_database=False,
            **settings,
        )
        self.repl_root = folder / "repl"
        self.more_roots: tuple[str, ...] = ()
        self.is_from_hive = False

    @property
    def source(self) -> MetastoreService:
        return self.metastore

    @property
    def target(self) -> MetastoreService:
        return self.replica.metastore

    @property
    def archive(self) -> ChangeManager:
        return self.store.archive()

    def close(self) -> None:
        super().close()
        self.replica.close()

    def rebalance(self, table: str, highest: WriteId) -> None:
        """A rebalance compaction of another program, as far as the metastore hears of it."""
        self.request_compaction(table, CompactionType.REBALANCE, pool_name="hive")
        entry = self.source.find_next_compaction("w", "1", "hive")
        assert entry is not None
        txn_id = self.open(TxnType.REBALANCE_COMPACTION)
        self.source.update_compactor_state(replace(entry, highest_write_id=highest), txn_id)
        self.source.mark_compacted(entry)
        self.commit(txn_id)

    def purge(self, overridden: Sequence[str] = ()) -> int:
        """Purge the archive now; how many files went."""
        report = self.purging.run(self.purging.plan(overridden=overridden))
        return len(report.deleted)

    @property
    def purging(self) -> Purge:
        return Purge(self.archive, self.source.manifest, self.clock)

    @property
    def policy_pin(self) -> str:
        """The holder of what is kept for the next dump."""
        return policy_holder("src", f"file:{self.repl_root}")

    def dump_request(self, **changes: Any) -> DumpRequest:
        return DumpRequest(
            **{
                "root": str(self.repl_root),
                "database": "src",
                "cm_root": f"file:{self.cmroot}",
                "wait": WaitRules(timeout_seconds=10, poll_seconds=1),
                "lease": LEASE,
                **changes,
            }
        )

    def dumper(self, source: Any = None) -> ReplDump:
        return ReplDump(
            source or self.source, self.resolve, self.clock, self.token, self.source.manifest
        )

    def dump(self, source: Any = None, **changes: Any) -> DumpReport:
        self.clock.advance_ms(1000)
        dumper = self.dumper(source)
        return dumper.run(dumper.plan(self.dump_request(**changes)))

    def loader(self, target: Any = None, **options: Any) -> ReplLoad:
        return ReplLoad(target or self.target, self.resolve, clock=self.clock, **options)

    @property
    def load_request(self) -> LoadRequest:
        return LoadRequest(
            root=str(self.repl_root),
            source_database="src",
            target_database="dst",
            lease=LEASE,
            roots=(f"file:{self.folder}", *self.more_roots),
            is_from_hive=self.is_from_hive,
        )

    def load(self) -> LoadReport:
        loader = self.loader()
        return loader.run(loader.plan(self.load_request))

    def kill_load(self, step: str, request: LoadRequest | None = None) -> None:
        """A load dies at a call of its metastore: "after create_table"."""
        faults = FaultPlan()
        faults.crash_label = step
        loader = self.loader(FaultyMetastore(self.target, faults))
        with pytest.raises(CrashError):
            loader.run(loader.plan(request or self.load_request))

    def replicate(self) -> tuple[DumpReport, LoadReport]:
        return self.dump(), self.load()

    def assert_same(self) -> None:
        """I1: both sides have the same tables, rows, row ids and write ids."""
        tables = self.source.get_tables("src")
        assert self.target.get_tables("dst") == tables
        for name in tables:
            assert self.replica.rows(name) == self.rows(name), name
            highest = self.source.get_max_allocated_write_id("src", name)
            assert self.target.get_max_allocated_write_id("dst", name) == highest, name

    def last_event(self) -> str:
        return self.target.get_database("dst").parameters["repl.last.id"]

    def open_txn_ids(self) -> list[TxnId]:
        return [one.id for one in self.source.get_open_txns_info() if one.state is TxnState.OPEN]
