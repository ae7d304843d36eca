"""``make bench-repl``: replication beside a real Hive, and against what copies without looking.

With ``--ours`` without a Hive: how time grows with events, and the copy. The copy needs room for
its source twice: HMS_BRIDGE_BENCH_GB gigabytes (10 where the disk has room, else 2) below
HMS_BRIDGE_BENCH_DIR (default: the directory for temporary files). HMS_BRIDGE_BENCH_INSERTS (100)
and HMS_BRIDGE_BENCH_EVENTS (10000) say how many inserts are Hive's, and how many events ours alone.
"""

from __future__ import annotations

import functools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.replication_beside import beside_ratios, linear_ratios, own_side
from benchmarks.report import HEADING, Ratio, machine
from hms_bridge.clock import SystemClock
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from hms_bridge.repl.dump.plan import DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.load.plan import LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from integration.referees.processes import FAST_JAVA, Workplace

GB = 1_000_000_000
RUNS = 4
"""In turn: a machine has good and bad minutes."""
FILES_IN_A_DELTA = 4
FILE_BYTES = 250_000_000
_ROOM = 3
"""The source, what is copied of it, and as much again so that the disk does not run full."""
_CHUNK_BYTES = 1 << 20


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    print(HEADING)
    with tempfile.TemporaryDirectory(
        prefix="hms-bridge-bench-", dir=os.environ.get("HMS_BRIDGE_BENCH_DIR")
    ) as folder:
        ratios = _own_ratios if "--ours" in sys.argv[1:] else _all_ratios
        for ratio in ratios(Path(folder)):
            print(ratio.line(), flush=True)


def _own_ratios(folder: Path) -> Iterator[Ratio]:
    yield from linear_ratios(own_side(folder / "events"))
    yield from copy_ratios(folder)


def _all_ratios(folder: Path) -> Iterator[Ratio]:
    workplace = Workplace(folder / "logs", java=FAST_JAVA)
    try:
        yield from beside_ratios(workplace)
    finally:
        workplace.close()
    yield from copy_ratios(folder)


def copy_ratios(folder: Path) -> Iterator[Ratio]:
    """A bootstrap load of one table, its files checked and on the disk, against ``cp -r`` of the
    table's directory and ``sync``. Both begin with a source that is in no cache, where root runs
    this."""
    size_gb = _size_gb(folder)
    source = _opened(folder / "source")
    root = _filled_table(source, size_gb * GB)
    # With an archive, so that the dump names checksums, and the load has them to compare.
    archive = f"file:{folder}/source/cmroot"
    dump = DumpRequest(root=str(folder / "dumps"), database="bench", cm_root=archive)
    dumper = ReplDump(
        source.metastore, file_systems(source.settings), SystemClock(), lambda: "dump"
    )
    dumper.run(dumper.plan(dump))
    target = _opened(folder / "target")
    loader = ReplLoad(target.metastore, file_systems(target.settings))
    copied = folder / "copied"

    def copy_and_sync() -> None:
        subprocess.run(["cp", "-r", str(root), str(copied)], check=True)
        subprocess.run(["sync", "-f", str(copied)], check=True)

    def load(number: int) -> None:
        request = LoadRequest(
            root=dump.root,
            source_database="bench",
            target_database=f"replica{number}",
            roots=(f"file:{folder}/source",),
        )
        loader.run(loader.plan(request))

    ours, theirs, grown_mib = [], [], 0
    for number in range(RUNS):
        # A disk is slower after it was filled: each is the first of the two as often.
        for is_ours in (False, True) if number % 2 == 0 else (True, False):
            if not is_ours:
                theirs.append(_seconds(copy_and_sync))
                shutil.rmtree(copied)
                continue
            before_kib = _peak_kib()
            ours.append(_seconds(functools.partial(load, number)))
            grown_mib = max(grown_mib, (_peak_kib() - before_kib) // 1024)
            target.metastore.drop_database(f"replica{number}", is_cascade=True)
            _marks(dump.root).unlink()
    yield _ratio(size_gb * GB, median(ours), median(theirs), grown_mib)
    source.metastore.close()
    target.metastore.close()


def _ratio(size_bytes: int, ours: float, theirs: float, grown_mib: int) -> Ratio:
    return Ratio(
        what=f"bootstrap load, {size_bytes / GB:g} GB on one disk, checked, vs cp -r and sync",
        ours=f"{size_bytes / ours / 1e6:.0f} MB/s (memory grew by {grown_mib} MiB)",
        theirs=f"{size_bytes / theirs / 1e6:.0f} MB/s",
        ratio=theirs / ours,
        target=0.8,
    )


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _marks(root: str) -> Path:
    """What tells that the dump is loaded; without it another replica may load it."""
    return next(Path(root).rglob("_finished_load"))


def _size_gb(folder: Path) -> int:
    told = os.environ.get("HMS_BRIDGE_BENCH_GB")
    if told is not None:
        return int(told)
    return 10 if shutil.disk_usage(folder).free > _ROOM * 10 * GB else 2


def _opened(folder: Path) -> LocalStore:
    folder.mkdir()
    settings = Settings(
        warehouse=str(folder / "warehouse"), archive=ArchiveSettings(root=str(folder / "cmroot"))
    )
    return open_local(f"sqlite:///{folder}/metastore.db", settings)


def _filled_table(store: LocalStore, size_bytes: int) -> Path:
    """A table without identifiers of rows: a load takes its files as they are, whatever is in."""
    metastore = store.metastore
    metastore.create_database(Database(name="bench", parameters={"repl.source.for": "bench"}))
    metastore.create_table(
        Table(
            name="t",
            database_name="bench",
            storage=Storage(columns=(Column(name="a", type="string"),)),
            parameters={"transactional": "true", "transactional_properties": "insert_only"},
        )
    )
    root = Path((metastore.get_table("bench", "t").storage.location or "").removeprefix("file:"))
    file_count = max(1, size_bytes // FILE_BYTES)
    for first in range(0, file_count, FILES_IN_A_DELTA):
        (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="bench", host="here"))
        write_id = _write_id(store, txn_id)
        delta = root / f"delta_{write_id:07d}_{write_id:07d}_0000"
        delta.mkdir(parents=True)
        for number in range(first, min(first + FILES_IN_A_DELTA, file_count)):
            _fill(delta / f"{number:06d}_0", size_bytes // file_count)
        metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))
    return root


def _write_id(store: LocalStore, txn_id: TxnId) -> int:
    asked = AllocateWriteIdsRequest(database_name="bench", table_name="t", txn_ids=(txn_id,))
    return store.metastore.allocate_table_write_ids(asked)[0].write_id


def _fill(path: Path, size_bytes: int) -> None:
    piece = os.urandom(_CHUNK_BYTES)
    with path.open("wb") as output:
        for at in range(0, size_bytes, _CHUNK_BYTES):
            # No two pieces are the same, for a disk that would notice.
            output.write((at.to_bytes(8, "big") + piece[8:])[: size_bytes - at])


def _seconds(work: Callable[[], object]) -> float:
    """Once: what is copied twice is in the cache. What was written before is on the disk first."""
    subprocess.run(["sync"], check=True)
    _forget_cache()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _forget_cache() -> None:
    """Only root may; for others both find what memory holds of the source."""
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1\n")
    except OSError:
        return


if __name__ == "__main__":
    main()
