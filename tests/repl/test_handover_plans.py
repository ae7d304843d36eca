"""What a promotion and a failback decide, without metastores or files."""

from __future__ import annotations

from typing import Any

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.replication import PolicySide, ReplicationPolicy
from hms_bridge.repl.dump.backlog import Backlog
from hms_bridge.repl.dump.plain_tables import PlainPlace
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.handover.divergence import Divergence, changed_places
from hms_bridge.repl.handover.failback_plan import (
    FailbackRequest,
    FailbackStep,
    NewSource,
    OldSource,
    plan_failback,
)
from hms_bridge.repl.handover.promote_plan import (
    PromotePlan,
    PromoteRequest,
    PromoteStep,
    ReplicaState,
    SourceState,
    plan_promotion,
)
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.successor import Successor
from hms_bridge.repl.target_objects import FENCED, HANDOVER, SCOPE, SUCCESSOR

POLICY = ReplicationPolicy(
    name="sales",
    root="/dumps",
    source=PolicySide(metastore="main", database="sales"),
    target=PolicySide(database="sales"),
)
SOURCE = {"repl.source.for": "sales"}
REPLICA = {"repl.target.for": "true", "repl.last.id": "40", "hms.bridge.replica.open": "false"}
OTHER_SOURCE = Database(name="sales", location="/dr/sales.db", parameters=dict(SOURCE))
RECORD = Handover(
    policy="sales",
    source_event=EventId(40),
    own_event=EventId(70),
    beginning="/dumps/x/1",
    last_dump="/dumps/x/0",
    is_pure=True,
)


def taken_by(policy: str) -> str:
    return Successor(policy=policy, database="sales_dr").format()


def taken(key: str, policy: str) -> dict[str, str]:
    """A source whose place another policy's replica took."""
    return {key: policy, SUCCESSOR: taken_by(policy)}


def database(parameters: dict[str, str]) -> Database:
    return Database(name="sales", parameters=dict(parameters))


def source(*, more: dict[str, str] | None = None, **given: Any) -> SourceState:
    return SourceState(
        database=database({**SOURCE, **(more or {})}), **{"backlog": Backlog(), **given}
    )


def replica(*, more: dict[str, str] | None = None, **given: Any) -> ReplicaState:
    return ReplicaState(database=database({**REPLICA, **(more or {})}), **given)


def promoted() -> ReplicaState:
    return ReplicaState(database=database({**SOURCE, HANDOVER: RECORD.format()}))


def plan(
    at_source: SourceState | None, at_replica: ReplicaState | None = None, **given: Any
) -> PromotePlan:
    request = PromoteRequest(policy=POLICY, **given)
    return plan_promotion(request, at_source, at_replica or replica(), unreachable="timed out")


def names(found: PromotePlan) -> list[str]:
    return [step.name for step in found.steps]


ON_REPLICA = ["BEGIN", "END_REPLAYS", "PIN", "OPEN"]


def test_a_planned_switch_fences_first_and_replicates_before_it_takes_over() -> None:
    found = plan(source(writers=(TxnId(5),), in_the_way="5 writes"), is_planned=True)
    assert names(found) == ["FENCE", "DRAIN", "REPLICATE", *ON_REPLICA]
    assert (found.stands_at, found.waits_for, found.aborted) == (40, "5 writes", ())
    rules = WaitRules(is_abort_allowed=True)
    assert plan(source(writers=(TxnId(5),)), is_planned=True, wait=rules).aborted == (5,)


def test_a_failover_fences_what_it_can_reach() -> None:
    assert names(plan(source())) == ["FENCE", *ON_REPLICA]
    assert names(plan(source(writers=(TxnId(5),)))) == ["FENCE", "ABORT_WRITERS", *ON_REPLICA]
    assert names(plan(None, is_source_lost=True)) == ON_REPLICA


def test_it_says_what_stays_behind() -> None:
    assert plan(source()).notes == ()
    behind = Backlog(txns=(TxnId(7),), oldest_ms=1)
    (note,) = plan(source(backlog=behind)).notes
    assert "--planned would bring them" in note
    assert plan(source(backlog=None, gap="purged")).notes


def test_what_was_stopped_goes_on() -> None:
    begun = {HANDOVER: Handover.format(RECORD)}
    found = plan(source(more={FENCED: "sales"}), replica(more=begun))
    assert names(found) == ON_REPLICA
    assert names(plan(None, replica(more=begun), is_source_lost=False)) == ON_REPLICA


