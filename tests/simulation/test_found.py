"""What schedules found once, reduced: each lost something on the code of its day."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from functools import partial

import pytest

from hms_bridge.errors import InvalidOperationError, MetaError, ReplError, TxnAbortedError
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import (
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import CommitTxnRequest
from tests.simulation.admins import Admins, Left
from tests.simulation.alterations import Alterations
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster, determined
from tests.simulation.daemons import Daemons
from tests.simulation.foreign_worker import ForeignWorker
from tests.simulation.plain_reader import cut_rows
from tests.simulation.run import play, the_cluster
from tests.simulation.schedule import Kind, Step
from tests.simulation.scheduler import FOREVER, Actor
from tests.simulation.statements import Statement
from tests.simulation.story import ViolationError


@pytest.fixture
def cluster():
    with determined(0):
        found = the_cluster()
        found.restart()
        yield found


@pytest.mark.parametrize("seed", range(4))
def test_a_renamed_table_is_where_its_rows_say_after_a_power_loss(cluster, seed):
    """I1: the catalog named the new directory for good, the disk did not."""
    Clients(cluster).insert_into("t", random.Random(1))
    assert cluster.model.tables["t"].partitions[""]
    cluster.disk.sync_all()
    tables = cluster.model.tables
    tables["renamed"] = tables.pop("t")
    table = cluster.source.metastore.get_table("src", "t")
    cluster.source.metastore.alter_table("src", "t", replace(table, name="renamed"))
    cluster.disk.cut_power(random.Random(seed))
    cluster.check()


@pytest.mark.parametrize("seed", range(4))
def test_a_finished_dump_is_whole_after_a_power_loss(cluster, seed):
    """I13: else every load refuses it, and every dump waits for its load."""
    daemons = Daemons(cluster)
    Clients(cluster).insert_into("t", random.Random(1))
    cluster.disk.sync_all()
    daemons.dump(random.Random(1))
    cluster.disk.cut_power(random.Random(seed))
    daemons.load(random.Random(1))
    cluster.check()
    assert cluster.loaded is not None


def test_a_load_that_finds_nothing_to_do_is_held_to_it(cluster):
    """I11: of one that died at its very end nobody has said what the replica must be."""
    daemons = Daemons(cluster)
    Clients(cluster).insert_into("t", random.Random(1))
    daemons.replicate(random.Random(1))
    cluster.loaded, cluster.target.story.loads_at_work = None, 1
    daemons.load(random.Random(1))
    assert cluster.loaded is None  # another one is at work, and has the replica between two states
    cluster.target.story.loads_at_work = 0
    daemons.load(random.Random(1))
    assert cluster.is_replica_equal()
    lost = next(path for path, _ in cluster.disk.files("/target") if "bucket_" in path)
    cluster.disk.remove(f"/target/{lost}")
    cluster.disk.version += 1
    with pytest.raises(ViolationError, match="I11"):
        cluster.check()


@pytest.mark.parametrize("seed", range(4))
def test_what_a_truncated_table_says_of_itself_survives_a_power_loss(cluster, seed):
    """Whoever archives it later finds what was there when the statement was committed."""
    Clients(cluster).insert_into("t", random.Random(1))
    for number in range(8):
        Alterations(cluster).truncate(random.Random(number))

    def markers() -> dict[str, bytes]:
        files = cluster.disk.files("/source")
        return {path: file.data for path, file in files if path.endswith("/_metadata_acid")}

    before = markers()
    cluster.disk.cut_power(random.Random(seed))
    assert before and markers() == before


@pytest.mark.parametrize("seed", range(4))
def test_a_partition_renamed_on_the_replica_is_there_after_a_power_loss(cluster, seed):
    """I1: the old names of its files were gone for good, the new ones not on the disk."""
    daemons, alterations = Daemons(cluster), Alterations(cluster)
    alterations.add_partition(random.Random(1))
    (partition,) = cluster.model.tables["q"].partitions
    Clients(cluster).insert_into("q", random.Random(1))
    daemons.replicate(random.Random(1))
    alterations.rename_partition(random.Random(1))
    assert partition not in cluster.model.tables["q"].partitions
    cluster.disk.sync_all()
    daemons.replicate(random.Random(1))
    cluster.disk.cut_power(random.Random(seed))
    cluster.check()


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_a_dropped_partition_stay_away_after_a_power_loss(cluster, seed, monkeypatch):
    """I7: a writer had put files there meanwhile, so the directory stayed, and had the names of
    dropped files on the disk still; the partition that was made again showed them."""
    monkeypatch.setattr("tests.simulation.clients.PARTITIONS", ("p=1",))
    clients, tables = Clients(cluster), cluster.model.tables
    clients.add_partitions("q", ["p=1"])
    clients.insert_into("q", random.Random(1))
    cluster.disk.sync_all()
    dropped = [*tables["q"].partitions["p=1"]]
    actor = cluster.scheduler.spawn(1, "drop", lambda: clients.drop_partition(random.Random(1)))
    while tables["q"].partitions:
        actor.resume(1)
    clients._dynamic_insert(random.Random(1), "q")
    assert dropped and not set(dropped) & set(tables["q"].partitions["p=1"])
    cluster.scheduler.kill(actor)
    cluster.disk.cut_power(random.Random(seed))
    cluster.check()


def insert(cluster: Cluster, count: int) -> None:
    for seed in range(count):
        Clients(cluster).insert_into("t", random.Random(seed))


def compact(cluster: Cluster) -> None:
    """And so long ago that the cleaner may come."""
    cluster.source.metastore.compact(
        CompactionRequest(target=Target("src", "t"), type=CompactionType.MAJOR)
    )
    Daemons(cluster).work(random.Random(1))
    cluster.clock.advance_ms(100_000)


def test_a_purge_keeps_what_an_unloaded_dump_names(cluster):
    """I5: however long the load is in coming."""
    daemons = Daemons(cluster)
    daemons.dump(random.Random(1))
    daemons.load(random.Random(1))
    insert(cluster, 3)
    compact(cluster)
    daemons.clean(random.Random(1))
    cluster.clock.advance_ms(100_000)
    daemons.dump(random.Random(1))
    archived = {path for path, file in cluster.disk.files("/cmroot") if file.data}
    assert len(archived) >= 3
    cluster.clock.advance_ms(400 * 86_400_000)
    daemons.purge(random.Random(1))
    cluster.check()
    daemons.load(random.Random(1))
    cluster.check()
    assert cluster.loaded is not None


def test_archived_files_survive_a_power_loss(cluster):
    """I4: the cleaner deletes for good, so what it archived is there for good."""
    daemons = Daemons(cluster)
    for seed in range(3):
        Clients(cluster).insert_into("t", random.Random(seed))
    store = cluster.source.metastore
    store.compact(CompactionRequest(target=Target("src", "t"), type=CompactionType.MAJOR))
    daemons.work(random.Random(1))
    cluster.disk.sync_all()
    cluster.clock.advance_ms(100_000)
    daemons.clean(random.Random(1))
    before = {path for path, file in cluster.disk.files("/cmroot") if file.data}
    assert len(before) >= 3
    cluster.disk.cut_power(random.Random(4))
    assert {path for path, file in cluster.disk.files("/cmroot") if file.data} == before


def test_a_partition_that_comes_again_meets_no_rows_of_the_old_one(cluster):
    """I1: a drop that was killed after its commit, and the partition made again."""
    clients = Clients(cluster)
    clients.add_partitions("q", ["p=1"])
    clients.insert_into("q", random.Random(1))
    assert cluster.model.tables["q"].partitions["p=1"]
    actor = cluster.scheduler.spawn(1, "drop", lambda: clients.drop_partition(random.Random(1)))
    while "p=1" in cluster.model.tables["q"].partitions:
        actor.resume(1)
    cluster.scheduler.kill(actor)
    clients.add_partitions("q", ["p=1"])
    cluster.check()


@pytest.mark.parametrize("has_one_event", [True, False])
def test_columns_that_partitions_get_come_to_the_replica(cluster, monkeypatch, has_one_event):
    """I11: Hive's event of an ALTER TABLE does not say that it had a CASCADE."""
    clients, daemons = Clients(cluster), Daemons(cluster)
    clients.add_partitions("q", ["p=1"])
    daemons.replicate(random.Random(1))
    store = cluster.source.metastore
    events = replace(store._settings.events, is_alter_partitions_one_event=has_one_event)
    monkeypatch.setattr(store, "_settings", replace(store._settings, events=events))
    table = store.get_table("src", "q")
    columns = (*table.storage.columns, Column(name="c", type="string"))
    wider = replace(table, storage=replace(table.storage, columns=columns))
    wanted = tuple((column.name, column.type) for column in columns)
    cluster.model.tables["q"].columns = wanted
    store.alter_table("src", "q", wider, environment={"CASCADE": "true"})
    daemons.replicate(random.Random(1))
    cluster.check()
    assert cluster.target.definition("q").partitions == (("p=1", wanted),)


