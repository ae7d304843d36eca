"""What a dry run tells of a dump: the files that the dump then names, and their bytes."""

from __future__ import annotations

import pytest

from hms_bridge.repl.dump.plan import DumpKind
from tests.support.repl_world import ReplWorld


def planned(world: ReplWorld, **changes):
    dumper = world.dumper()
    plan = dumper.plan(world.dump_request(**changes))
    return plan, dumper.size(plan)


def test_a_plan_counts_what_the_dump_names(busy_world):
    world = busy_world
    plan, size = planned(world)
    assert plan.kind is DumpKind.BOOTSTRAP
    assert size.file_count == world.dump().file_count > 0
    assert size.size_bytes == world.load().copied.bytes > 0
    world.insert("t", (7, "g"))
    world.insert("t", (8, "h"))
    plan, size = planned(world)
    assert plan.events.dumped["EVENT_COMMIT_TXN"] == 2
    assert size.file_count == world.dump().file_count == 2
    assert size.size_bytes == world.load().copied.bytes
    _, size = planned(world)
    assert (size.file_count, size.size_bytes) == (0, 0)


def test_a_table_that_comes_whole_counts_whole(busy_world):
    world = busy_world
    world.replicate()
    world.insert("t", (7, "g"))
    _, size = planned(world, tables_anew=("t",))
    report = world.dump(tables_anew=("t",))
    assert size.file_count == report.file_count > 1
    assert size.size_bytes == world.load().copied.bytes


@pytest.mark.parametrize("is_compacted", [False, True])
def test_bytes_of_replaced_files_are_those_of_the_archive(busy_world, is_compacted):
    world = busy_world
    world.replicate()
    world.insert("t", (7, "g"))
    if is_compacted:
        world.compact("t")
        assert world.clean() > 0
    _, size = planned(world)
    assert size.file_count == 1
    world.dump()
    assert size.size_bytes == world.load().copied.bytes > 0
