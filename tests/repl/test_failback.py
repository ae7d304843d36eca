"""A former source becomes the replica of the database that took its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.function import Function
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AllocateWriteIdsRequest
from hms_bridge.repl.handover.failback import Failback
from hms_bridge.repl.handover.failback_plan import FailbackRequest, FailbackStep
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access
from tests.conformance.objects import acid_table
from tests.support.handover_world import MAIN, POLICY, Sites
from tests.support.world import World


@pytest.fixture
def sites(fast_folder: Path) -> Iterator[Sites]:
    with Sites(fast_folder) as made:
        yield made.with_tables()


def ids(world: World, table: str = "t") -> list[int]:
    return [row["id"] for row in world.rows(table)]


def state(world: World) -> dict[str, str]:
    return dict(world.metastore.get_database(POLICY).parameters)


def last_counts(sites: Sites) -> tuple[str | None, int]:
    """Of the newest cycle: the kind of its dump, and how many files it copied."""
    result = sites.dr.metastore.policies.get_cycles(POLICY, 1)[0].result
    return result.dump_kind, result.file_count


def test_after_a_planned_switch_only_the_difference_goes_back(sites: Sites) -> None:
    sites.promote(is_planned=True)
    sites.dr.insert("t", (3, "c"))
    sites.dr.delete("u", 1)
    sites.dr.create_table("v")
    sites.dr.insert("v", (1, "v"))
    plan = sites.failback()
    assert (plan.lost, plan.whole, plan.dropped) == ((), (), ())
    sites.assert_same()
    assert last_counts(sites) == ("incremental", 3)
    assert sites.policy.target.metastore == MAIN
    assert not sites.policy.is_paused
    with pytest.raises(MetaError, match="is a replica"):
        sites.main.insert("t", (9, "z"))
    sites.dr.insert("t", (4, "d"))
    sites.replicate()
    sites.assert_same()
    assert "is the replica already" in sites.failback().reason


def test_there_and_back_again(sites: Sites) -> None:
    """Main, dr, main, dr: each is what the other was, and no row goes."""
    now, other = sites.main, sites.dr
    for number in range(10, 14):
        now.insert("t", (number, "w"))
        sites.promote(is_planned=True)
        now, other = other, now
        now.update("u", (2, f"at {number}"))
        sites.failback()
        sites.assert_same()
    assert ids(sites.main) == [1, 2, 10, 11, 12, 13]
    assert "hms.bridge.repl.handover" not in state(other)


def test_compactions_on_either_side_are_no_difference(sites: Sites) -> None:
    for number in (3, 4):
        sites.main.insert("t", (number, "c"))
    sites.promote(is_planned=True)
    sites.dr.insert("t", (5, "c"))
    sites.dr.compact("t")
    sites.dr.clean()
    automatic = CompactionRequest(
        target=Target(POLICY, "t"), type=CompactionType.MAJOR, is_automatic=True
    )
    assert sites.main.metastore.compact(automatic).is_accepted
    outcome = sites.main.worker().run_once()
    assert outcome is not None
    assert outcome.state == "compacted"
    sites.main.clean()
    plan = sites.failback()
    assert plan.whole == ()
    sites.assert_same()


def test_what_never_reached_the_replica_is_named_and_not_lost(sites: Sites) -> None:
    sites.main.insert("t", (3, "only here"))
    sites.main.create_table("mine")
    sites.main.insert("mine", (1, "only here"))
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.dr.insert("t", (4, "d"))
    sites.dr.insert("u", (4, "d"))
    sites.find_main()
    with pytest.raises(ReplError, match="mine: 2 commits or changes; t: 1 commit or change") as e:
        sites.failback()
    assert "'repl failback sales --discard-divergence'" in str(e.value)
    assert ids(sites.main) == [1, 2, 3]
    plan = sites.failback(is_discarded=True)
    assert (plan.whole, plan.dropped) == (("t",), ("mine",))
    sites.assert_same()
    assert ids(sites.main) == [1, 2, 4]
    assert sites.main.metastore.get_tables(POLICY) == ("t", "u")
    kind, files = last_counts(sites)
    assert (kind, files) == ("incremental", 3)  # two of t, which comes whole, one of u


def test_write_ids_without_a_commit_lose_nothing_and_are_mended(sites: Sites) -> None:
    writer = sites.main.begin()
    writer.insert("t", [(3, "never committed")])
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.dr.insert("t", (4, "d"))
    sites.find_main()
    plan = sites.failback()
    assert plan.aborted == (writer.id,)
    assert (plan.lost, plan.whole) == ((), ("t",))
    sites.assert_same()


def test_what_a_hive_counted_before_a_commit_that_never_came_is_no_loss(sites: Sites) -> None:
    """Its INSERT notes statistics in two ALTER_TABLE before it commits; nobody misses those."""
    writer = sites.main.begin()
    writer.insert("t", [(3, "never committed")])
    table = sites.main.metastore.get_table(POLICY, "t")
    counted = replace(table, parameters={**table.parameters, "numRows": "3", "numFiles": "3"})
    sites.main.metastore.alter_table(POLICY, "t", counted)
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    plan = sites.failback()
    assert (plan.lost, plan.whole) == ((), ("t",))
    sites.assert_same()


def test_what_was_counted_without_a_write_comes_whole(sites: Sites) -> None:
    """A Hive answers from such numbers, and those of this side are not the new source's."""
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    table = sites.main.metastore.get_table(POLICY, "t")
    counted = replace(table, parameters={**table.parameters, "numRows": "77"})
    sites.main.metastore.alter_table(POLICY, "t", counted)
    plan = sites.failback()
    assert (plan.lost, plan.whole) == ((), ("t",))
    sites.assert_same()