def test_what_is_promoted_fences_its_source_late() -> None:
    assert names(plan(None, promoted())) == []
    told = {FENCED: "sales", SUCCESSOR: taken_by("sales")}
    assert names(plan(source(more=told), promoted())) == []
    late = plan(source(writers=(TxnId(5),)), promoted())
    assert names(late) == ["FENCE", "ABORT_WRITERS"]
    # Killed between the two.
    late = plan(source(more=told, writers=(TxnId(5),)), promoted())
    assert names(late) == ["ABORT_WRITERS"]
    # By an earlier version, which told not whom it is handed over to.
    late = plan(source(more={FENCED: "sales"}, writers=(TxnId(5),)), promoted())
    assert names(late) == ["FENCE", "ABORT_WRITERS"]


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_fence_closes_other_tables_only_if_that_is_said(is_stopped: bool) -> None:
    """Also of a promotion that was stopped while its source was lost."""
    at_replica = replica(more={HANDOVER: RECORD.format()}) if is_stopped else promoted()
    parameters = {**at_replica.database.parameters, SCOPE: "'t'"}
    at_replica = ReplicaState(database=database(parameters))
    with pytest.raises(ReplError, match="only sales.'t', and a fence closes .*--close-all"):
        plan(source(), at_replica)
    assert names(plan(source(), at_replica, is_all_closed=True))[0] == "FENCE"
    told = {FENCED: "sales", SUCCESSOR: taken_by("sales")}
    assert "FENCE" not in names(plan(source(more=told), at_replica))


def test_what_only_a_lost_side_had_keeps_nobody_from_a_failover() -> None:
    assert names(plan(None, replica(missing=("t",)), is_source_lost=True))


@pytest.mark.parametrize(
    ("at_source", "at_replica", "given", "why"),
    [
        (None, replica(), {}, "cannot be reached .*--source-is-lost"),
        (None, replica(), {"is_planned": True}, "a planned promotion needs both sides"),
        (source(), replica(), {"is_source_lost": True}, "can be reached, so it is fenced"),
        (source(), replica(waiting="/d"), {}, "/d is not loaded"),
        (source(), replica(half_brought=("t",)), {}, "t of database sales is not whole"),
        (source(), replica(missing=("t",)), {}, "t of database sales is not there.*is-lost does"),
        (source(), replica(missing=("t",)), {"is_planned": True}, "'repl failback sales' goes on"),
        (source(), replica(more={"repl.last.id": ""}), {}, "no whole replica"),
        (source(), ReplicaState(database=OTHER_SOURCE), {}, "there would be two"),
        (source(more={"repl.target.for": "true"}), replica(), {}, "is a replica itself"),
        (source(more={FENCED: "other"}), replica(), {}, "by policy other already.*--cancel"),
        (source(more=taken(FENCED, "other")), replica(), {}, "two .*: .*'repl failback other'"),
        (source(more={SUCCESSOR: taken_by("other")}), replica(), {}, "two sources: .*policy other"),
        (source(more={SUCCESSOR: taken_by("other")}), promoted(), {}, "two sources: .*sales_dr"),
        (source(backlog=None, gap="purged"), replica(), {"is_planned": True}, "purged"),
        (
            source(),
            replica(more={"repl.incompatible": "true"}),
            {"is_planned": True},
            "marked repl.incompatible",
        ),
    ],
)
def test_bad_states_are_refused(
    at_source: SourceState | None, at_replica: ReplicaState, given: dict[str, Any], why: str
) -> None:
    with pytest.raises(ReplError, match=why):
        plan(at_source, at_replica, **given)


def test_one_database_is_not_both_sides() -> None:
    same = database(REPLICA)
    with pytest.raises(ReplError, match="is a replica itself|both sides"):
        plan(SourceState(database=same, backlog=Backlog()), ReplicaState(database=same))


def test_a_record_is_read_as_it_was_written() -> None:
    assert Handover.of(promoted().database) == RECORD
    with pytest.raises(ReplError, match="is damaged .*'repl end sales'"):
        Handover.of(database({HANDOVER: "{}"}))


# -- the way back

NEW = NewSource(
    database=promoted().database, tables=frozenset("tuv"), known=frozenset({"t", "u", "v"})
)


def old(**given: Any) -> OldSource:
    tables = given.pop("tables", {"t": None, "u": None})
    return OldSource(database=database({**SOURCE, **given.pop("more", {})}), tables=tables, **given)