def test_an_adopted_table_is_not_missing_on_the_replica(cluster):
    """I11: the writes of its rows are in no event, so a dump that goes on would leave them out."""
    clients, admins = Clients(cluster), Admins(cluster)
    insert(cluster, 3)
    admins.replicate(random.Random(1))
    for seed in range(9):
        if "a" not in cluster.model.tables:
            admins.adopt_copy(random.Random(seed))
    with pytest.raises(ReplError, match=r"src\.a was adopted with the rows .*--table-anew a"):
        admins.dump(random.Random(1))
    admins.mend_replica(random.Random(1))
    assert not cluster.nothing_to_discard
    assert cluster.is_replica_equal()
    clients.insert_into("a", random.Random(1))
    admins.replicate(random.Random(1))
    cluster.check()
    assert cluster.is_replica_equal()


def drop_and_die(cluster: Cluster) -> None:
    """A DROP of `t`, the only table then, that is killed after its commit."""
    clients = Clients(cluster)
    cluster.model.tables.pop("q")
    cluster.source.metastore.drop_table("src", "q")
    actor = cluster.scheduler.spawn(1, "drop", lambda: clients.drop_table(random.Random(1)))
    while "t" in cluster.model.tables:
        actor.resume(1)
    cluster.scheduler.kill(actor)


