"""A source whose replica took its place: nobody follows it any more, and its dumps say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.catalog import Database, PrincipalType
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.handover import promote
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access
from hms_bridge.repl.handover.promote import Promotion
from hms_bridge.repl.handover.promote_plan import PromoteRequest, PromoteStep
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusRequest
from hms_bridge.repl.target_objects import FENCED, with_parameters
from tests.support.handover_world import POLICY, Sites

REFUSAL = "database sales is no source any more: database sales_dr .*policy sales.*took its place"


@pytest.fixture
def sites(fast_folder: Path) -> Iterator[Sites]:
    """The replica has another name, so its dumps are elsewhere than those of its source."""
    with Sites(fast_folder, name_at_dr="sales_dr") as made:
        yield made.with_tables()


def end(sites: Sites) -> None:
    run_end(sites.main.metastore, plan_end(sites.main.metastore, POLICY))


def test_an_ended_source_is_not_dumped_any_more(sites: Sites) -> None:
    """It goes on taking writes, which nobody who followed it would ever have."""
    sites.promote(is_planned=True)
    end(sites)
    sites.main.insert("t", (3, "here alone"))
    with pytest.raises(ReplError, match=rf"{REFUSAL}.*'repl failback sales'.*'repl open sales"):
        sites.dump()


def test_neither_is_one_that_is_fenced(sites: Sites) -> None:
    sites.main.insert("t", (3, "c"))
    sites.promote()
    with pytest.raises(ReplError, match=f"{REFUSAL}.*'repl end sales', then 'repl open sales"):
        sites.dump()


def test_nor_for_another_policy(sites: Sites) -> None:
    """Its replica would wait for ever, and count as one that lacks nothing."""
    root = str(sites.folder / "others")
    other = replace(sites.policy, name="other", root=root)
    sites.promote(is_planned=True)
    with sites.sides().open_cycle(other) as cycle, pytest.raises(ReplError, match=REFUSAL):
        cycle.plan()
    report = ReplStatus(sites.dr.resolve, sites.clock, source=sites.main.metastore).look(
        StatusRequest(root=str(sites.root), source_database=POLICY)
    )
    assert "is no source any more" in report.troubles[0]


def test_a_second_replica_does_not_take_a_place_that_is_taken(sites: Sites) -> None:
    """There would be two sources, and the former one would tell of the second alone."""
    sites.promote(is_planned=True)
    end(sites)
    target = replace(sites.policy.target, database="sales_two")
    second = replace(sites.policy, name="second", root=str(sites.folder / "others"), target=target)
    replica = Database(
        name="sales_two",
        location=f"file:{sites.folder}/sales_two.db",
        parameters={"repl.target.for": "true", "repl.last.id": "1"},
    )
    sites.dr.metastore.create_database(replica)
    sides = sites.sides()
    sides.policies.add_policies([second])
    sides = replace(sides, policy=second, target=replace(sides.target, database_name="sales_two"))
    with pytest.raises(ReplError, match=f"two sources: {REFUSAL}.*'repl open sales --writes'"):
        Promotion(sides).run(PromoteRequest(policy=second, is_dump_left=True))
    database = sites.main.metastore.get_database(POLICY)
    assert "sales_dr" in database.parameters["hms.bridge.repl.successor"]


def test_an_admin_opens_it(sites: Sites) -> None:
    """It is a source of its own then, beside the one in its place."""
    sites.promote(is_planned=True)
    main = sites.main.metastore
    with pytest.raises(ReplError, match=f"{REFUSAL}.*'repl end sales', then 'repl open sales"):
        set_access(main, POLICY, Access.WRITES)
    end(sites)
    with pytest.raises(ReplError, match="is no replica"):
        set_access(main, POLICY, Access.DEFINITIONS)
    set_access(main, POLICY, Access.WRITES)
    sites.main.insert("t", (3, "c"))
    with sites.sides().open_cycle(sites.policy) as cycle:
        assert cycle.plan().kind is DumpKind.INCREMENTAL


def test_a_stopped_promotion_has_said_it_before_the_replica_takes_writes(sites: Sites) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(promote, "PROPERTIES", _Dies())
        with pytest.raises(KeyboardInterrupt):
            sites.promote(is_planned=True)
    with pytest.raises(ReplError, match=REFUSAL):
        sites.dump()
    sites.promote()
    sites.failback()
    sites.replicate()
    sites.assert_same()


def test_a_source_that_comes_back_is_told(sites: Sites) -> None:
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()
    sites.dump()  # it knows nothing yet
    assert sites.promote().steps == (PromoteStep.FENCE,)
    with pytest.raises(ReplError, match=REFUSAL):
        sites.dump()


def test_one_that_an_earlier_version_fenced_is_told_by_promoting_once_more(sites: Sites) -> None:
    sites.promote(is_planned=True)
    main = sites.main.metastore
    database = main.get_database(POLICY)
    fenced = {FENCED: database.parameters[FENCED], "hms.bridge.repl.successor": None}
    run_end(main, plan_end(main, POLICY))
    main.alter_database(POLICY, with_parameters(database, fenced))
    sites.dump()
    assert sites.promote().steps == (PromoteStep.FENCE,)
    assert sites.promote().steps == ()
    with pytest.raises(ReplError, match=REFUSAL):
        sites.dump()


def test_whoever_alters_the_database_without_having_seen_it_is_refused(sites: Sites) -> None:
    sites.promote(is_planned=True)
    main = sites.main.metastore
    late = with_parameters(
        main.get_database(POLICY), {"hms.bridge.repl.successor": None, "owner": "ann"}
    )
    with pytest.raises(MetaError, match="it was read before that"):
        main.alter_database(POLICY, late)


@pytest.mark.parametrize(
    "change",
    [
        {"owner_name": "ann"},
        {"owner_type": PrincipalType.ROLE},
        {"description": "mine"},
        {"location": "file:/elsewhere"},
        {"managed_location": "file:/elsewhere"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whoever_changes_anything_else_lifts_no_fence(sites: Sites, change: dict[str, Any]) -> None:
    """ALTER DATABASE … SET OWNER by who read the database before it was fenced. Who takes away the
    fence alone means it."""
    sites.promote(is_planned=True)
    main = sites.main.metastore
    fenced = main.get_database(POLICY)
    alone = with_parameters(fenced, {FENCED: None})
    with pytest.raises(MetaError, match="would lift its fence"):
        main.alter_database(POLICY, replace(alone, **change))
    assert main.get_database(POLICY) == fenced
    main.alter_database(POLICY, alone)
    assert FENCED not in main.get_database(POLICY).parameters


def test_after_a_failback_nothing_is_left_of_it(sites: Sites) -> None:
    sites.promote(is_planned=True)
    sites.failback()
    sites.promote(is_planned=True)
    sites.failback()
    sites.main.insert("t", (3, "c"))
    sites.replicate()
    sites.assert_same()


class _Dies:
    def __iter__(self) -> Iterator[str]:
        raise KeyboardInterrupt
