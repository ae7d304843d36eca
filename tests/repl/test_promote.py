"""A replica takes its source's place: planned, and because the source is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import BusyError, MetaError, ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.replication import ReplicationPolicy
from hms_bridge.model.target import Target
from hms_bridge.model.txn import OpenTxnsRequest, TxnState, TxnType
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.handover import promote
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access
from hms_bridge.repl.handover.promote import Promotion
from hms_bridge.repl.handover.promote_plan import PromoteRequest, PromoteStep
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.handover.sides import OpenSides, Side
from hms_bridge.repl.lease import Lease
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusRequest
from hms_bridge.repl.target_objects import FENCED, with_parameters
from tests.support.handover_world import POLICY, Sites
from tests.support.passing import Passing
from tests.support.world import World


@pytest.fixture
def sites(fast_folder: Path) -> Iterator[Sites]:
    """A source with two tables that its replica has, too."""
    with Sites(fast_folder) as made:
        yield made.with_tables()


def ids(world: World, table: str = "t") -> list[int]:
    return [row["id"] for row in world.rows(table)]


def open_txns(world: World) -> list[int]:
    found = world.metastore.get_open_txns_info()
    return [txn.id for txn in found if txn.state is TxnState.OPEN]


def state(world: World) -> dict[str, str]:
    return dict(world.metastore.get_database(POLICY).parameters)


def test_a_planned_switch_loses_no_commit(sites: Sites) -> None:
    sites.main.insert("t", (3, "c"))
    plan = sites.promote(is_planned=True)
    assert plan.behind is not None
    assert plan.behind.commits == 1
    assert ids(sites.dr) == [1, 2, 3]
    sites.dr.insert("t", (4, "d"))
    assert ids(sites.dr) == [1, 2, 3, 4]
    assert ids(sites.main) == [1, 2, 3]


def test_nobody_writes_to_a_fenced_source(sites: Sites) -> None:
    """As in a replica: no write ids, no definitions, no compactions that people ask for."""
    sites.promote(is_planned=True)
    main = sites.main.metastore
    with pytest.raises(MetaError, match="is fenced .*'repl promote sales --cancel'"):
        sites.main.insert("t", (9, "z"))
    with pytest.raises(MetaError, match="create_table new: database sales is fenced"):
        sites.main.create_table("new")
    with pytest.raises(MetaError, match="drop_table"):
        main.drop_table(POLICY, "t")
    with pytest.raises(ReplError, match="is no source any more: .*'repl end sales', then"):
        set_access(main, POLICY, Access.WRITES)
    refused = main.compact(CompactionRequest(target=Target(POLICY, "t"), type=CompactionType.MAJOR))
    assert not refused.is_accepted
    assert "is fenced" in str(refused.error_message)
    automatic = CompactionRequest(
        target=Target(POLICY, "t"), type=CompactionType.MAJOR, is_automatic=True
    )
    assert main.compact(automatic).is_accepted


def test_a_planned_switch_waits_for_open_transactions(sites: Sites) -> None:
    """What they had begun is committed, and comes along."""
    writer = sites.main.begin()
    writer.lock("t")
    writer.insert("t", [(3, "c")])
    sleep = sites.clock.sleep_seconds

    def commits(seconds: float) -> None:
        sleep(seconds)
        assert "hms.bridge.repl.fenced" in state(sites.main)
        if open_txns(sites.main):
            writer.commit()

    sites.clock.sleep_seconds = commits  # type: ignore[method-assign]
    sites.promote(is_planned=True)
    assert ids(sites.dr) == [1, 2, 3]


def test_a_transaction_that_does_not_end_gives_the_source_back(sites: Sites) -> None:
    writer = sites.main.begin()
    writer.lock("t")
    writer.insert("t", [(3, "c")])
    before = state(sites.dr)
    with pytest.raises(ReplError, match="still written to: transactions .*--abort-writers"):
        sites.promote(is_planned=True)
    assert state(sites.dr) == before
    writer.commit()
    sites.main.insert("t", (4, "d"))
    sites.replicate()
    sites.assert_same()


def test_writers_stay_out_no_longer_because_a_clock_is_set_back(sites: Sites) -> None:
    writer = sites.main.begin()
    writer.lock("t")
    writer.insert("t", [(3, "c")])

    def set_back() -> None:
        assert len(sites.clock.slept_seconds) < 1000, "no end"
        sites.clock.set_back_ms(7_200_000)

    sites.clock.on_sleep = set_back
    with pytest.raises(ReplError, match="still written to: transactions"):
        sites.promote(is_planned=True)


def test_open_transactions_are_aborted_where_that_is_asked_for(sites: Sites) -> None:
    writer = sites.main.begin()
    writer.insert("t", [(3, "c")])
    other = sites.main.open()
    sites.promote(is_planned=True, is_abort_allowed=True)
    assert ids(sites.dr) == [1, 2]
    assert open_txns(sites.main) == [other]


def test_a_lost_source_is_not_waited_for(sites: Sites) -> None:
    """What it had begun is ended; and its replica is one no more."""
    long = sites.main.begin()
    long.insert("t", [(3, "lost")])
    sites.replicate()
    assert len(open_txns(sites.dr)) == 1
    sites.main.insert("u", (3, "never replicated"))
    sites.lose_main()
    sites.promote(is_source_lost=True)
    assert open_txns(sites.dr) == []
    assert ids(sites.dr, "u") == [1, 2]
    sites.dr.insert("t", (5, "new"))
    sites.dr.create_table("v")
    found = state(sites.dr)
    assert found["repl.source.for"] == POLICY
    assert not {"repl.target.for", "repl.last.id", "hms.bridge.replica.open"} & found.keys()
    assert sites.policy.is_paused


def test_it_is_a_source_that_keeps_what_the_way_back_needs(sites: Sites) -> None:
    """From the first write on: files in the archive, events in the log."""
    sites.promote(is_planned=True)
    holders = [pin.holder for pin in sites.dr.metastore.manifest.pins()]
    assert holders == [f"policy:sales:file:{sites.root}"]
    sites.dr.insert("t", (3, "c"))
    assert sites.dr.archived() == {}
    sites.dr.compact("t")
    assert sites.dr.clean() > 0
    assert sites.dr.archived()
    handover = Handover.of(sites.dr.metastore.get_database(POLICY))
    assert handover is not None
    assert handover.is_pure


def test_a_source_that_comes_back_is_fenced(sites: Sites) -> None:
    writer = sites.main.begin()
    writer.insert("t", [(3, "c")])
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    plan = sites.promote()
    assert plan.steps == (PromoteStep.FENCE, PromoteStep.ABORT_WRITERS)
    assert open_txns(sites.main) == []
    with pytest.raises(MetaError, match="is fenced"):
        sites.main.insert("t", (9, "z"))
    assert sites.promote().steps == ()


def test_a_fence_can_be_lifted_before_and_not_after(sites: Sites) -> None:
    promotion = Promotion(sites.sides())
    assert promotion.cancel() is False
    sites.main.metastore.alter_database(
        POLICY, with_fence(sites.main.metastore.get_database(POLICY))
    )
    assert promotion.cancel() is True
    sites.main.insert("t", (3, "c"))
    sites.promote(is_planned=True)
    with pytest.raises(ReplError, match=r"there would be two sources.*'repl failback sales'"):
        promotion.cancel()


def with_fence(database: Database) -> Database:
    return with_parameters(database, {FENCED: POLICY})


def test_a_replica_with_a_dump_that_waits_is_refused_by_name(sites: Sites) -> None:
    sites.main.insert("t", (3, "c"))
    sites.dump()
    sites.lose_main()
    with pytest.raises(ReplError, match="is not loaded: .*'repl load sales'.*--leave-dump"):
        sites.promote(is_source_lost=True)
    plan = sites.promote(is_source_lost=True, is_dump_left=True)
    assert plan.left is not None
    assert ids(sites.dr) == [1, 2]


def test_a_dump_that_waits_and_leaves_fewer_tables_is_told_as_such(sites: Sites) -> None:
    """Whoever loads it, as the refusal of any other dump says, drops what nobody else may have."""
    policy = replace(sites.policy, included_tables="t")
    sites.dr.metastore.policies.add_policies([policy], is_replacing=True)
    sites.dump()
    sites.lose_main()
    with pytest.raises(ReplError, match="drops its other tables.*--leave-dump keeps them"):
        sites.promote(is_source_lost=True)
    sites.promote(is_source_lost=True, is_dump_left=True)
    assert ids(sites.dr, "u") == [1, 2]


def test_a_source_out_of_reach_is_refused_unless_it_is_given_up(sites: Sites) -> None:
    before = state(sites.dr)
    sites.lose_main()
    for given in ({}, {"is_planned": True}):
        with pytest.raises(ReplError, match="cannot be reached .*does not answer"):
            sites.promote(**given)
    sites.find_main()
    with pytest.raises(ReplError, match="can be reached, so it is fenced"):
        sites.promote(is_source_lost=True)
    assert state(sites.dr) == before


def test_a_load_at_work_leaves_the_source_to_its_writers(sites: Sites) -> None:
    """It is refused, and nothing is fenced."""
    sides = sites.sides()

    def is_busy(side: Side) -> AbstractContextManager[Lease]:
        raise BusyError("another load is at work")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenSides, "alone_with_loads", lambda _, side, _verb: is_busy(side))
        with pytest.raises(BusyError):
            sites.promote(sides)
    sites.main.insert("t", (3, "c"))


def test_dumps_that_are_lost_with_the_source(sites: Sites) -> None:
    sites.lose_main()
    (sites.folder / "dumps").rename(sites.folder / "gone")
    (sites.folder / "dumps").write_text("the disk is broken")
    with pytest.raises(
        ReplError, match="within reach.*another root.*policy add sales --replace --root"
    ):
        sites.promote(is_source_lost=True)
    moved = replace(sites.policy, root=str(sites.folder / "elsewhere"))
    sites.dr.metastore.policies.add_policies([moved], is_replacing=True)
    sites.promote(is_source_lost=True)
    sites.dr.insert("t", (3, "c"))
    sites.find_main()
    sites.failback()
    sites.assert_same()


def test_two_sources_are_refused(sites: Sites) -> None:
    run_end(sites.dr.metastore, plan_end(sites.dr.metastore, POLICY))
    with pytest.raises(ReplError, match="holds no whole replica: .*'repl run sales'"):
        sites.promote()
    database = sites.dr.metastore.get_database(POLICY)
    database.parameters["repl.source.for"] = "other"
    sites.dr.metastore.alter_database(POLICY, database)
    with pytest.raises(ReplError, match="no replica but a source .*there would be two"):
        sites.promote()


def test_a_plan_changes_nothing(sites: Sites) -> None:
    sites.main.insert("t", (3, "c"))
    before = state(sites.main), state(sites.dr)
    plan = Promotion(sites.sides()).plan(sites.promote_request(is_planned=True))
    assert plan.steps[0] is PromoteStep.FENCE
    assert plan.steps[-1] is PromoteStep.OPEN
    assert (state(sites.main), state(sites.dr)) == before


def test_a_replica_that_is_being_promoted_is_changed_by_nobody(sites: Sites) -> None:
    """Neither by loads, nor by those who were let in before: what comes next is its own."""
    set_access(sites.dr.metastore, POLICY, Access.WRITES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(promote, "ensure_beginning", dies)
        with pytest.raises(KeyboardInterrupt):
            sites.promote()
    with pytest.raises(ReplError, match="is being promoted: 'repl promote POLICY' again"):
        sites.replicate()
    with pytest.raises(MetaError, match="is a replica"):
        sites.dr.insert("t", (3, "c"))
    sites.promote()
    sites.dr.insert("t", (3, "c"))


def test_nobody_is_told_to_drop_what_took_the_sources_place(sites: Sites) -> None:
    """Not by a dump of the former source, which knows nothing of it yet, nor by a load or status:
    to all of them the two seem to be of different logs."""
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    sites.main.insert("t", (3, "c"))
    with sites.sides().open_cycle(sites.policy) as cycle:
        with pytest.raises(ReplError, match="is handed over .*'repl failback POLICY'") as dumped:
            cycle.plan()
        with pytest.raises(ReplError, match="has taken its source's place.*failback") as loaded:
            cycle.loader.plan(cycle.load)
    status = ReplStatus(
        sites.dr.resolve,
        sites.clock,
        source=sites.main.metastore,
        target=sites.dr.metastore,
    ).look(StatusRequest(root=str(sites.root), source_database=POLICY))
    (told,) = status.troubles
    for text in (str(dumped.value), str(loaded.value), told):
        assert "DROP" not in text


def dies(*args: object, **kwargs: object) -> None:
    raise KeyboardInterrupt


def test_nor_by_a_load_that_was_planned_before(sites: Sites) -> None:
    sites.main.insert("t", (3, "c"))
    sites.dump()
    with sites.sides().open_cycle(sites.policy) as cycle:
        plan = cycle.loader.plan(cycle.load)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(promote, "ensure_beginning", dies)
            with pytest.raises(KeyboardInterrupt):
                sites.promote(is_dump_left=True)
        with pytest.raises(ReplError, match="is being promoted"):
            cycle.loader.run(plan)
    assert ids(sites.dr) == [1, 2]


class Unaware(Passing):
    """A replica's Hive, which cannot tell what transactions it replays."""

    def get_replayed_txns(self, repl_policy: str) -> dict[TxnId, TxnId]:
        return {}


