"""Workers, cleaners, archive, adoption: what fails at any call is gone on with, or left whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete

from changemanager.errors import ChangeManagerError
from changemanager.fsck import Fsck
from changemanager.manifest import Pin, PinKind
from changemanager.purge import Purge
from changemanager.sharing import announce
from cleaner.errors import CleanerError
from cleaner.plan import CleaningState
from hms_bridge.adoption.adopt import adopt
from hms_bridge.adoption.look import look
from hms_bridge.adoption.plan import AdoptionRequest
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVE_ORIGIN, HMSB_ARCHIVED_FILE
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import CompactionState, CompactionType
from tests.failures.failing import Tried, Verb
from tests.failures.scene import Saved, Scene, scene_of_one
from tests.support.golden import acid_goldens
from tests.support.simulated_clock import DAY_MS
from tests.support.world import World, world_to_compact

PIN = Pin(holder="hold:a", kind=PinKind.HOLD, reason="by hand", created_at_ms=1, database="db")


def compaction(kind: CompactionType, world: World) -> Verb:
    """The worker's word counts: it fails an entry, and goes on with the next."""

    def compact() -> None:
        waiting = {one.state for one in world.metastore.show_compactions()}
        if CompactionState.INITIATED not in waiting:
            world.request_compaction("t", kind)
        outcome = world.worker().run_once()
        if outcome is None or outcome.state != "compacted":
            raise CompactionError(f"db.t is not compacted: {outcome and outcome.message}")

    return compact


def cleaning(world: World) -> None:
    world.clock.advance_ms(10_000)
    for one in world.cleaner().run_once(is_retried_now=True):
        if one.state is not CleaningState.CLEANED:
            raise CleanerError(f"{one.entry.target} is not cleaned: {one.message}")


def cleaning_of_a_compaction(world: World) -> Verb:
    world.compact("t")
    return lambda: cleaning(world)


def cleaning_of_an_abort(world: World) -> Verb:
    txn = world.begin()
    txn.lock("t")
    txn.insert("t", [(7, "aborted")])
    txn.abort()
    return lambda: cleaning(world)


def archived(world: World) -> None:
    world.compact("t")
    world.clean()
    world.clock.advance_ms(DAY_MS)


def purge(world: World) -> Verb:
    archived(world)
    for _ in range(30):
        world.clock.advance_ms(DAY_MS)

    def run() -> None:
        job = Purge(world.store.archive(), world.metastore.manifest, world.clock)
        job.settle()
        report = job.run(job.plan())
        if report.failed:
            raise ChangeManagerError(f"{world.cmroot}: not all is purged: {report.failed}")

    return run


def repair_of_the_archive(world: World) -> Verb:
    """Its manifest is lost."""
    archived(world)
    world.execute(delete(HMSB_ARCHIVE_ORIGIN))
    world.execute(delete(HMSB_ARCHIVED_FILE))

    def repair() -> None:
        job = Fsck(world.store.archive(), world.metastore.manifest, world.clock)
        job.repair(job.plan())

    return repair


def hold(world: World) -> Verb:
    archived(world)

    def put() -> None:
        announce(world.store.archive().cmroot, world.store.database_id())
        world.metastore.manifest.put_pin(PIN)

    return put


def release(world: World) -> Verb:
    archived(world)
    world.metastore.manifest.put_pin(PIN)
    return lambda: world.metastore.manifest.remove_pin(PIN.holder)


def adoption(world: World) -> Verb:
    """With partitions, compactions of the past, and aborted writes."""
    left = world.warehouse / "left"
    shutil.copytree(acid_goldens() / "g07_part/03-after-minor-cleaner" / "files", left)
    request = AdoptionRequest(
        database_name="d", table_name="a", location=str(left), owner="ann",
        partition_types={"b": "int"},
    )  # fmt: skip
    return lambda: adopt(look(request, world.resolve), world.metastore, user="ann", host="here")


VERBS: dict[str, Callable[[World], Verb]] = {
    "compaction": lambda world: compaction(CompactionType.MAJOR, world),
    "minor compaction": lambda world: compaction(CompactionType.MINOR, world),
    "cleaning": cleaning_of_a_compaction,
    "cleaning of an abort": cleaning_of_an_abort,
    "purge": purge,
    "fsck --repair": repair_of_the_archive,
    "hold": hold,
    "release": release,
    "adoption": adoption,
}


@pytest.fixture(scope="module")
def scene(fast_root: Path) -> Iterator[Scene]:
    with scene_of_one(fast_root / "failing-programs", world_to_compact) as scene:
        yield scene


@pytest.fixture(scope="module")
def start(scene: Scene) -> Saved:
    return scene.save()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_fails(verb: str, scene: Scene, start: Saved) -> None:
    scene.restore(start)
    (world,) = scene.worlds
    Tried(scene, VERBS[verb](world), is_of_steps=True, is_of_program=True).run()