def test_files_that_only_counts_tell_of_are_named_and_not_lost(sites: Sites) -> None:
    """Of an external table nothing else says that somebody wrote to it."""
    name, place = "ext", sites.folder / "main" / "ext"
    place.mkdir()
    parameters = {"EXTERNAL": "TRUE"}
    external = acid_table(POLICY, name, type="EXTERNAL_TABLE", parameters=parameters)
    external = replace(external, storage=replace(external.storage, location=str(place)))
    sites.main.metastore.create_table(external)
    sites.replicate()
    (place / "000000_0").write_text("only here\n")
    table = sites.main.metastore.get_table(POLICY, name)
    counted = replace(table, parameters={**table.parameters, "numRows": "1", "numFiles": "1"})
    sites.main.metastore.alter_table(POLICY, name, counted)
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    with pytest.raises(ReplError, match="ext: 1 commit or change"):
        sites.failback()


def test_a_transaction_that_the_replica_knew_of_needs_nothing_whole(sites: Sites) -> None:
    """It is aborted on both sides, under the same write id."""
    writer = sites.main.begin()
    writer.insert("t", [(3, "never committed")])
    sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.dr.insert("t", (4, "d"))
    sites.find_main()
    plan = sites.failback()
    assert (plan.lost, plan.whole) == ((), ())
    sites.assert_same()


def test_one_that_committed_after_the_handover_is_a_loss(sites: Sites) -> None:
    """Its write id is from before it."""
    writer = sites.main.begin()
    writer.insert("t", [(3, "c")])
    sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    writer.commit()
    sites.find_main()
    with pytest.raises(ReplError, match="t: 1 commit or change"):
        sites.failback()
    sites.failback(is_discarded=True)
    sites.assert_same()
    assert ids(sites.main) == [1, 2]


def test_one_that_committed_after_the_handover_is_a_loss_though_unreported(sites: Sites) -> None:
    """Its client told the metastore nothing of its files: the log from before tells of its id."""
    writer = sites.main.begin()
    writer.is_reporting = False
    writer.insert("t", [(3, "c")])
    sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    writer.commit()
    sites.find_main()
    with pytest.raises(ReplError, match="t: 1 commit or change"):
        sites.failback()


def test_tables_that_went_on_either_side(sites: Sites) -> None:
    sites.main.create_table("w")
    sites.main.insert("w", (1, "w"))
    sites.replicate()
    sites.main.metastore.drop_table(POLICY, "u")
    sites.main.insert("w", (2, "only here"))
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.dr.metastore.drop_table(POLICY, "w")
    sites.find_main()
    plan = sites.failback(is_discarded=True)
    assert plan.whole == ("u", "w")
    sites.assert_same()
    assert sites.main.metastore.get_tables(POLICY) == ("t", "u")


def test_no_load_takes_such_a_table_for_what_it_is_not(sites: Sites) -> None:
    """A failback that was stopped, and then a dump by hand that does not bring it whole."""
    sites.main.insert("t", (3, "only here"))
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Failback, "_replicate", stops)
        with pytest.raises(KeyboardInterrupt):
            sites.failback(is_discarded=True)
    sites.dr.insert("u", (4, "d"))
    with pytest.raises(ReplError, match="t of database sales changed here alone .*--table-anew t"):
        sites.replicate()
    sites.failback()
    sites.assert_same()


def stops(*args: object, **kwargs: object) -> None:
    raise KeyboardInterrupt


def test_where_the_log_does_not_tell_everything_comes_whole(sites: Sites) -> None:
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    sites.main.insert("t", (3, "c"))
    sites.clock.advance_ms(40 * 86_400_000)
    sites.main.metastore.manifest.remove_pin(f"policy:{POLICY}:file:{sites.root}")
    sites.main.insert("u", (3, "c"))
    sites.main.metastore.run_housekeeping()
    with pytest.raises(ReplError, match="perhaps more: its log does not go back"):
        sites.failback()
    plan = sites.failback(is_discarded=True)
    assert plan.whole == ("t", "u")
    sites.assert_same()


def restore_after_failover(sites: Sites, backup: bytes) -> None:
    """The source is lost once its replica has everything, and comes back as it was before."""
    sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.main.restore(backup)
    sites.find_main()


def test_a_source_restored_from_a_backup_comes_whole(sites: Sites) -> None:
    backup = sites.main.backup()
    sites.main.insert("t", (3, "c"))
    restore_after_failover(sites, backup)
    with pytest.raises(ReplError, match="perhaps more: .*restored"):
        sites.failback()
    sites.failback(is_discarded=True)
    sites.assert_same()
    assert ids(sites.main) == [1, 2, 3]