class Heedless(Passing):
    """A source's Hive, which knows nothing of fences."""

    def alter_database(self, name: str, database: Database) -> None:
        parameters = {key: text for key, text in database.parameters.items() if key != FENCED}
        self.inner.alter_database(name, replace(database, parameters=parameters))

    def heeds_fences(self) -> bool:
        return False


class Pretending(Heedless):
    """An early version of ours, which has the right name and knows nothing of fences."""

    def heeds_fences(self) -> bool:
        return True


def replay_one_that_has_not_written(sites: Sites) -> None:
    """A transaction of a lost source that was open and had not written is open at its replica."""
    sites.main.open()
    sites.main.insert("t", (3, "c"))
    sites.replicate()
    assert len(open_txns(sites.dr)) == 1
    sites.lose_main()


def test_what_has_no_write_ids_is_ended_too(sites: Sites) -> None:
    """It keeps no cleaner waiting."""
    replay_one_that_has_not_written(sites)
    sites.promote(is_source_lost=True)
    assert open_txns(sites.dr) == []


def test_what_has_no_write_ids_is_ended_where_only_the_dumps_tell_of_it(sites: Sites) -> None:
    replay_one_that_has_not_written(sites)
    sides = sites.sides()
    target = replace(sides.target, metastore=Unaware(sites.dr.metastore))
    sites.promote(replace(sides, target=target), is_source_lost=True)
    assert open_txns(sites.dr) == []


