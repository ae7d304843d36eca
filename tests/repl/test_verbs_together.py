"""What promotion, repair, marks, functions and drills do to each other's work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import EventGapError, ReplError
from hms_bridge.model.function import Function
from hms_bridge.model.properties import INCOMPATIBLE, LAST_EVENT
from hms_bridge.repl.at_target import AtTarget, TargetCheck
from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.dump.discard import ReplDiscard
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.untrusted import DumpRules
from hms_bridge.repl.format.verify import verify_dump
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access
from hms_bridge.repl.repair.looking import RepairRequest, RepairSides
from hms_bridge.repl.repair.repl_repair import ReplRepair
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusRequest
from hms_bridge.repl.target_objects import HANDOVER, diverged_tables, with_parameters
from tests.repl.test_drill import SCRATCH, driller, request
from tests.repl.test_functions import function, jar
from tests.repl.test_functions import load as load_functions
from tests.repl.test_non_recoverable import EVERYTHING, dump, fail_to_dump, load, marks
from tests.support.handover_world import Sites
from tests.support.passing import Passing, Purged
from tests.support.repair_world import repair
from tests.support.repl_world import ReplWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ReplWorld]:
    made = ReplWorld(tmp_path)
    made.create_table("t")
    made.insert("t", (1, "a"))
    yield made
    made.close()


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    with Sites(tmp_path) as made:
        yield made.with_tables()


class NotPaused(Passing):
    """Policies of a promotion that dies when it has begun."""

    def set_paused(self, *_, **__):
        raise ReplError("killed")


def stop_promotion(sites: Sites) -> None:
    sides = sites.sides()
    with pytest.raises(ReplError, match="killed"):
        sites.promote(replace(sides, policies=NotPaused(sides.policies)))


def stop_failback(sites: Sites) -> None:
    """Killed before it brings the table that changed at the former source alone."""
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    sites.main.insert("t", (77, "diverged"))

    @contextmanager
    def killed(_):
        raise ReplError("killed")
        yield

    with pytest.raises(ReplError, match="killed"):
        sites.failback(replace(sites.sides(), open_cycle=killed), is_discarded=True)


def repair_site(sites: Sites, **options) -> None:
    source, target = sites.site(sites.policy.source), sites.site(sites.policy.target)
    store, other = source.metastore, target.metastore
    with sites.sides().open_cycle(sites.policy) as cycle:
        sides = RepairSides(
            cycle=cycle,
            source=store,
            target=other,
            discarder=ReplDiscard(
                store, source.resolve, sites.clock, sites.new_name, store.manifest
            ),
            comparer=ReplCompare(target.resolve, sites.clock, source=store, target=other),
            resolve=target.resolve,
        )
        ReplRepair(sides, sites.clock).run(RepairRequest(**options))


def mark_incompatible(store, name: str) -> None:
    changed = with_parameters(store.get_database(name), {INCOMPATIBLE: "true"})
    store.alter_database(name, changed)


def test_a_replica_with_tables_that_diverged_is_not_promoted(sites):
    stop_failback(sites)
    with pytest.raises(ReplError, match="t of database sales is not whole"):
        sites.promote(replace(sites.sides(), source=None), is_source_lost=True)
    assert diverged_tables(sites.main.metastore.get_database("sales")) == {"t"}
    sites.failback(is_discarded=True)
    sites.assert_same()


def test_a_repair_drops_no_replica_that_takes_over(sites):
    mark_incompatible(sites.dr.metastore, "sales")
    stop_promotion(sites)
    with pytest.raises(ReplError, match="is being promoted"):
        repair_site(sites, is_bootstrap_allowed=True)
    assert HANDOVER in sites.dr.metastore.get_database("sales").parameters


def test_nobody_is_let_into_a_replica_that_takes_over(sites):
    stop_promotion(sites)
    with pytest.raises(ReplError, match="is being promoted"):
        set_access(sites.dr.metastore, "sales", Access.WRITES)


@pytest.mark.parametrize("is_dump_there", [False, True])
def test_a_mark_does_not_stop_a_failover(sites, is_dump_there):
    sites.main.insert("t", (3, "c"))
    if is_dump_there:
        sites.dump()
        mark_incompatible(sites.dr.metastore, "sales")
    with sites.sides().open_cycle(sites.policy) as cycle, pytest.raises(ReplError):
        if not is_dump_there:
            purged = Purged(sites.main.metastore, EVERYTHING)
            dumper = ReplDump(purged, sites.main.resolve, sites.clock, sites.new_name)
            replace(cycle, dumper=dumper).run()
        cycle.run()
    assert list(sites.root.glob("*/*/_non_recoverable"))
    sites.lose_main()
    if is_dump_there:
        with pytest.raises(ReplError, match="--leave-dump"):
            sites.promote(is_source_lost=True)
    sites.promote(is_source_lost=True, is_dump_left=is_dump_there)
    sites.dr.insert("t", (4, "d"))


def test_a_repair_ends_lost_events_that_are_marked(world):
    world.replicate()
    fail_to_dump(world)
    with pytest.raises(ReplError, match="--allow-bootstrap"):
        repair(world)
    assert len(marks(world)) == 1
    repair(world, is_bootstrap_allowed=True)
    assert marks(world) == []
    world.assert_same()


def test_a_status_tells_of_a_mark(world):
    world.replicate()
    before = world.target.get_database("dst").parameters[LAST_EVENT]
    world.insert("t", (2, "b"))
    world.replicate()
    world.insert("t", (3, "c"))
    dump(world)
    behind = with_parameters(world.target.get_database("dst"), {LAST_EVENT: before})
    world.target.alter_database("dst", behind)
    with pytest.raises(EventGapError):
        load(world)
    looking = ReplStatus(world.resolve, world.clock, source=world.source, target=world.target)
    asked = StatusRequest(root=str(world.repl_root), source_database="src", target_database="dst")
    assert any("_non_recoverable marks" in text for text in looking.look(asked).troubles)


def test_a_drill_leaves_no_file_of_a_function(world):
    world.source.create_function(function("f", jar(world)))
    world.dump()
    load_functions(world)
    root = world.folder / "functions"
    before = sorted(root.rglob("*"))
    drilling = driller(world)
    wanted = replace(world.load_request, functions_root=str(root))
    drilling.run(drilling.plan(request(world, load=wanted)))
    assert sorted(root.rglob("*")) == before


def test_files_of_functions_are_looked_for_where_functions_have_them(world):
    world.source.create_function(function("f", jar(world)))
    directory = world.dump().directory
    load_functions(world)
    reader = DumpReader(world.resolve, DumpPaths(directory), DumpRules())
    check = TargetCheck(world.target, world.resolve, "dst")
    verified = verify_dump(world.resolve, directory, rules=DumpRules())
    report = check.run(reader, verified)
    assert ({file.state for file in report.files}, report.exit_code) == ({AtTarget.THERE}, 0)
    (copy,) = (world.folder / "functions").rglob("udf.jar")
    copy.unlink()
    assert check.run(reader, verified).count(AtTarget.LACKING) == 1


def test_a_scratch_database_that_somebody_took_over_stays(world):
    world.replicate()
    drilling = driller(world)
    drilling.run(drilling.plan(request(world, is_kept=True)))
    run_end(world.target, plan_end(world.target, SCRATCH))
    with pytest.raises(ReplError, match="was not made by a drill"):
        drilling.plan(request(world))
    assert SCRATCH in world.target.get_databases()


def test_what_was_loaded_can_be_drilled_though_a_later_dump_failed(world):
    world.replicate()
    fail_to_dump(world)
    drilling = driller(world)
    assert drilling.plan(request(world)).dumps


@pytest.mark.parametrize("is_made", [True, False])
def test_functions_that_changed_at_the_former_source_are_not_given_up_in_silence(sites, is_made):
    """No dump brings functions anew, so the database comes as a whole."""
    made = Function(name="f", database_name="sales", class_name="org.example.F")
    if not is_made:
        sites.main.metastore.create_function(made)
        sites.replicate()
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    if is_made:
        sites.main.metastore.create_function(made)
    else:
        sites.main.metastore.drop_function("sales", "f")
    with pytest.raises(ReplError, match="_FUNCTION.*DROP DATABASE sales CASCADE"):
        sites.failback(is_discarded=True)
    run_end(sites.main.metastore, plan_end(sites.main.metastore, "sales"))
    sites.main.metastore.drop_database("sales", is_cascade=True)
    sites.failback()
    names = [
        [function.name for function in site.metastore.get_functions("sales")]
        for site in (sites.main, sites.dr)
    ]
    assert names[0] == names[1] == ([] if is_made else ["f"])
