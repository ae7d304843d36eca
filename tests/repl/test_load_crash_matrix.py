"""A load that is killed at any step: the next one goes on, and the end is the same (I1, I6)."""

from __future__ import annotations

import copy
import json
import shutil

import pytest

from hms_bridge.repl.format.events_dump import EventsDump
from hms_bridge.repl.load.repl_load import LoadKind, LoadRequest, ReplLoad
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.golden_repl import WITHOUT
from tests.support.repl_metastore import ReplMetastore

TABLES = {"t_base", "t_part", "t_empty", "t_ren", "t_trunc", "t_pk"}
EVENTS = {
    "07": [*range(337, 342), *range(342, 351), *range(377, 385)],
    "11": [*range(516, 520), *range(584, 592), *range(599, 607), *range(634, 640), 646],
    "14": [760, 761],
}
FIRST, LAST = 336, 761


class World:
    """A target on disk and in memory that can be saved, and loads that die."""

    def __init__(self, cycle, folder):
        self.cycle = cycle
        self.folder = folder
        self.metastore = ReplMetastore(folder / "warehouse")
        self.request = LoadRequest(
            root=str(folder / "repl"),
            source_database="src",
            target_database="dst",
            rules=WITHOUT,
        )

    def load(self, crash_at: int | None = None) -> FaultPlan:
        """Load; a crash shows in the fault plan."""
        faults = FaultPlan()
        faults.crash_at = crash_at
        resolve = faulty(
            self.cycle.resolve, faults, lambda place: place.path.startswith(str(self.folder))
        )
        load = ReplLoad(
            FaultyMetastore(self.metastore, faults), resolve, clock=self.metastore.clock
        )
        report = load.run(load.plan(self.request))
        assert report.kind is LoadKind.NOTHING or not self.metastore.locks
        return faults

    def save(self):
        shutil.copytree(self.folder, self.folder.with_name("saved"), dirs_exist_ok=True)
        return copy.deepcopy(self.metastore.__dict__)

    def restore(self, saved):
        shutil.rmtree(self.folder)
        shutil.copytree(self.folder.with_name("saved"), self.folder)
        self.metastore.__dict__.update(copy.deepcopy(saved))

    def state(self):
        """Everything that a user of the replica can see, without what differs by nature."""
        store = self.metastore
        files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != "_load_metadata"
        }
        parameters = dict(store.databases["dst"].parameters)
        parameters.pop("repl.target.last.id")
        return {
            "files": files,
            "parameters": parameters,
            "tables": store.tables,
            "partitions": store.partitions,
            "write ids": {key: store.write_id_list(*key).format() for key in store.tables},
            "open": sorted(source for _, source in store.repl_map),
        }


def keep_tables(dump):
    for folder in ("metadata", "data"):
        for path in (dump / "hive" / folder / "src").iterdir():
            if path.is_dir() and path.name not in TABLES:
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
    world = World(cycle, fast_folder / "live")
    keep_tables(cycle.bring_dump("02", fast_folder / "live" / "repl"))
    return world


def survive_every_crash(world, saved, expected, points):
    """Kill the load at every point, then load again."""
    for at in range(1, points + 1):
        world.restore(saved)
        with pytest.raises(CrashError):
            world.load(crash_at=at)
        last = world.metastore.databases.get("dst")
        reached = None if last is None else last.parameters.get("repl.last.id")
        assert reached is None or int(reached) <= LAST
        world.load()
        assert world.state() == expected, f"killed at point {at} of {points}"


@pytest.mark.golden
def test_a_bootstrap_load_may_be_killed_anywhere(world):
    saved = world.save()
    points = world.load().count
    expected = world.state()
    assert expected["write ids"]["dst", "t_base"].startswith("dst.t_base:4:")
    assert points > 100
    survive_every_crash(world, saved, expected, points)


@pytest.mark.golden
def test_an_incremental_load_may_be_killed_anywhere(cycle, world):
    world.load()
    assemble_events(cycle, world.folder / "repl")
    saved = world.save()
    faults = world.load()
    expected = world.state()
    assert json.loads(json.dumps(expected["open"])) == [281]
    assert ("dst", "t_renamed") in expected["tables"]
    assert set(expected["partitions"]["dst", "t_part"]) == {
        ("1",), ("2",), ("a/b c#d",), ("newer",)
    }  # fmt: skip
    assert faults.count > 200
    survive_every_crash(world, saved, expected, faults.count)