def test_a_table_whose_drop_died_is_adopted_whole(cluster):
    """I1: as long as none of its files is gone."""
    insert(cluster, 3)
    admins = Admins(cluster)
    drop_and_die(cluster)
    cluster.clock.advance_ms(700_000)
    admins.adopt_dropped(random.Random(1))
    cluster.check()
    assert len(cluster.model.tables["t"].partitions[""]) >= 3


def test_partitions_of_an_adoption_that_is_taken_up_again_are_not_missing_either(cluster):
    """I11: the table came to the replica by a bootstrap between the two tries."""
    clients, admins = Clients(cluster), Admins(cluster)
    cluster.model.tables.pop("t")
    cluster.source.metastore.drop_table("src", "t")
    clients.add_partitions("q", ["p=1"])
    clients.insert_into("q", random.Random(1))
    known, view = copy.deepcopy(cluster.model.tables["q"]), cluster.source.view("q")
    actor = cluster.scheduler.spawn(1, "adopt", lambda: admins.adopt_copy(random.Random(1)))
    while "a" not in cluster.model.tables:
        actor.resume(1)
    cluster.scheduler.kill(actor)
    cluster.effects.clear()
    assert not cluster.source.places("a")
    admins.replicate(random.Random(1))
    location = cluster.source.table_location("a").removeprefix("file:")
    admins._adopt(Left("a", location, known.columns, view), known)
    assert cluster.source.places("a")
    with pytest.raises(ReplError, match=r"src\.a was adopted with the rows"):
        admins.dump(random.Random(1))
    admins.mend_replica(random.Random(1))
    cluster.check()
    assert cluster.is_replica_equal()


def test_a_rebalance_of_hives_brings_its_table_anew(cluster):
    """I11: every row has another id then."""
    insert(cluster, 3)
    admins = Admins(cluster)
    admins.replicate(random.Random(1))
    ForeignWorker(cluster).rebalance_as_hive(random.Random(1))
    cluster.check()
    with pytest.raises(ReplError, match=r"src\.t was rebalanced"):
        admins.dump(random.Random(1))
    admins.mend_replica(random.Random(1))
    cluster.check()
    assert cluster.is_replica_equal()


def begin_rename(cluster: Cluster, name: str = "t") -> Actor:
    """A rename of `t`, or of `q`'s partition, that stands still while the directory is at its new
    place and the database does not know of it."""
    store = cluster.source.metastore
    (place,) = cluster.source.places(name).values()

    def rename() -> None:
        if name == "t":
            store.alter_table("src", "t", replace(store.get_table("src", "t"), name="m"))
            return
        old = store.get_partition("src", "q", ["1"])
        new = replace(old, values=("2",), storage=replace(old.storage, location=None))
        store.rename_partition("src", "q", old.values, new)

    actor = cluster.scheduler.spawn(1, "rename", rename)
    while cluster.disk.find(place) is not None:
        actor.resume(1)
        assert actor.is_alive, actor.error
    return actor