def heedless(sites: Sites, kind: type[Heedless] = Heedless) -> OpenSides:
    found = sites.sides()
    assert found.source is not None
    side = replace(found.source, metastore=kind(sites.main.metastore))
    return replace(found, source=side)


def test_a_metastore_that_heeds_no_fence_is_found_out(sites: Sites) -> None:
    for is_planned in (True, False):
        with pytest.raises(ReplError, match="heeds no fence .*--source-is-quiet"):
            sites.promote(heedless(sites, Pretending), is_planned=is_planned)
    assert open_txns(sites.main) == []
    sites.replicate()
    sites.assert_same()
    sites.promote(heedless(sites), is_planned=True, is_quiet=True)
    sites.dr.insert("t", (3, "c"))


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_hive_that_heeds_no_fence_is_left_as_it_was(sites: Sites, is_planned: bool) -> None:
    """A write id that a Hive gives for the attempt is of no replica: a failback would copy that
    table whole."""
    metastore = sites.main.metastore
    before = state(sites.main), metastore.get_current_event_id()
    with pytest.raises(ReplError, match="heeds no fence .*--source-is-quiet"):
        sites.promote(heedless(sites), is_planned=is_planned)
    assert (state(sites.main), metastore.get_current_event_id()) == before


def test_a_lost_source_with_a_hive_that_is_back_brings_no_table_whole(sites: Sites) -> None:
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    with pytest.raises(ReplError, match="heeds no fence"):
        sites.promote(heedless(sites))
    assert sites.failback().whole == ()


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_dry_run_finds_out_too_that_no_fence_is_heeded(sites: Sites, is_planned: bool) -> None:
    """It promised what the run then refused."""
    request = PromoteRequest(policy=sites.policy, is_planned=is_planned)
    before = state(sites.main)
    with pytest.raises(ReplError, match="heeds no fence .*--source-is-quiet"):
        Promotion(heedless(sites)).plan(request)
    assert (state(sites.main), open_txns(sites.main)) == (before, [])
    quiet = Promotion(heedless(sites)).plan(replace(request, is_quiet=True))
    assert PromoteStep.OPEN in quiet.steps


