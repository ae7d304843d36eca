"""What the dry run of a failback says is what the run does, found in the database and the dump."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.txn import TxnState
from hms_bridge.repl.handover.failback import Failback
from hms_bridge.repl.handover.failback_plan import FailbackRequest, FailbackStep
from hms_bridge.repl.handover.own_part import Access, plan_end, run_end, set_access
from tests.support.handover_world import POLICY, Sites


@pytest.fixture
def sites(fast_folder: Path) -> Iterator[Sites]:
    with Sites(fast_folder) as made:
        yield made.with_tables()


def switched(sites: Sites) -> None:
    sites.promote(is_planned=True)
    sites.dr.insert("t", (3, "c"))


def diverged(sites: Sites) -> None:
    """With a table that only the former source has, and one of whose writes nobody will know."""
    sites.main.insert("t", (3, "only here"))
    sites.main.create_table("mine")
    sites.main.insert("mine", (1, "only here"))
    _lost_and_found(sites)
    sites.dr.insert("t", (4, "d"))
    sites.dr.create_table("new")
    sites.dr.insert("new", (1, "a"))


def written_to(sites: Sites) -> None:
    for _ in range(2):
        sites.main.begin().insert("u", [(3, "never committed")])
    _lost_and_found(sites)


def opened(sites: Sites) -> None:
    set_access(sites.dr.metastore, POLICY, Access.WRITES)
    sites.dr.insert("u", (7, "by hand"))
    set_access(sites.dr.metastore, POLICY, Access.NOTHING)
    sites.promote(is_planned=True)


def emptied(sites: Sites) -> None:
    _lost_and_found(sites)
    run_end(sites.main.metastore, plan_end(sites.main.metastore, POLICY))
    sites.main.metastore.drop_database(POLICY, is_cascade=True)


def stopped(sites: Sites) -> None:
    """After the former source became a replica; what is left was noted there."""
    diverged(sites)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Failback, "_drop", _stops)
        with pytest.raises(KeyboardInterrupt):
            sites.failback(is_discarded=True)


def _lost_and_found(sites: Sites) -> None:
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.find_main()


def _stops(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("happens", [switched, diverged, written_to, opened, emptied, stopped])
def test_a_failback_does_what_its_dry_run_says(
    sites: Sites, happens: Callable[[Sites], None]
) -> None:
    happens(sites)
    request = FailbackRequest(policy=sites.policy, is_discarded=True)
    before = _aborted(sites), _tables(sites)
    planned = Failback(sites.sides()).plan(request)
    assert (_aborted(sites), _tables(sites)) == before
    ran = sites.failback(is_discarded=True)
    assert ran == planned
    assert before[1] - _tables(sites) == set(planned.dropped)
    assert _aborted(sites) - before[0] == set(planned.aborted)
    kind, whole = _last_dump(sites)
    assert whole == set(planned.whole)
    assert (kind == "bootstrap") is planned.is_bootstrap
    assert (FailbackStep.ABORT_WRITERS in planned.steps) is bool(planned.aborted)
    sites.assert_same()


def test_a_dry_run_is_refused_as_the_run_is(sites: Sites) -> None:
    diverged(sites)
    errors = []
    for do in (Failback.plan, Failback.run):
        with pytest.raises(ReplError) as refused:
            do(Failback(sites.sides()), FailbackRequest(policy=sites.policy))
        errors.append(str(refused.value))
    assert errors[0] == errors[1]
    assert "mine: 2 commits or changes" in errors[0]


def _tables(sites: Sites) -> set[str]:
    store = sites.main.metastore
    return set(store.get_tables(POLICY)) if POLICY in store.get_databases() else set()


def _aborted(sites: Sites) -> set[int]:
    infos = sites.main.metastore.get_open_txns_info()
    return {info.id for info in infos if info.state is TxnState.ABORTED}


def _last_dump(sites: Sites) -> tuple[str | None, set[str]]:
    """Its kind, and the tables that stand whole in an incremental one (as Hive keeps them)."""
    result = sites.dr.metastore.policies.get_cycles(POLICY, 1)[0].result
    assert result.dump_directory is not None
    anew = Path(result.dump_directory.removeprefix("file:")) / "hive" / "_bootstrap" / "metadata"
    return result.dump_kind, {path.parent.name for path in anew.glob("*/*/_metadata")}