@pytest.mark.parametrize("name", ["t", "q"])
def test_rows_written_while_a_rename_moves_the_directory_are_there(cluster, name):
    """I1: their writer had been told the old place."""
    clients = Clients(cluster)
    clients.add_partitions("q", ["p=1"])
    clients.insert_into(name, random.Random(1))
    actor = begin_rename(cluster, name)
    clients.insert_into(name, random.Random(2))
    actor.resume(FOREVER)
    assert isinstance(actor.error, MetaError)
    assert "was written to while a directory of it was moved" in str(actor.error)
    cluster.check()


def test_nothing_is_compacted_while_a_rename_moves_it(cluster):
    """I1: neither by a worker that comes, nor by one that has looked already."""
    insert(cluster, 3)
    daemons, store = Daemons(cluster), cluster.source.metastore
    request = CompactionRequest(target=Target("src", "t"), type=CompactionType.MAJOR)
    store.compact(request)
    early = cluster.scheduler.spawn(2, "work", lambda: daemons._work(cluster.source))
    while not store.show_compactions(ShowCompactionsRequest(state=CompactionState.WORKING)):
        early.resume(1)
    actor = begin_rename(cluster)
    assert store.find_next_compaction("w", "4") is None
    insert(cluster, 4)  # so that the rename goes back
    early.resume(FOREVER)
    actor.resume(FOREVER)
    daemons._work(cluster.source)
    cluster.check()


def test_nothing_is_recorded_as_cleaned_while_a_rename_moves_it(cluster):
    """I1: the directory seems empty, so that the abort of what is in it would be forgotten."""
    cluster.source.metastore.drop_table("src", "q")
    cluster.model.tables.pop("q")
    clients, daemons = Clients(cluster), Daemons(cluster)
    aborted = Statement(cluster, random.Random(1), "t")
    aborted.allocate()
    aborted.insert(cluster.source.table_location("t")[5:], "", [(1, "v1")], 0)
    aborted.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [""], is_dynamic=False)
    aborted.abort()
    cluster.clock.advance_ms(cluster.source.settings.compactor.abort_retention_ms + 1)
    actor = begin_rename(cluster)
    clients.insert_into("t", random.Random(3))  # so that the rename goes back
    daemons._clean(cluster.source)
    actor.resume(FOREVER)
    for seed in range(2):
        daemons.keep_house(random.Random(seed))
        clients.insert_into("t", random.Random(seed))
        cluster.clock.advance_ms(100_000)
    clients.read_all(random.Random(1))
    cluster.check()
    assert cluster.disk.find(cluster.source.table_location("t")[5:] + "/delta_0000001_0000001_0000")


def swap(cluster: Cluster) -> None:
    """A replica, and a dump in which two of its tables, one of them wider by then, change names."""
    clients, daemons = Clients(cluster), Daemons(cluster)
    clients.add_partitions("q", ["p=1"])
    for table in ("t", "q"):
        clients.insert_into(table, random.Random(1))
    daemons.replicate(random.Random(1))
    Alterations(cluster)._alter_columns(
        random.Random(3), "t", (*cluster.source.columns("t"), ("c2", "int"))
    )
    for old, new in (("t", "m"), ("q", "t"), ("m", "q")):
        clients.rename_to(old, new)
    daemons.dump(random.Random(1))


def test_a_load_that_is_killed_between_renames_goes_on_from_there(cluster, monkeypatch):
    """I11: an event before a rename, applied again, would meet another table of that name."""
    swap(cluster)
    monkeypatch.setattr(cluster, "_image", cluster.image())
    at = 0
    while True:
        cluster.restart()
        daemons = Daemons(cluster)
        load = partial(daemons.load, random.Random(1))
        actor = cluster.scheduler.spawn(1, "load", load)
        while actor.is_alive and "m" not in cluster.target.table_ids():
            actor.resume(1)
        actor.resume(at)
        if not actor.is_alive:
            break
        cluster.scheduler.kill(actor)
        cluster.clock.advance_ms(700_000)
        load()
        cluster.check()
        assert cluster.is_replica_equal()
        at += 1
    assert at > 3
    cluster.check()