def test_a_dry_run_is_refused_what_the_last_cycle_would_be(sites: Sites) -> None:
    """A planned switch dumps and loads; what that is refused with shows before the fence."""
    sites.main.insert("t", (3, "c"))
    found = sites.sides()

    @contextmanager
    def cycle_without_files(policy: ReplicationPolicy) -> Iterator[OpenCycle]:
        with found.open_cycle(policy) as cycle:
            with cycle.dumper.marking(cycle.dump):
                cycle.dumper.run(cycle.plan())
            yield replace(cycle, load=replace(cycle.load, target_database="elsewhere"))

    sides = replace(found, open_cycle=cycle_without_files)
    with pytest.raises(ReplError, match="elsewhere"):
        Promotion(sides).plan(PromoteRequest(policy=sites.policy, is_planned=True))


def test_a_dry_run_says_who_is_at_work(sites: Sites) -> None:
    found = sites.sides()
    other = replace(found, host="elsewhere")
    with (
        other.alone_with_policy("repl failback"),
        other.alone_with_loads(other.target, "repl failback"),
    ):
        plan = Promotion(found).plan(PromoteRequest(policy=sites.policy))
    run, load = plan.notes[-2:]
    assert "another repl failback of sales has begun" in run
    assert "another repl failback of sales has begun" in load
    assert "@elsewhere" in load
    assert Promotion(found).plan(PromoteRequest(policy=sites.policy)).notes == ()


