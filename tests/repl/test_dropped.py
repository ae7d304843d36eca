"""A source that drops its database: the replica goes only if somebody says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import NoSuchObjectError, ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.verify import verify_dump
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access
from hms_bridge.repl.load.plan import LoadKind, LoadReport
from tests.repl.test_scope import change, scope_of
from tests.support.passing import Interrupted
from tests.support.repl_world import ReplWorld


def drop(world: ReplWorld) -> None:
    """As an admin drops a source: its part in replication ends first."""
    run_end(world.source, plan_end(world.source, "src"))
    world.source.drop_database("src", is_cascade=True)


def load(world: ReplWorld, *, allowed: bool = True, target: Any = None) -> LoadReport:
    loader = world.loader(target)
    return loader.run(loader.plan(replace(world.load_request, is_drop_allowed=allowed)))


def files_of(world: ReplWorld) -> list[Path]:
    return [path for path in (world.folder / "target").rglob("*") if path.is_file()]


def test_a_replica_goes_only_if_somebody_says_so(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    report = world.dump()
    assert (report.kind, dict(report.events.dumped)) == (
        DumpKind.DROP,
        {DumpType.DROP_DATABASE.value: 1},
    )
    assert verify_dump(world.resolve, str(report.directory)).missing == ()
    with pytest.raises(ReplError, match="--allow-drop-database") as refused:
        load(world, allowed=False)
    assert "hms.bridge.repl.load.drop.database" in str(refused.value)
    assert "repl end dst" in str(refused.value)
    assert world.replica.rows("t")
    loaded = load(world)
    assert (loaded.kind, loaded.last_event_id) == (LoadKind.DROP, report.last_event_id)
    assert "dst" not in world.target.get_databases()
    assert files_of(world) == []


def test_what_is_dropped_is_dumped_and_loaded_once(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    world.dump()
    assert world.dump().kind is DumpKind.BLOCKED
    load(world)
    assert [world.dump().kind, load(world).kind] == [DumpKind.NOTHING, LoadKind.NOTHING]
    assert load(world, allowed=False).kind is LoadKind.NOTHING
    assert [one for one in world.source.manifest.pins() if one.holder == world.policy_pin] == []


def test_a_database_that_is_made_anew_begins_anew(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    world.dump()
    load(world)
    world.source.create_database(Database(name="src", parameters={"repl.source.for": "policy"}))
    world.create_table("t")
    world.insert("t", (1, "anew"))
    assert world.dump().kind is DumpKind.BOOTSTRAP
    load(world)
    assert world.replica.rows("t") == world.rows("t")


def test_made_anew_before_the_drop_was_dumped_it_is_refused_as_before(
    busy_world: ReplWorld,
) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    world.source.create_database(Database(name="src", parameters={"repl.source.for": "policy"}))
    with pytest.raises(ReplError, match=r"was dropped.*To begin anew"):
        world.dump()


def test_a_drop_in_place_of_a_changed_scope_goes_on_from_what_the_replica_has(
    busy_world: ReplWorld,
) -> None:
    """The dump that changes it was never loaded, and makes way for the drop."""
    world = busy_world
    world.dump(scope=scope_of("'t.*'"))
    world.load()
    change(world, "'t'")
    drop(world)
    assert world.dump().kind is DumpKind.DROP
    assert load(world).kind is LoadKind.DROP
    assert "dst" not in world.target.get_databases()


def test_a_database_that_never_was_is_no_drop(busy_world: ReplWorld) -> None:
    world = busy_world
    with pytest.raises(NoSuchObjectError):
        world.dump(database="other")
    world.replicate()
    drop(world)
    with pytest.raises(NoSuchObjectError):
        world.dump(is_bootstrap_forced=True)


def test_another_metastore_without_the_database_is_no_drop(busy_world: ReplWorld) -> None:
    """Its log has a drop of that name, too, at a number that is later."""
    world = busy_world
    world.replicate()
    for _ in range(60):
        world.target.create_database(Database(name="src"))
        world.target.drop_database("src")
    with pytest.raises(NoSuchObjectError):
        world.dump(world.target)


def test_a_replica_that_others_could_change_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    set_access(world.target, "dst", Access.WRITES)
    set_access(world.target, "dst", Access.NOTHING)
    drop(world)
    world.dump()
    with pytest.raises(ReplError, match="could change database dst"):
        load(world)
    assert world.replica.rows("t")
    world.target.drop_database("dst", is_cascade=True)
    assert load(world).kind is LoadKind.DROP
    assert load(world).kind is LoadKind.NOTHING


def test_one_that_is_opened_between_plan_and_run_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    world.dump()
    loader = world.loader()
    plan = loader.plan(replace(world.load_request, is_drop_allowed=True))
    set_access(world.target, "dst", Access.WRITES)
    with pytest.raises(ReplError, match="opened to others since"):
        loader.run(plan)
    assert world.replica.rows("t")


def test_a_database_that_no_load_made_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    world.dump()
    run_end(world.target, plan_end(world.target, "dst"))
    with pytest.raises(ReplError, match="not bootstrapped"):
        load(world)
    assert world.replica.rows("t")


def test_a_later_database_of_the_name_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    world.dump()
    replica = world.target.get_database("dst")
    world.target.alter_database(
        "dst", replace(replica, parameters={**replica.parameters, "repl.last.id": "99999"})
    )
    with pytest.raises(ReplError, match="beyond the drop"):
        load(world)
    assert world.replica.rows("t")


def test_events_that_wait_make_way(busy_world: ReplWorld) -> None:
    """Their files went with the database; nobody could load them first."""
    world = busy_world
    world.replicate()
    world.insert("t", (9, "last"))
    waiting = world.dump()
    drop(world)
    report = world.dump(is_previous_kept=True)
    assert (report.kind, report.removed) == (DumpKind.DROP, (waiting.directory,))
    assert load(world).kind is LoadKind.DROP


def test_a_bootstrap_that_waits_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    waiting = world.dump()
    drop(world)
    report = world.dump()
    assert (report.kind, report.directory) == (DumpKind.BLOCKED, waiting.directory)


def test_a_database_that_comes_again_before_the_dump_is_written(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    dumper = world.dumper()
    plan = dumper.plan(world.dump_request())
    world.source.create_database(Database(name="src"))
    with pytest.raises(ReplError, match="there again"):
        dumper.run(plan)


def test_a_hives_dump_that_ends_with_the_drop_is_the_same(busy_world: ReplWorld) -> None:
    """It has neither our marker nor a manifest."""
    world = busy_world
    world.replicate()
    drop(world)
    directory = Path(str(world.dump().directory).removeprefix("file:")) / "hive"
    for name in ("_hms_bridge_manifest", "_hms_bridge_dropped", "_hms_bridge_origin"):
        (directory / name).unlink()
    (directory / "_finished_dump").write_text("")
    world.is_from_hive = True
    with pytest.raises(ReplError, match="--allow-drop-database"):
        load(world, allowed=False)
    assert load(world).kind is LoadKind.DROP
    assert "dst" not in world.target.get_databases()


class KilledError(Exception):
    """The load dies here."""


@pytest.mark.parametrize("is_done", [False, True])
def test_a_load_that_was_killed_goes_on(busy_world: ReplWorld, is_done: bool) -> None:
    world = busy_world
    world.replicate()
    drop(world)
    world.dump()

    def die() -> None:
        if is_done:
            world.target.drop_database("dst", is_cascade=True)
        raise KilledError

    with pytest.raises(KilledError):
        load(world, target=Interrupted(world.target, die, before="drop_database"))
    assert ("dst" in world.target.get_databases()) is not is_done
    assert load(world).kind is LoadKind.DROP
    assert "dst" not in world.target.get_databases()
    assert load(world).kind is LoadKind.NOTHING


def test_replays_that_were_open_end_with_the_replica(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    writer = world.begin()
    writer.insert("t", [(50, "open")])
    world.replicate()
    assert world.target.get_open_txns().txns
    writer.abort()
    drop(world)
    world.dump()
    load(world)
    opened = [one for one in world.target.get_open_txns().txns if one.state.name == "OPEN"]
    assert opened == []
