"""A metastore in the middle of its work, for every verb to have something to show.

``sales`` is a replication source with tables that a real Hive wrote: ``orders`` was compacted and
cleaned (its old files are in the archive, pinned by a dump that is not loaded), ``customers`` was
compacted and waits for the cleaner, a partition of ``events`` waits for a worker. One transaction
is open and holds a lock for which another waits; one is aborted.
"""

from __future__ import annotations

import shutil
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from changemanager.location import FsspecResolver
from hms_bridge.cli.worker import make_worker
from hms_bridge.compaction.executor import always
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.config.hive_site import read_hive_site
from hms_bridge.config.reading import settings_from
from hms_bridge.connect import LocalStore, connected_locally
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import AbortTxnRequest, OpenTxnsRequest
from tests.support.golden import acid_goldens
from tests.support.program import Program

TABLES = {
    "orders": ("g02_iud/01-before-minor", ()),
    "events": ("g07_part/03-after-minor-cleaner", ("--partition-type", "b=int")),
    "customers": (
        "g08_bucketed/03-after-minor-cleaner", ("--clustered-by", "id", "--buckets", "4"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class BusyMetastore:
    """The program, and numbers to ask it about."""

    program: Program
    dump: Path
    open_txn: TxnId
    waiting_txn: TxnId
    aborted_txn: TxnId

    @property
    def policy_pin(self) -> str:
        """The holder of what is kept for the next dump."""
        return f"policy:sales:file:{self.program.dumps}"

    @property
    def replica(self) -> tuple[str, ...]:
        """Options for the other side."""
        folder = self.program.folder / "dr"
        return (
            "--metastore", f"sqlite:///{folder}/metastore.db",
            "--set", f"hive.metastore.warehouse.dir={folder}/warehouse",
            "--set", f"hive.repl.cmrootdir={folder}/cmroot",
        )  # fmt: skip


def opened(program: Program, **changes: Any) -> AbstractContextManager[LocalStore]:
    """The program's metastore, directly, for the length of a block; with these fields of its
    settings changed."""
    environment = program.environment
    settings = settings_from(read_hive_site(Path(environment["HMS_BRIDGE_CONFIG"])))
    settings = replace(settings, **changes)
    return connected_locally(program.url, settings)


def copy_golden(stage: str, target: Path) -> Path:
    shutil.copytree(acid_goldens() / stage / "files", target)
    return target


def work(program: Program) -> list[str]:
    """Do what is queued, without Spark; what became of each entry."""
    with opened(program) as store:
        executor = LocalExecutor(kernel=BucketKernel(resolver=FsspecResolver()))
        worker = make_worker(store.metastore, always(executor))
        found = []
        while (outcome := worker.run_once()) is not None:
            found.append(outcome.state)
        return found


def make_busy_metastore(folder: Path) -> BusyMetastore:
    program = Program(folder)
    for name, (stage, options) in TABLES.items():
        directory = copy_golden(stage, program.warehouse / "sales.db" / name)
        program.ok("table", "adopt", str(directory), "--name", f"sales.{name}", *options)
    dumped = program.ok("repl", "dump", "sales", "--format", "json").json
    program.ok("compact", "sales.orders", "major")
    assert work(program) == ["compacted"]
    _wait_for_late_readers()
    program.ok("cleaner", "run")
    program.ok("compact", "sales.customers", "major")
    assert work(program) == ["compacted"]
    program.ok("compact", "sales.events", "major", "--partition", "a=x/b=1")
    ids = _transactions(program)
    dr = folder / "dr"
    dr.mkdir()
    program.ok("schema", "init", "--database", f"sqlite:///{dr}/metastore.db")
    _wait_for_late_readers()
    return BusyMetastore(program, Path(dumped["dump_dir"].removeprefix("file:")), *ids)


def _wait_for_late_readers() -> None:
    """The cleaner leaves what was replaced within metastore.txn.opentxn.timeout."""
    time.sleep(1.1)


def _transactions(program: Program) -> tuple[TxnId, TxnId, TxnId]:
    with opened(program) as store:
        metastore = store.metastore
        (holder, waiter, aborted) = (
            metastore.open_txns(OpenTxnsRequest(user="ann", host="here", agent="test"))[0]
            for _ in range(3)
        )
        metastore.abort_txn(AbortTxnRequest(txn_id=aborted))
        for txn_id in (holder, waiter):
            component = LockComponent(
                type=LockType.EXCL_WRITE,
                level=LockLevel.TABLE,
                scope=Scope("sales", "customers"),
                operation=DataOperation.UPDATE,
                is_transactional=True,
            )
            metastore.lock(
                LockRequest(components=(component,), txn_id=txn_id, user="ann", host="here")
            )
        return holder, waiter, aborted
