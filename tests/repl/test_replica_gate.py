"""A replica is changed by loads only, unless an admin opens it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.errors import MetaError, ReplError, TxnAbortedError
from hms_bridge.model.catalog import Database, Partition
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AllocateWriteIdsRequest, OpenTxnsRequest, TxnState
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.create_table("part", is_partitioned=True)
    empty_world.add_partition("part", "1")
    empty_world.create_table("plain", transactional="false")
    empty_world.insert("t", (1, "a"), (2, "b"))
    empty_world.insert("part", (1, "a"), partition="p=1")
    empty_world.replicate()
    return empty_world


def write_id(world, database="dst", table="t"):
    (txn_id,) = world.target.open_txns(OpenTxnsRequest(user="u", host="h"))
    return world.target.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name=database, table_name=table, txn_ids=(txn_id,))
    )


def compact(world, kind, **more):
    return world.target.compact(CompactionRequest(target=Target("dst", "t"), type=kind, **more))


def as_hive_made_it(world):
    """A replica that a real Hive bootstrapped has Hive's properties only."""
    database = world.target.get_database("dst")
    parameters = {k: v for k, v in database.parameters.items() if not k.startswith("hms.")}
    world.target.alter_database("dst", replace(database, parameters=parameters))


def definitions(world):
    """Every way to define something, by what it says when it is refused."""
    target = world.target
    table = target.get_table("dst", "t")
    part = target.get_partition("dst", "part", ["1"])
    return {
        "create_table": lambda: target.create_table(
            replace(table, name="new", id=None, storage=replace(table.storage, location=None))
        ),
        "alter_table": lambda: target.alter_table("dst", "t", replace(table, owner="me")),
        "alter_table t2": lambda: target.alter_table("dst", "t", replace(table, name="t2")),
        "drop_table": lambda: target.drop_table("dst", "t"),
        "add_partition": lambda: target.add_partitions(
            "dst", "part", [Partition(values=("2",), database_name="dst", table_name="part")]
        ),
        "alter_partition": lambda: target.alter_partitions("dst", "part", [part]),
        "drop_partition": lambda: target.drop_partitions("dst", "part", ["p=1"]),
        "truncate": lambda: target.truncate_table("dst", "plain"),
    }


def test_write_ids_of_a_replica_are_given_to_loads_only(world):
    with pytest.raises(MetaError, match="database dst is a replica: only repl load writes there"):
        write_id(world)
    world.insert("t", (3, "c"))
    world.replicate()
    assert world.replica.rows("t") == world.rows("t")


def test_so_they_are_in_a_replica_that_hive_made(world):
    as_hive_made_it(world)
    with pytest.raises(MetaError, match="'repl open dst --writes'"):
        write_id(world)
    definitions(world)["create_table"]()


def test_only_the_initiator_queues_compactions_and_none_that_changes_row_ids(world):
    for kind in (CompactionType.MAJOR, CompactionType.MINOR, CompactionType.REBALANCE):
        refused = compact(world, kind)
        assert (refused.is_accepted, refused.state) == (False, "refused")
        assert "database dst is a replica" in str(refused.error_message)
        is_named = "hms-bridge initiator run" in str(refused.error_message)
        assert is_named is (kind is not CompactionType.REBALANCE)
    refused = compact(world, CompactionType.REBALANCE, is_automatic=True)
    assert not refused.is_accepted
    assert compact(world, CompactionType.MAJOR, is_automatic=True).is_accepted


def test_definitions_come_from_the_source(world):
    plain = world.resolve(world.target.get_table("dst", "plain").storage.location).child("data")
    plain.volume.write_new(plain.path, [b"rows"])

    def seen():
        return world.target.get_tables("dst"), world.replica.rows("t"), world.replica.rows("part")

    before = seen()
    for what, change in definitions(world).items():
        with pytest.raises(MetaError, match="whose definitions come from its source") as caught:
            change()
        assert what.split()[0] in str(caught.value)
    assert seen() == before
    assert plain.status() is not None
    world.create_table("later")
    world.insert("later", (4, "d"))
    world.replicate()
    assert world.replica.rows("later") == world.rows("later")


def test_a_table_leaves_and_enters_a_replica_no_more_than_it_changes(world):
    world.target.create_database(Database(name="own"))
    table = world.target.get_table("dst", "t")
    own = replace(
        table,
        database_name="own",
        name="mine",
        id=None,
        storage=replace(table.storage, location=None),
    )
    world.target.create_table(own)
    with pytest.raises(MetaError, match="alter_table"):
        world.target.alter_table("dst", "t", replace(table, database_name="own"))
    mine = world.target.get_table("own", "mine")
    with pytest.raises(MetaError, match="alter_table"):
        world.target.alter_table("own", "mine", replace(mine, database_name="dst"))
    assert world.replica.rows("t") == world.rows("t")


def test_another_database_is_everybodys(world):
    world.target.create_database(Database(name="own"))
    table = world.target.get_table("dst", "t")
    world.target.create_table(
        replace(table, database_name="own", id=None, storage=replace(table.storage, location=None))
    )
    assert write_id(world, "own")


