"""A load that is killed at any step: the next one goes on, and the end is the same (I1, I6)."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.backend.schema.txn_tables import REPL_TXN_MAP
from hms_bridge.repl import file_pool
from hms_bridge.repl.format.events_dump import EventsDump
from hms_bridge.repl.load.plan import LoadKind, LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from tests.support.engines import MEMORY
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.golden_repl import HIVE_ROOTS
from tests.support.inline_threads import InlineThreads
from tests.support.world import World

TABLES = {"t_base", "t_part", "t_empty", "t_ren", "t_trunc", "t_pk", "t_fk"}
EVENTS = {
    "07": [*range(337, 342), *range(342, 351), *range(377, 385)],
    "11": [*range(516, 520), *range(584, 592), *range(599, 607), *range(634, 640), 642, 644, 646],
    "14": [760, 761],
}
FIRST, LAST = 336, 761
KILLED_EACH = 12


Saved = tuple[dict[Path, bytes | None], bytes]
"""Files and directories (None), and the database."""


class Recorder(FaultPlan):
    """Lives, and keeps what a process that is killed at each point leaves behind."""

    def __init__(self, save: Callable[[], Saved]) -> None:
        super().__init__()
        self._save = save
        self.left: list[Saved] = []

    def point(self, label: str) -> None:
        super().point(label)
        self.left.append(self._save())


class Replica:
    """A target on disk and in memory that can be saved, and loads that die."""

    def __init__(self, cycle, folder):
        self.cycle = cycle
        self.folder = folder
        self.world = World(folder, url=MEMORY, database="dst", has_database=False)
        self.metastore = self.world.metastore
        self._contents: dict[bytes, bytes] = {}
        self.request = LoadRequest(
            root=str(folder / "repl"),
            source_database="src",
            target_database="dst",
            functions_root=str(folder / "functions"),
            roots=HIVE_ROOTS,
            is_from_hive=True,
        )

    def load(self, faults: FaultPlan | None = None) -> FaultPlan:
        """Load, with a plan that counts, dies or records."""
        faults = faults or FaultPlan()
        resolve = faulty(
            self.cycle.resolve, faults, lambda place: place.path.startswith(str(self.folder))
        )
        load = ReplLoad(FaultyMetastore(self.metastore, faults), resolve, clock=self.world.clock)
        report = load.run(load.plan(self.request))
        assert report.kind is LoadKind.NOTHING or not self.metastore.show_locks()
        return faults

    def save(self) -> Saved:
        files = {
            path: self._kept(path.read_bytes()) if path.is_file() else None
            for path in sorted(self.folder.rglob("*"))
        }
        return files, self._kept(zlib.compress(self.world.backup(), 1))

    def _kept(self, content: bytes) -> bytes:
        """The same bytes of many states, once."""
        return self._contents.setdefault(content, content)

    def restore(self, saved: Saved) -> None:
        files, database = saved
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for path, content in files.items():
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)
        self.world.restore(zlib.decompress(database))

    def reached(self) -> int | None:
        """The last event that is loaded; None before a bootstrap."""
        if "dst" not in self.metastore.get_databases():
            return None
        last = self.metastore.get_database("dst").parameters.get("repl.last.id")
        return last and int(last)

    def state(self):
        """Everything that a user of the replica can see, without what differs by nature."""
        store = self.metastore
        files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != "_load_metadata"
        }
        parameters = dict(store.get_database("dst").parameters)
        parameters.pop("repl.target.last.id")
        tables = {name: store.get_table("dst", name) for name in store.get_tables("dst")}
        return {
            "files": files,
            "parameters": parameters,
            "tables": {name: replace(table, id=0, create_time=0) for name, table in tables.items()},
            "partitions": {
                name: {
                    one.values: replace(one, create_time=0)
                    for one in store.get_partitions("dst", name)
                }
                for name, table in tables.items()
                if table.is_partitioned
            },
            "functions": [replace(one, create_time=0) for one in store.get_functions("dst")],
            "constraints": {name: store.get_constraints("dst", name) for name in tables},
            "write ids": {
                name: store.get_valid_write_ids([f"dst.{name}"])[0].format() for name in tables
            },
            "open": [row["RTM_SRC_TXN_ID"] for row in self.world.records(REPL_TXN_MAP)],
        }


def keep_tables(dump):
    for folder in ("metadata", "data"):
        for path in (dump / "hive" / folder / "src").iterdir():
            if path.is_dir() and path.name not in {*TABLES, "_constraints", "_functions"}:
                shutil.rmtree(path)
    (dump / "hive" / "_file_list_external").unlink()


def assemble_events(cycle, repl_root):
    """One dump with events of every family, taken from three of the cycle's dumps."""
    dump = cycle.bring_dump("07", repl_root)
    (dump / "hive" / "_file_list_external").unlink()
    batch = dump / "hive" / "events_batch_1"
    wanted = {str(one) for one in EVENTS["07"]}
    for path in batch.iterdir():
        if path.name not in wanted:
            shutil.rmtree(path)
    count = len(wanted)
    for number in ("11", "14"):
        for event in EVENTS[number]:
            source = cycle.dump(number) / "hive" / "events_batch_1" / str(event)
            if source.is_dir():
                shutil.copytree(source, batch / str(event), copy_function=shutil.copyfile)
                count += 1
    progress = EventsDump(last_event_id=LAST, event_count=count, is_batched=True)
    (dump / "hive" / "_events_dump").write_text(progress.format())
    (dump / "hive" / "_dumpmetadata").write_text(
        f"INCREMENTAL\t203\t{LAST}\t/cmroot\t0\tNULL\tfalse\nsrc\n"
    )
    for path in dump.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture
def world(cycle, fast_folder):
    world = Replica(cycle, fast_folder / "live")
    keep_tables(cycle.bring_dump("02", fast_folder / "live" / "repl"))
    return world


def survive_every_crash(world, start, expected) -> int:
    """Whatever a load that was killed at any point leaves, another load brings to the same end.

    A load that copies file by file and lives tells what each point leaves. Every few points one
    dies that copies side by side, as loads do.
    """
    world.restore(start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_pool, "ThreadPoolExecutor", InlineThreads)
        left = world.load(Recorder(world.save)).left
    before = None
    for at, state in enumerate(left, 1):
        if state != before:  # after a step is as before the next one
            world.restore(state)
            load_again(world, expected, at)
        before = state
    for at in range(1, len(left) + 1, KILLED_EACH):
        world.restore(start)
        faults = FaultPlan()
        faults.crash_at = at
        with pytest.raises(CrashError):
            world.load(faults)
        load_again(world, expected, at)
    return len(left)


def load_again(world, expected, at: int) -> None:
    reached = world.reached()
    assert reached is None or reached <= LAST
    world.load()
    assert world.state() == expected, f"killed at point {at}"


@pytest.mark.golden
def test_a_bootstrap_load_may_be_killed_anywhere(world):
    saved = world.save()
    world.load()
    expected = world.state()
    assert expected["write ids"]["t_base"].startswith("dst.t_base:4:")
    assert survive_every_crash(world, saved, expected) > 100


@pytest.mark.golden
def test_an_incremental_load_may_be_killed_anywhere(cycle, world):
    world.load()
    assemble_events(cycle, world.folder / "repl")
    saved = world.save()
    world.load()
    expected = world.state()
    assert expected["open"] == [281]
    assert "t_renamed" in expected["tables"]
    assert set(expected["partitions"]["t_part"]) == {
        ("1",), ("2",), ("a/b c#d",), ("newer",)
    }  # fmt: skip
    assert survive_every_crash(world, saved, expected) > 200