def test_a_replica_that_was_open_to_others_comes_whole(sites: Sites) -> None:
    set_access(sites.dr.metastore, POLICY, Access.WRITES)
    sites.dr.insert("u", (7, "by hand"))
    set_access(sites.dr.metastore, POLICY, Access.NOTHING)
    sites.promote(is_planned=True)
    plan = sites.failback()
    assert plan.whole == ("t", "u")
    assert "others than loads" in plan.reason
    sites.assert_same()


def test_a_site_that_lost_everything_gets_everything(sites: Sites) -> None:
    sites.lose_main()
    sites.promote(is_source_lost=True)
    run_end(sites.main.metastore, plan_end(sites.main.metastore, POLICY))
    sites.main.metastore.drop_database(POLICY, is_cascade=True)
    sites.find_main()
    plan = sites.failback()
    assert plan.is_bootstrap
    sites.assert_same()
    assert last_counts(sites)[0] == "bootstrap"
    sites.dr.insert("t", (3, "c"))
    sites.replicate()
    sites.assert_same()


def test_both_sides_may_have_names_of_their_own(fast_folder: Path) -> None:
    with Sites(fast_folder, name_at_dr="sales_dr") as sites:
        sites.with_tables().main.insert("t", (3, "only here"))
        sites.lose_main()
        sites.promote(is_source_lost=True)
        sites.dr.insert("u", (3, "c"))
        sites.find_main()
        sites.failback(is_discarded=True)
        sites.assert_same()
        sites.promote(is_planned=True)
        sites.main.insert("t", (4, "d"))
        sites.failback()
        sites.assert_same()


def test_bad_states_are_refused_by_name(sites: Sites) -> None:
    with pytest.raises(ReplError, match="was not promoted .*'repl promote sales'"):
        sites.failback()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    with pytest.raises(ReplError, match="cannot be reached .*nothing leads back before"):
        sites.failback()


def test_a_plan_changes_nothing(sites: Sites) -> None:
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    before = state(sites.main), state(sites.dr)
    plan = Failback(sites.sides()).plan(FailbackRequest(policy=sites.policy))
    assert plan.steps[0] is FailbackStep.FENCE
    assert (state(sites.main), state(sites.dr)) == before


def test_write_ids_of_a_table_that_is_gone_hide_no_rows(sites: Sites) -> None:
    """I11: the source gave them when the table was dropped already, to a writer that was aborted;
    so the table that came back had its first rows in them, unseen."""
    main = sites.main
    sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    main.metastore.drop_table(POLICY, "t")
    writer = main.begin()
    for name in ("t", "v"):
        main.metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name=POLICY, table_name=name, txn_ids=(writer.id,))
        )
    writer.abort()
    sites.find_main()
    sites.dr.insert("u", (5, "e"))
    sites.failback(is_discarded=True)
    sites.assert_same()
    assert [row["id"] for row in main.rows("t")] == [1, 2]
    sites.dr.create_table("v")
    sites.dr.insert("v", (1, "a"))
    sites.replicate()
    sites.assert_same()


def make_function(world: World, name: str) -> None:
    made = Function(name=name, database_name=POLICY, class_name="org.example.F")
    world.metastore.create_function(made)


def test_functions_of_a_replica_that_was_open_are_not_passed_over(sites: Sites) -> None:
    """No event after the handover tells of them, and no dump brings them anew."""
    set_access(sites.dr.metastore, POLICY, Access.DEFINITIONS)
    make_function(sites.dr, "by_hand")
    set_access(sites.dr.metastore, POLICY, Access.NOTHING)
    sites.promote(is_planned=True)
    make_function(sites.dr, "later")
    with pytest.raises(ReplError, match=r"other functions \(by_hand\).*DROP DATABASE sales CASC"):
        sites.failback(is_discarded=True)
    run_end(sites.main.metastore, plan_end(sites.main.metastore, POLICY))
    sites.main.metastore.drop_database(POLICY, is_cascade=True)
    sites.failback()
    found = [function.name for function in sites.main.metastore.get_functions(POLICY)]
    assert found == ["by_hand", "later"]


def test_functions_that_no_log_tells_of_are_not_passed_over(sites: Sites) -> None:
    """A former source restored from a backup has lost one that its replica has."""
    backup = sites.main.backup()
    make_function(sites.main, "f")
    restore_after_failover(sites, backup)
    with pytest.raises(ReplError, match=r"other functions \(f\), and no dump brings that anew"):
        sites.failback(is_discarded=True)


def test_functions_of_the_new_source_go_back_where_everything_comes_whole(sites: Sites) -> None:
    backup = sites.main.backup()
    sites.main.insert("t", (3, "c"))
    restore_after_failover(sites, backup)
    make_function(sites.dr, "later")
    sites.failback(is_discarded=True)
    assert [function.name for function in sites.main.metastore.get_functions(POLICY)] == ["later"]
    sites.assert_same()