def test_a_commit_that_gets_past_the_fence_is_found_before_the_replica_takes_over(
    sites: Sites,
) -> None:
    """Whoever said that the source is quiet may be wrong."""
    found = heedless(sites)

    @contextmanager
    def busy_cycle(policy: ReplicationPolicy) -> Iterator[OpenCycle]:
        with sites.sides().open_cycle(policy) as cycle:
            yield cycle
            sites.main.insert("t", (3, "c"))

    with pytest.raises(ReplError, match=r"changed though it is fenced \(1 commits"):
        sites.promote(replace(found, open_cycle=busy_cycle), is_planned=True, is_quiet=True)
    sites.replicate()
    sites.assert_same()


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_replica_of_some_tables_does_not_close_the_others(sites: Sites, is_planned: bool) -> None:
    """A fence is of the whole database."""
    policy = replace(sites.policy, included_tables="t")
    sites.dr.metastore.policies.add_policies([policy], is_replacing=True)
    sites.replicate()
    assert sites.dr.metastore.get_tables(POLICY) == ("t",)
    # Also where the policy was changed back, and nothing was loaded since.
    for now in (policy, replace(policy, included_tables=None)):
        sites.dr.metastore.policies.add_policies([now], is_replacing=True)
        with pytest.raises(ReplError, match=r"has only sales\.'t', and a promotion closes"):
            sites.promote(is_planned=is_planned)
    sites.main.insert("u", (3, "c"))
    sites.replicate()
    sites.promote(is_planned=True)