def test_a_table_is_not_adopted_under_the_writer_that_it_was_dropped_under(cluster):
    """I1: it goes on writing. A drop of ours ends who has a write id; a Hive's ends nobody."""
    insert(cluster, 1)
    admins = Admins(cluster)
    writer = Statement(cluster, random.Random(1), "t")
    writer.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [""])
    drop_and_die(cluster)
    cluster.clock.advance_ms(200_000)
    with pytest.raises(InvalidOperationError, match="holds a lock to write to src.t"):
        admins.adopt_dropped(random.Random(1))
    writer.abort()
    cluster.clock.advance_ms(500_000)
    admins.adopt_dropped(random.Random(1))
    cluster.check()


def test_a_table_is_adopted_without_the_writer_that_its_drop_ended(cluster):
    """I7: its write id is aborted in the table that is adopted."""
    insert(cluster, 1)
    admins = Admins(cluster)
    writer = Statement(cluster, random.Random(1), "t")
    writer.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [""])
    writer.allocate()
    drop_and_die(cluster)
    cluster.clock.advance_ms(200_000)
    admins.adopt_dropped(random.Random(1))
    with pytest.raises(TxnAbortedError, match="was dropped"):
        writer.store.commit_txn(CommitTxnRequest(txn_id=writer.id))
    (seen,) = writer.store.get_valid_write_ids([f"{cluster.database}.t"])
    assert writer.write_id in seen.aborted_ids
    cluster.check()


def test_what_is_committed_while_a_drop_looks_at_a_partition_goes_with_it() -> None:
    """It stayed, and was there again once the partition was made anew (seed 229)."""
    steps = [
        Step(Kind.START, 8, "insert", 1006242576),
        Step(Kind.RUN, 8),
        Step(Kind.START, 10, "drop_partition", 953791438),
        Step(Kind.RUN, 10, amount=3),
        Step(Kind.START, 11, "insert", 888399501),
        Step(Kind.RUN, 11),
        Step(Kind.START, 13, "insert", 268055088),
    ]
    assert play(229, steps) is None


def test_a_partition_that_was_overwritten_with_nothing_and_renamed_is_empty_on_the_replica() -> (
    None
):
    """It kept its rows there (seed 6212): they were looked for under the name of before."""
    steps = [
        Step(Kind.START, 6, "dump", 155344308),
        Step(Kind.START, 9, "insert", 945926137),
        Step(Kind.START, 10, "overwrite", 284513667),
        Step(Kind.START, 14, "rename_partition", 494232849),
    ]
    assert play(6212, steps) is None


@pytest.mark.parametrize(
    "later",
    [
        (),
        ("request",),
        ("rebalance_as_hive",),
        ("insert", "add_column", "request", "replicate", "repair"),
    ],
    ids=lambda later: " ".join(later) or "nothing",
)
def test_columns_that_a_stale_alter_takes_away_are_not_shown(later: tuple[str, ...]) -> None:
    """ALTER TABLE CHANGE COLUMN writes the list that it had read before another one added a column,
    as in Hive; a compaction that comes then writes the rows without it (seed 685 of handovers)."""
    works = [("change_column", 47544452, 2), ("add_column", 705586214, 0), ("insert", 293163765, 0)]
    steps: list[Step] = []
    for number, (work, dice, points) in enumerate(works, 2):
        steps += [Step(Kind.START, number, work, dice), Step(Kind.RUN, number, amount=points)]
    steps.append(Step(Kind.RUN, 2))
    for number, work in enumerate(later, 10):
        steps += [Step(Kind.START, number, work, number), Step(Kind.RUN, number)]
    assert play(685, steps) is None
    assert len(the_cluster().first.columns("t")) == 2


def test_a_row_that_was_cut_promises_what_is_left_of_it() -> None:
    whole = {(1, 0, 0): (1, "a", 7), (1, 0, 1): (2, "b")}
    cut = cut_rows(whole, 2)
    assert cut_rows(cut, 3) is cut
    assert cut == {(1, 0, 0): (1, "a"), (1, 0, 1): (2, "b")}
    assert whole == cut and copy.deepcopy(cut) == whole
    for other in ((1, "b"), (1,), (2, "a", 7)):
        assert other != cut[1, 0, 0] and cut[1, 0, 0] != other
    assert cut[1, 0, 1] != (2, "b", 7)
