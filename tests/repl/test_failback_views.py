"""Materialized views of a former source that becomes a replica, which has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.catalog import CreationMetadata, Database
from hms_bridge.repl.handover.failback import Failback
from hms_bridge.repl.handover.failback_plan import FailbackRequest, FailbackStep
from tests.support.handover_world import POLICY, Sites
from tests.support.world import World


@pytest.fixture
def sites(fast_folder: Path) -> Iterator[Sites]:
    with Sites(fast_folder) as made:
        yield made.with_tables()


def make_view(world: World, database: str, name: str, table: str) -> None:
    """A materialized view, made as Hive makes it, that reads a table of the policy's database."""
    read = world.metastore.get_table(POLICY, table)
    query = f"select id from {POLICY}.{table}"
    world.metastore.create_table(
        replace(
            read,
            name=name,
            database_name=database,
            id=None,
            type="MATERIALIZED_VIEW",
            parameters={"transactional": "true"},
            storage=replace(read.storage, location=None),
            view_original_text=query,
            view_expanded_text=query,
            creation=CreationMetadata(
                database_name=database,
                table_name=name,
                table_names=frozenset({read.full_name}),
                snapshot="",
            ),
        )
    )


def diverge(sites: Sites) -> None:
    """Main is lost with a commit of its own, and comes back."""
    sites.main.insert("t", (3, "only here"))
    sites.lose_main()
    sites.promote(is_source_lost=True)
    sites.dr.insert("t", (4, "d"))
    sites.find_main()


def test_a_materialized_view_does_not_stop_the_way_back(sites: Sites) -> None:
    """A table that it reads comes whole; the replica has no such view, and its query is told."""
    make_view(sites.main, POLICY, "ids", "t")
    sites.replicate()
    diverge(sites)
    request = FailbackRequest(policy=sites.policy, is_discarded=True)
    plan = Failback(sites.sides()).plan(request)
    assert dict(plan.views) == {"ids": "select id from sales.t"}
    assert FailbackStep.DROP_VIEWS in plan.steps
    told = list[str]()
    sites.failback(replace(sites.sides(), say=told.append), is_discarded=True)
    assert [text for text in told if "CREATE MATERIALIZED VIEW sales.ids AS select id" in text]
    sites.assert_same()
    assert "ids" not in sites.main.metastore.get_tables(POLICY)


def test_a_view_of_another_database_that_would_stop_it_is_named_before(sites: Sites) -> None:
    sites.main.metastore.create_database(Database(name="reports"))
    make_view(sites.main, "reports", "ids", "t")
    make_view(sites.main, "reports", "harmless", "u")
    diverge(sites)
    before = dict(sites.main.metastore.get_database(POLICY).parameters)
    with pytest.raises(ReplError, match=r"other databases \(reports.ids\) read tables"):
        sites.failback(is_discarded=True)
    assert dict(sites.main.metastore.get_database(POLICY).parameters) == before
    sites.main.metastore.drop_table("reports", "ids", is_data_deleted=True)
    sites.failback(is_discarded=True)
    sites.assert_same()


def test_a_failback_that_such_a_view_stopped_goes_on(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Main is a replica already, as an earlier version left it."""
    make_view(sites.main, POLICY, "ids", "t")
    sites.replicate()
    diverge(sites)
    with monkeypatch.context() as patch:
        patch.setattr(Failback, "_drop_views", lambda *_: None)
        with pytest.raises(MetaError, match="used in the following materialized views"):
            sites.failback(is_discarded=True)
    assert dict(sites.failback().views) == {"ids": "select id from sales.t"}
    sites.assert_same()