def test_the_tables_that_were_never_replicated_are_not_dropped_by_a_way_back(sites: Sites) -> None:
    policy = replace(sites.policy, included_tables="t")
    sites.dr.metastore.policies.add_policies([policy], is_replacing=True)
    sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    sites.main.insert("u", (3, "c"))
    for now in (policy, replace(policy, included_tables=None)):
        sites.dr.metastore.policies.add_policies([now], is_replacing=True)
        with pytest.raises(ReplError, match="would lose all others"):
            sites.failback(is_discarded=True)
    assert ids(sites.main, "u") == [1, 2, 3]


def test_a_failback_of_some_tables_is_refused_with_what_leads_on(sites: Sites) -> None:
    """They come back into a database of their own, and the others belong to their writers."""
    policy = replace(sites.policy, included_tables="t")
    sites.dr.metastore.policies.add_policies([policy], is_replacing=True)
    sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.dr.insert("t", (3, "c"))
    sites.find_main()
    with pytest.raises(ReplError, match="other tables would have no writers.*--close-all"):
        sites.promote()
    sites.main.insert("u", (4, "d"))
    (note,) = sites.promote(is_all_closed=True).notes
    with pytest.raises(MetaError, match="fenced"):
        sites.main.insert("u", (5, "e"))
    assert sites.promote().steps == ()
    assert "sales has only sales.'t' of it: " in note
    with pytest.raises(ReplError, match="--into sales_back --root .*'repl end sales' there"):
        sites.failback()
    back = replace(
        policy,
        name="back",
        root=str(sites.folder / "back"),
        source=policy.target,
        target=replace(policy.source, database="sales_back"),
        included_tables=None,
    )
    with sites.sides().open_cycle(back) as cycle:
        load = replace(cycle.load, target_database="sales_back")
        assert replace(cycle, load=load).run().outcome.is_success
    run_end(sites.main.metastore, plan_end(sites.main.metastore, POLICY))
    sites.main.insert("u", (3, "c"))
    assert sites.main.metastore.get_tables("sales_back") == ("t",)
    assert ids(sites.main, "u") == [1, 2, 3, 4]


def test_who_read_a_database_before_it_changed_places_brings_nothing_back(sites: Sites) -> None:
    """An ALTER DATABASE writes all of it: it made a replica again, and lifted the fence."""
    main, dr = sites.main.metastore, sites.dr.metastore
    before = {store: store.get_database(POLICY) for store in (main, dr)}
    sites.promote(is_planned=True)
    for store, database in before.items():
        changed = with_parameters(database, {"note": "mine"})
        with pytest.raises(MetaError, match="it was read before that. Read it once more"):
            store.alter_database(POLICY, changed)
        again = with_parameters(store.get_database(POLICY), {"note": "mine"})
        store.alter_database(POLICY, again)
    assert FENCED in state(sites.main)
    sites.failback()
    sites.assert_same()


def test_a_load_that_stood_still_replays_nothing_into_a_successor(sites: Sites) -> None:
    """What it opened stayed open for ever: no promotion ends it any more."""
    sites.promote(is_planned=True)
    request = OpenTxnsRequest(
        user="u",
        host="h",
        repl_policy=f"{POLICY}.*",
        repl_source_txn_ids=(TxnId(4711),),
        type=TxnType.REPL_CREATED,
    )
    with pytest.raises(MetaError, match="no replayed transaction: .* has taken its source's place"):
        sites.dr.metastore.open_txns(request)
    assert open_txns(sites.dr) == []