def test_an_admin_opens_a_replica_and_closes_it(world):
    set_access(world.target, "dst", Access.DEFINITIONS)
    definitions(world)["create_table"]()
    with pytest.raises(MetaError, match="is a replica"):
        write_id(world)
    set_access(world.target, "dst", Access.WRITES)
    assert write_id(world)
    assert compact(world, CompactionType.MAJOR).is_accepted
    set_access(world.target, "dst", Access.NOTHING)
    with pytest.raises(MetaError, match="is a replica"):
        definitions(world)["drop_table"]()
    with pytest.raises(ReplError, match="src is no replica"):
        set_access(world.source, "src", Access.WRITES)


def test_a_replica_can_be_dropped_as_a_whole(world):
    world.target.drop_database("dst", is_cascade=True)
    assert "dst" not in world.target.get_databases()


def test_after_a_failover_it_is_a_database_of_its_own(world):
    """A transaction of the source that never ended is ended here: it would be open for days, and
    no bootstrap dump could be made."""
    long = world.begin()
    long.insert("t", [(7, "lost with the source")])
    world.replicate()
    with pytest.raises(ReplError, match="repl end dst"):
        dump_of_replica(world)
    plan = plan_end(world.target, "dst")
    assert len(plan.txn_ids) == 1
    run_end(world.target, plan)
    parameters = world.target.get_database("dst").parameters
    assert parameters.keys() <= {"hive.repl.is.custom.db.loc", "hive.repl.is.custom.db.managedloc"}
    open_ids = [one for one in world.target.get_open_txns_info() if one.state is TxnState.OPEN]
    assert open_ids == []
    assert write_id(world)
    definitions(world)["create_table"]()
    with pytest.raises(ReplError, match="neither a source nor a replica"):
        plan_end(world.target, "dst")


def test_a_replay_that_hides_behind_a_property_edited_by_hand_is_named(world):
    long = world.begin()
    long.insert("t", [(7, "lost with the source")])
    world.replicate()
    database = world.target.get_database("dst")
    parameters = {k: v for k, v in database.parameters.items() if k != "repl.target.for"}
    world.target.alter_database("dst", replace(database, parameters=parameters))
    (replay,) = [one.id for one in world.target.get_open_txns_info() if one.state is TxnState.OPEN]
    with pytest.raises(ReplError, match=rf"open transactions: {replay} \(.*'txns abort ID"):
        dump_of_replica(world)
    world.target.abort_txns([replay])
    dump_of_replica(world)


def test_a_source_can_be_ended_and_dropped(world):
    with pytest.raises(Exception, match="repl end src"):
        world.source.drop_database("src", is_cascade=True)
    run_end(world.source, plan_end(world.source, "src"))
    world.source.drop_database("src", is_cascade=True)


def dump_of_replica(world):
    from hms_bridge.repl.dump.repl_dump import ReplDump

    dumper = ReplDump(world.target, world.resolve, world.clock, world.token)
    request = world.dump_request(database="dst", root=str(world.folder / "back"))
    return dumper.run(dumper.plan(request))


def test_a_dropped_replica_takes_its_replays_along(world):
    """Else they would time out after days, and mark the next replica of that name as broken."""
    long = world.begin()
    long.insert("t", [(7, "long")])
    world.replicate()
    (replay,) = [one.id for one in world.target.get_open_txns_info() if one.state is TxnState.OPEN]
    world.target.drop_database("dst", is_cascade=True)
    open_ids = [one for one in world.target.get_open_txns_info() if one.state is TxnState.OPEN]
    assert open_ids == []
    with pytest.raises(TxnAbortedError):
        world.target.heartbeat(replay, 0)
    long.commit()
    world.dump(is_bootstrap_forced=True)
    world.load()
    world.clock.advance_ms(12 * 86_400_000)
    world.target.run_housekeeping()
    world.insert("t", (8, "h"))
    world.replicate()
    assert world.replica.rows("t") == world.rows("t")


def test_a_partition_that_somebody_dropped_is_not_made_anew_without_its_rows(world):
    """While the replica was open to definitions; the load that writes to it finds out."""
    world.create_table("parted", is_partitioned=True)
    for value in ("x", "y"):
        world.add_partition("parted", value)
        world.insert("parted", (1, "a"), partition=f"p={value}")
    world.replicate()
    set_access(world.target, "dst", Access.DEFINITIONS)
    world.target.drop_partitions("dst", "parted", ["p=x"])
    set_access(world.target, "dst", Access.NOTHING)
    world.insert("parted", (2, "b"), partition="p=y")
    world.replicate()
    world.insert("parted", (2, "b"), partition="p=x")
    world.dump()
    with pytest.raises(ReplError, match="p=x of dst.parted is not on the target.*-anew parted"):
        world.load()
    world.dump(tables_anew=("parted",))
    world.load()
    world.assert_same()
