"""Which step ends which trouble: the smallest one that does (pure)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.model.ids import EventId
from hms_bridge.repl.compare.described import Finding, Verdict
from hms_bridge.repl.remedies import (
    NamedRemedy,
    begin_anew,
    bring_anew,
    named_remedy,
    repair_of,
    replica_is_wanted,
    source_went_back,
)
from hms_bridge.repl.repair.plan import (
    Cure,
    RepairFacts,
    ReplicaState,
    Seen,
    Step,
    Trouble,
    WaitingDump,
    asked,
    decide,
    trouble_of,
    trouble_of_cycle,
    troubles_of_findings,
)

LOADED = ReplicaState(
    name="dst", is_there=True, stands_at=EventId(7), begun="/dumps/one/hive", table_count=2
)
EQUAL = RepairFacts(source_database="src", replica=LOADED, has_dump=True)
INCREMENTAL = WaitingDump(directory="/dumps/two", checkpoint="/dumps/two/hive")
BOOTSTRAP = replace(INCREMENTAL, is_bootstrap=True)
GAP = trouble_of(Seen.DUMP, f"events are gone. {begin_anew('src')}")
REBALANCED = trouble_of(Seen.DUMP, f"t was rebalanced. {bring_anew('src', ['t'])}")
FUNCTION = trouble_of(Seen.DUMP, "functions cannot be carried over")
DIFFERENT = Trouble(seen=Seen.COMPARE, text="u: rows", cure=Cure.TABLES, tables=frozenset(["u"]))


def waiting(facts: RepairFacts, dump: WaitingDump, *troubles: Trouble) -> RepairFacts:
    return replace(facts, waiting=dump, is_anything_new=True, troubles=troubles)


def troubled(*troubles: Trouble) -> RepairFacts:
    return replace(EQUAL, troubles=troubles)


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (f"why. {bring_anew('src', ['b', 'a'], 'dst')}", NamedRemedy(frozenset("ab"))),
        (f"why. {begin_anew('src', 'dst')}", NamedRemedy(is_bootstrap=True)),
        ("the disk is full", None),
        ("give --bootstrap", None),
    ],
)
def test_a_message_names_its_remedy(message: str, remedy: NamedRemedy | None) -> None:
    assert named_remedy(message) == remedy


def test_a_failed_cycle_names_repair_where_that_is_safe() -> None:
    for message in (bring_anew("src", ["t"]), begin_anew("src")):
        assert "'hms-bridge repl repair sales --dry-run'" in (repair_of("sales", message) or "")
    assert repair_of("sales", "the disk is full") is None
    assert repair_of("sales", f"it is older. {source_went_back('src')}") is None


def test_who_may_have_the_only_copy_is_told_not_to_drop_it() -> None:
    assert replica_is_wanted([f"events are gone. {begin_anew('src')}"]) == ""
    warning = replica_is_wanted(["why", f"it is older. {source_went_back('src')}"])
    assert "Do NOT" in warning
    assert "repl promote POLICY" in warning


def test_nothing_is_done_where_nothing_is_wrong() -> None:
    assert decide(EQUAL).step is Step.NOTHING


def test_what_waits_or_is_new_is_loaded() -> None:
    plan = decide(waiting(EQUAL, INCREMENTAL))
    assert (plan.step, plan.loaded_dump) == (Step.GO_ON, "/dumps/two")
    assert decide(replace(EQUAL, is_anything_new=True)).step is Step.GO_ON


def test_a_cycle_that_failed_is_tried_again_or_gives_the_tables() -> None:
    for over in ("no connection", GAP.text):
        assert decide(troubled(trouble_of_cycle(over))).step is Step.GO_ON
    plan = decide(troubled(trouble_of_cycle(REBALANCED.text)))
    assert (plan.step, plan.tables) == (Step.TABLES, ("t",))


def test_tables_of_all_troubles_come_in_one_dump() -> None:
    plan = decide(troubled(REBALANCED, DIFFERENT, *asked(["z"])))
    assert (plan.step, plan.tables, plan.replaced_dump) == (Step.TABLES, ("t", "u", "z"), None)


def test_tables_come_in_place_of_the_dump_that_waits() -> None:
    plan = decide(waiting(EQUAL, INCREMENTAL, DIFFERENT))
    assert (plan.step, plan.replaced_dump) == (Step.TABLES, "/dumps/two")


def test_a_dump_that_brings_the_tables_is_loaded() -> None:
    """A repair that was killed between its dump and its load."""
    brings = replace(INCREMENTAL, anew=frozenset("u"))
    plan = decide(waiting(EQUAL, brings, DIFFERENT))
    assert (plan.step, plan.loaded_dump) == (Step.GO_ON, "/dumps/two")


def test_but_not_if_the_load_itself_refuses_it() -> None:
    brings = replace(INCREMENTAL, anew=frozenset("u"))
    lost = replace(DIFFERENT, seen=Seen.LOAD)
    assert decide(waiting(EQUAL, brings, lost)).step is Step.TABLES


def test_a_bootstrap_that_waits_is_loaded_before_tables_come() -> None:
    new = replace(EQUAL, replica=ReplicaState(name="dst"))
    plan = decide(waiting(new, BOOTSTRAP, *asked(["u"])))
    assert (plan.step, plan.loaded_dump) == (Step.GO_ON, "/dumps/two")


def test_a_damaged_dump_is_made_again() -> None:
    damaged = replace(INCREMENTAL, is_damaged=True)
    cut = trouble_of(Seen.LOAD, "cut; copy the dump again", is_dump_damaged=True)
    plan = decide(waiting(EQUAL, damaged, cut))
    assert (plan.step, plan.replaced_dump) == (Step.DUMP_AGAIN, "/dumps/two")
    plan = decide(waiting(EQUAL, damaged, cut, DIFFERENT))
    assert (plan.step, plan.tables) == (Step.TABLES, ("u",))


def test_a_gap_needs_a_bootstrap_in_place_of_what_waits() -> None:
    plan = decide(waiting(EQUAL, INCREMENTAL, GAP, DIFFERENT))
    assert plan.step is Step.BOOTSTRAP
    assert (plan.replaced_dump, plan.loaded_dump, plan.dropped) == ("/dumps/two", None, "dst")


def test_of_two_ways_out_the_smaller_one_is_tried() -> None:
    both = trouble_of(Seen.LOAD, f"{bring_anew('src', ['t'])}. {begin_anew('src')}")
    assert decide(troubled(both)).step is Step.TABLES


def test_a_bootstrap_dump_of_an_interrupted_repair_takes_the_replicas_place() -> None:
    """Killed between the dump and the drop."""
    refused = trouble_of(Seen.LOAD, "database dst was bootstrapped before")
    plan = decide(waiting(EQUAL, BOOTSTRAP, refused))
    assert plan.step is Step.BOOTSTRAP
    assert (plan.replaced_dump, plan.loaded_dump, plan.dropped) == (None, "/dumps/two", "dst")


def test_and_is_loaded_to_its_end_once_it_began() -> None:
    begun = ReplicaState(name="dst", is_there=True, begun="/dumps/two/hive", table_count=1)
    plan = decide(waiting(replace(EQUAL, replica=begun), BOOTSTRAP))
    assert (plan.step, plan.dropped) == (Step.GO_ON, None)


def test_a_bootstrap_dump_that_lost_files_is_made_again() -> None:
    lost = trouble_of(Seen.LOAD, f"lost. {begin_anew('src')}")
    new = replace(EQUAL, replica=ReplicaState(name="dst"))
    plan = decide(waiting(new, BOOTSTRAP, lost))
    assert (plan.step, plan.replaced_dump, plan.dropped) == (Step.BOOTSTRAP, "/dumps/two", None)


@pytest.mark.parametrize(
    "facts",
    [
        replace(EQUAL, replica=replace(LOADED, is_incompatible=True)),
        replace(EQUAL, has_dump=False),
        replace(EQUAL, replica=ReplicaState(name="dst")),
        replace(EQUAL, replica=replace(LOADED, stands_at=None)),
    ],
    ids=["incompatible", "no dump is left", "the replica is gone", "half, of a dump that is gone"],
)
def test_marks_that_do_not_fit_need_a_bootstrap(facts: RepairFacts) -> None:
    plan = decide(facts)
    assert plan.step is Step.BOOTSTRAP
    assert plan.dropped == ("dst" if facts.replica.is_loaded else None)
    assert "begin anew" in plan.troubles[0].text


def test_a_database_that_no_dump_brought_is_left_alone() -> None:
    foreign = ReplicaState(name="dst", is_there=True, table_count=3)
    refused = trouble_of(Seen.LOAD, "nothing was loaded into dst; did you forget --metastore?")
    plan = decide(replace(EQUAL, replica=foreign, troubles=(refused,)))
    assert (plan.step, plan.dropped, plan.troubles) == (Step.BY_HAND, None, (refused,))


def test_a_replica_that_was_never_begun_is_begun() -> None:
    new = RepairFacts(source_database="src", replica=ReplicaState(name="dst"), is_anything_new=True)
    assert decide(new).step is Step.GO_ON


def test_what_a_person_must_end_stops_everything() -> None:
    plan = decide(troubled(GAP, DIFFERENT, FUNCTION))
    assert (plan.step, plan.troubles) == (Step.BY_HAND, (FUNCTION,))


def finding(**changes: str | None) -> Finding:
    return Finding(**{"verdict": Verdict.DIFFERENT, "table": "t", "what": "rows", **changes})  # type: ignore[arg-type]


def test_differences_are_cured_a_table_at_a_time() -> None:
    found = troubles_of_findings(
        [
            finding(partition="p=1", source="3 rows", replica="2 rows"),
            finding(what="partition", partition="p=2", source="there", replica="missing"),
            finding(table="u", what="table", source="MANAGED_TABLE", replica="missing"),
            replace(finding(table="v"), verdict=Verdict.UNDECIDED),
            replace(finding(table="w"), verdict=Verdict.LAID_OUT),
        ]
    )
    assert [(one.cure, set(one.tables)) for one in found] == [
        (Cure.TABLES, {"t"}),
        (Cure.TABLES, {"u"}),
    ]
    assert "p=1: rows (source: 3 rows; replica: 2 rows)" in found[0].text


def test_what_no_table_of_the_source_mends_is_left() -> None:
    found = troubles_of_findings(
        [
            finding(what="table", source="missing", replica="MANAGED_TABLE"),
            finding(table=None, what="comment", source="a", replica="b"),
        ]
    )
    plan = decide(troubled(*found))
    assert (plan.step, plan.left) == (Step.NOTHING, found)
    plan = decide(troubled(*found, DIFFERENT))
    assert (plan.step, plan.tables, plan.left) == (Step.TABLES, ("u",), found)
