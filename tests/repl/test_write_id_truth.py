"""Write ids of a replica are its source's, or the load says so (I1, I11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.errors import InvalidOperationError, ReplError
from hms_bridge.model.catalog import Column
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access
from hms_bridge.repl.load.plan import LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.repl.whole_lists import whole_lists
from tests.support.passing import Passing
from tests.support.repl_world import LEASE

_OTHERS = r"write id {} of dst\.t is not that of the source's transaction"


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    return empty_world


def foreign_write(world):
    """A transaction of the replica's own that takes a write id there, as an admin let it."""
    database = world.target.get_database("dst")
    parameters = {**database.parameters, "hms.bridge.replica.open": "true"}
    world.target.alter_database("dst", replace(database, parameters=parameters))
    writer = world.replica.begin()
    return writer.id, writer.write_id("t")


def end(world, txn_id, how):
    if how == "committed":
        world.replica.commit(txn_id)
    if how == "aborted":
        world.replica.abort(txn_id)


def refused_load(world, write_id):
    before = world.last_event()
    with pytest.raises(ReplError, match=_OTHERS.format(write_id)) as caught:
        world.load()
    command = "'repl dump src --table-anew t' at the source, then 'repl load src --into dst'"
    assert command in str(caught.value)
    return before


@pytest.mark.parametrize("how", ["aborted", "committed", "left open"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_write_id_that_somebody_took_on_the_replica_stops_the_load(world, how, is_first):
    """The source's commit under the same number would be invisible, or doubled by theirs."""
    world.replicate()
    if not is_first:
        world.insert("t", (3, "c"))
        world.replicate()
    txn_id, write_id = foreign_write(world)
    end(world, txn_id, how)
    world.insert("t", (4, "d"))
    world.dump()
    refused_load(world, write_id)
    assert 4 not in [row["id"] for row in world.replica.rows("t")]
    refused_load(world, write_id)


def test_a_committed_write_of_the_replica_is_found_where_the_source_aborts(world):
    """The source's next write has a number of its own, so nothing else would show it."""
    world.replicate()
    world.insert("t", (3, "c"))
    world.replicate()
    txn_id, write_id = foreign_write(world)
    end(world, txn_id, "committed")
    lost = world.begin()
    lost.insert("t", [(9, "never")])
    lost.abort()
    world.insert("t", (4, "d"))
    world.dump()
    refused_load(world, write_id)


def test_write_ids_of_the_bootstrap_and_of_an_earlier_try_are_the_sources(world):
    """Writes while it is dumped are in the bootstrap and in the next dump, aborted ones too."""
    writer = world.begin()
    writer.insert("t", [(5, "between")])
    lost = world.begin()
    lost.insert("t", [(6, "never")])

    def on_sleep():
        if writer.id in world.open_txn_ids():
            writer.commit()
            lost.abort()

    world.clock.on_sleep = on_sleep
    world.replicate()
    world.assert_same()
    again = world.begin()
    again.insert("t", [(7, "aborted later")])
    world.replicate()
    again.abort()
    world.insert("t", (8, "h"))
    world.replicate()
    world.assert_same()


def test_a_begin_anew_ends_it(world):
    world.replicate()
    txn_id, _ = foreign_write(world)
    end(world, txn_id, "aborted")
    world.insert("t", (4, "d"))
    world.dump()
    with pytest.raises(ReplError):
        world.load()
    discard = ReplDiscard(
        world.source, world.resolve, world.clock, world.token, world.source.manifest
    )
    discard.run(
        discard.plan(
            DiscardRequest(root=str(world.repl_root), database_name="src", dump=None, lease=LEASE)
        )
    )
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    world.load()
    world.insert("t", (5, "e"))
    world.replicate()
    world.assert_same()


class TestCutLists:
    """A list of Hive's ends at the lowest id that it must not see if it knows no committed one."""

    @pytest.fixture
    def forgotten(self, world, monkeypatch):
        """Two aborted write ids, whose committed predecessor housekeeping has forgotten, in a
        metastore that tells lists as Hive's does."""
        told = world.source.get_valid_write_ids

        def as_hive(names, txns=None, write_id=None):
            (seen,) = told(names, txns, write_id)
            unseen = sorted({*seen.open_ids, *seen.aborted_ids})
            if names != ["src.t"] or unseen != list(range(2, seen.high_watermark + 1)):
                return (seen,)
            aborted = tuple(one for one in seen.aborted_ids if one == 2)
            opened = tuple(one for one in seen.open_ids if one == 2)
            end = replace(seen, high_watermark=2, aborted_ids=aborted, open_ids=opened)
            return (end if unseen else seen,)

        monkeypatch.setattr(world.source, "get_valid_write_ids", as_hive)
        for row in (7, 8):
            lost = world.begin()
            lost.insert("t", [(row, "never")])
            lost.abort()
        world.clock.advance_ms(100_000)
        world.source.run_housekeeping()
        (cut,) = world.source.get_valid_write_ids(["src.t"])
        assert (cut.high_watermark, cut.aborted_ids) == (2, (2,))
        return world

    def test_a_bootstrap_takes_the_whole_list(self, forgotten):
        world = forgotten
        (whole,) = whole_lists(world.source, ["src.t"], world.source.get_open_txns().snapshot())
        assert (whole.high_watermark, whole.aborted_ids, whole.open_ids) == (3, (2, 3), ())
        world.replicate()
        world.assert_same()
        world.insert("t", (9, "after"))
        world.replicate()
        world.assert_same()

    def test_a_bootstrap_waits_for_a_writer_beyond_the_cut(self, forgotten):
        world = forgotten
        writer = world.begin()
        writer.insert("t", [(10, "late")])
        world.clock.on_sleep = writer.commit
        world.replicate()
        world.assert_same()
        assert 10 in [row["id"] for row in world.replica.rows("t")]

    def test_all_of_many_are_told(self, forgotten):
        world = forgotten
        for row in range(20, 33):
            lost = world.begin()
            lost.insert("t", [(row, "never")])
            if row % 3:
                lost.abort()
        (whole,) = whole_lists(world.source, ["src.t"], world.source.get_open_txns().snapshot())
        assert whole.high_watermark == 16
        assert whole.open_ids == (5, 8, 11, 14)
        assert {*whole.open_ids, *whole.aborted_ids} == set(range(2, 17))

    def test_a_committed_id_above_a_remembered_one_is_of_the_list(self, world):
        """Hive forgets by transaction: an older one that wrote later is gone from its list."""
        older = world.begin()
        lost = world.begin()
        lost.insert("t", [(7, "never")])
        older.insert("t", [(8, "kept")])
        older.commit()
        lost.abort()

        class Forgetful(Passing):
            def get_valid_write_ids(self, names, txns=None, write_id=None):
                (one,) = self.inner.get_valid_write_ids(names, txns, write_id)
                return (replace(one, high_watermark=min(one.high_watermark, 2)),)

        (whole,) = whole_lists(
            Forgetful(world.source), ["src.t"], world.source.get_open_txns().snapshot()
        )
        assert (whole.high_watermark, whole.aborted_ids) == (3, (2,))


class TestObjectsOfOthers:
    """What stands on the replica under a name of the source's later table, and what cannot go."""

    def test_a_table_that_no_load_made_is_not_taken_for_the_sources(self, world):
        """Its columns are others: the source's rows would come in the wrong schema."""
        world.replicate()
        set_access(world.target, "dst", Access.DEFINITIONS)
        table = world.target.get_table("dst", "t")
        parameters = {k: v for k, v in table.parameters.items() if "repl" not in k}
        own = replace(
            table,
            name="later",
            id=None,
            parameters=parameters,
            storage=replace(table.storage, location=None, columns=(Column(name="x", type="date"),)),
        )
        world.target.create_table(own)
        world.create_table("later")
        world.insert("later", (1, "a"))
        world.dump()
        with pytest.raises(ReplError, match=r"table dst\.later is on the target, and no load made"):
            world.load()
        world.target.drop_table("dst", "later")
        world.load()
        world.assert_same()

    def test_an_iceberg_table_would_be_at_work_on_the_sources_files(self, world):
        place = str(world.folder / "ice")
        table = world.source.get_table("src", "t")
        iceberg = replace(
            table,
            name="ice",
            id=None,
            type="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE", "table_type": "ICEBERG", "metadata_location": place},
            storage=replace(table.storage, location=place),
        )
        world.replicate()
        world.source.create_table(iceberg)
        refused = r"src\.ice is an Iceberg table, which cannot be replicated"
        with pytest.raises(ReplError, match=refused):
            world.dump()
        with pytest.raises(ReplError, match=refused):
            world.dump(is_bootstrap_forced=True)

    def test_a_materialized_view_is_rebuilt_without_stopping_the_replica(self, world):
        """The replica has none, so what its rebuild wrote is not looked for there."""
        table = world.source.get_table("src", "t")
        view = replace(
            table,
            name="mv",
            id=None,
            type="MATERIALIZED_VIEW",
            storage=replace(table.storage, location=None),
            view_original_text="select * from t",
            view_expanded_text="select * from `src`.`t`",
        )
        world.replicate()
        world.source.create_table(view)
        with world.transaction() as txn:
            txn.insert("mv", [(1, "a"), (2, "b")])
        world.insert("t", (3, "c"))
        world.replicate()
        assert world.target.get_tables("dst") == ("t",)
        assert world.replica.rows("t") == world.rows("t")

    def test_a_view_that_reads_the_source_by_name_is_told(self, world):
        table = world.source.get_table("src", "t")
        for name, text in (("v", "select * from `src`.`t`"), ("own", "select `t`.`src` from `t`")):
            world.source.create_table(
                replace(
                    table,
                    name=name,
                    id=None,
                    type="VIRTUAL_VIEW",
                    parameters={},
                    storage=replace(table.storage, location=None),
                    view_original_text=text,
                    view_expanded_text=text,
                )
            )
            _, report = world.replicate()
            told = "view dst.v reads database src by name"
            assert [note.startswith(told) for note in report.notes] == ([True] * (name == "v"))

    def test_a_failback_ends_where_the_errors_lead(self, world):
        """The former source refuses to become a replica until its own part is ended."""
        world.replicate()
        run_end(world.target, plan_end(world.target, "dst"))
        writer = world.replica.begin()
        writer.write_id("t")
        writer.abort()
        dumper = ReplDump(world.target, world.resolve, world.clock, world.token)
        back = str(world.folder / "back")
        dumper.run(dumper.plan(world.dump_request(database="dst", root=back)))
        loader = ReplLoad(world.source, world.resolve, clock=world.clock)
        request = LoadRequest(
            root=back, source_database="dst", target_database="src", lease=LEASE,
            roots=(f"file:{world.folder}/target", f"file:{world.cmroot}"),
        )  # fmt: skip
        with pytest.raises(ReplError, match="'repl end src'"):
            loader.plan(request)
        with pytest.raises(InvalidOperationError, match="repl end src"):
            world.source.drop_database("src", is_cascade=True)
        run_end(world.source, plan_end(world.source, "src"))
        world.source.drop_database("src", is_cascade=True)
        loader.run(loader.plan(request))
        assert world.rows("t") == world.replica.rows("t")
        assert world.source.get_max_allocated_write_id("src", "t") == 2
