"""Replication and handovers that fail at any call: each table is as it was or as it will be, and
the same verb goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from tests.failures.failing import Tried, Verb
from tests.failures.scene import SETTINGS, Saved, Scene
from tests.support.engines import MEMORY
from tests.support.handover_world import LEASE, POLICY, Sites


def bootstrap(sites: Sites) -> Verb:
    return sites.dump


def incremental(sites: Sites) -> Verb:
    sites.replicate()
    changed(sites)
    return sites.dump


def first_load(sites: Sites) -> Verb:
    sites.dump()
    return lambda: load(sites)


def later_load(sites: Sites) -> Verb:
    sites.replicate()
    changed(sites)
    sites.dump()
    return lambda: load(sites)


def changed(sites: Sites) -> None:
    main = sites.main
    main.insert("t", (3, "c"))
    main.delete("u", 1)
    main.compact("t")
    main.create_table("v")
    main.insert("v", (1, "v"))
    main.metastore.drop_table(POLICY, "w")


def load(sites: Sites) -> None:
    with sites.sides().open_cycle(sites.policy) as cycle:
        cycle.loader.run(cycle.loader.plan(cycle.load))


def discard(sites: Sites) -> Verb:
    sites.replicate()
    changed(sites)
    sites.dump()
    main = sites.main

    def run() -> None:
        job = ReplDiscard(
            main.metastore, main.resolve, sites.clock, sites.new_name, main.metastore.manifest
        )
        request = DiscardRequest(root=str(sites.root), database_name=POLICY, dump=None, lease=LEASE)
        job.run(job.plan(request))

    return run


def planned_switch(sites: Sites) -> Verb:
    sites.replicate()
    sites.main.insert("t", (3, "c"))
    return lambda: sites.promote(is_planned=True)


def failover(sites: Sites) -> Verb:
    sites.replicate()
    sites.main.begin().insert("t", [(3, "open")])
    return sites.promote


def failback(sites: Sites) -> Verb:
    sites.replicate()
    sites.main.insert("t", (3, "only here"))
    sites.promote()
    sites.dr.insert("u", (4, "d"))
    return lambda: sites.failback(is_discarded=True)


VERBS: dict[str, Callable[[Sites], Verb]] = {
    "dump, bootstrap": bootstrap,
    "dump": incremental,
    "load, bootstrap": first_load,
    "load": later_load,
    "discard": discard,
    "promote, planned": planned_switch,
    "promote": failover,
    "failback": failback,
}


@pytest.fixture(scope="module")
def sites(fast_root: Path) -> Iterator[tuple[Sites, Scene]]:
    folder = fast_root / "failing-sites"
    folder.mkdir()
    scene = Scene(folder)
    sites = Sites(folder, urls=(MEMORY, MEMORY), resolve=scene.resolve, compactor=SETTINGS)
    for name in ("t", "u", "w"):
        sites.main.create_table(name)
        sites.main.insert(name, (1, "a"), (2, "b"))
    with scene.watched(sites.main, sites.dr):
        yield sites, scene


@pytest.fixture(scope="module")
def start(sites: tuple[Sites, Scene]) -> Saved:
    return sites[1].save()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_fails(verb: str, sites: tuple[Sites, Scene], start: Saved) -> None:
    both, scene = sites
    scene.restore(start)
    Tried(scene, VERBS[verb](both), is_of_steps=True, is_of_program=True).run()