def test_without_a_divergence_only_events_go_back() -> None:
    found = plan_failback(FailbackRequest(policy=POLICY), old(), NEW)
    assert [step.name for step in found.steps] == [
        "FENCE", "BECOME_REPLICA", "DROP", "TURN", "REPLICATE",
    ]  # fmt: skip
    assert (found.whole, found.dropped, found.lost) == ((), (), ())


def test_a_loss_is_named_and_refused() -> None:
    diverged = old(divergence=Divergence(lost={"t": 2, "mine": 1}, used=frozenset("u")))
    with pytest.raises(ReplError, match="mine: 1 commit or change; t: 2 commits or changes"):
        plan_failback(FailbackRequest(policy=POLICY), diverged, NEW)
    for unsure in (Divergence(unknown="purged"), Divergence(others=("CREATE_FUNCTION",))):
        with pytest.raises(ReplError, match="purged|CREATE_FUNCTION"):
            plan_failback(FailbackRequest(policy=POLICY), old(divergence=unsure), NEW)


def test_what_is_given_up_comes_whole_or_goes() -> None:
    diverged = old(
        tables={"t": None, "u": None, "mine": None},
        divergence=Divergence(lost={"t": 2, "mine": 1}, used=frozenset("u")),
    )
    found = plan_failback(FailbackRequest(policy=POLICY, is_discarded=True), diverged, NEW)
    assert (found.whole, found.dropped) == (("t", "u"), ("mine",))


def test_where_nobody_can_tell_all_tables_come_whole() -> None:
    unsure = old(divergence=Divergence(unknown="purged"))
    found = plan_failback(FailbackRequest(policy=POLICY, is_discarded=True), unsure, NEW)
    assert found.whole == ("t", "u", "v")


def test_an_event_of_another_replication_hides_none_of_the_new_source() -> None:
    """A table that was loaded from elsewhere once stands at an event of there."""
    found = plan_failback(FailbackRequest(policy=POLICY), old(tables={"t": 71, "u": 70}), NEW)
    assert found.whole == ("t",)


def test_more_names_than_a_property_holds_are_refused() -> None:
    many = {f"table_{number:04d}": 1 for number in range(500)}
    diverged = old(divergence=Divergence(lost=many))
    with pytest.raises(ReplError, match="500 tables .*begin anew"):
        plan_failback(FailbackRequest(policy=POLICY, is_discarded=True), diverged, NEW)


def test_a_failback_that_was_stopped_goes_on_by_what_it_noted() -> None:
    noted = OldSource(database=database({**REPLICA, "hms.bridge.repl.diverged": "mine,t"}))
    found = plan_failback(FailbackRequest(policy=POLICY), noted, NEW)
    assert FailbackStep.BECOME_REPLICA not in found.steps
    assert (found.whole, found.dropped) == (("t",), ("mine",))


def test_a_source_that_two_policies_took_is_given_back_by_none() -> None:
    """The one that fenced it is promoted, too: nobody may lift its fence."""
    fenced = OldSource(database=database({**SOURCE, FENCED: "other"}))
    with pytest.raises(ReplError, match="'repl promote other --cancel', as long as"):
        plan_failback(FailbackRequest(policy=POLICY), fenced, NEW)
    promoted_too = OldSource(database=database({**SOURCE, **taken(FENCED, "other")}))
    with pytest.raises(ReplError, match="'repl failback other'") as refused:
        plan_failback(FailbackRequest(policy=POLICY), promoted_too, NEW)
    assert "--cancel" not in str(refused.value)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        (REPLICA, "was not promoted"),
        ({**REPLICA, HANDOVER: RECORD.format()}, "was stopped: 'repl promote sales'"),
    ],
)
def test_nothing_leads_back_from_there(parameters: dict[str, str], why: str) -> None:
    new = NewSource(database=database(parameters))
    with pytest.raises(ReplError, match=why):
        plan_failback(FailbackRequest(policy=POLICY), old(), new)


def test_files_of_plain_tables_that_no_event_tells_of() -> None:
    def place(text: str) -> PlainPlace:
        return PlainPlace(files=text, names=text)

    before = {"same": place("a"), "p/x=1": place("a"), "gone": place("a")}
    now = {"same": place("a"), "p/x=1": place("b"), "new": place("a")}
    assert changed_places(before, now) == {"p", "gone", "new"}


def test_every_step_has_words() -> None:
    assert all(step.value for step in (*PromoteStep, *FailbackStep))
