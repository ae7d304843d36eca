"""A first dump that fails leaves the database as it was: no source, and nothing pinned."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hms_bridge.errors import HmsBridgeError, ReplError
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.target_objects import with_parameters
from tests.support.passing import Interrupted, Passing
from tests.support.repl_world import ReplWorld


@pytest.fixture
def plain_world(world: ReplWorld) -> ReplWorld:
    """Nobody has replicated its database yet."""
    database = world.source.get_database("src")
    world.source.alter_database("src", with_parameters(database, {"repl.source.for": None}))
    return world


def traces(world: ReplWorld) -> tuple[dict[str, str], list[str]]:
    """Parameters of the database, and holders of pins."""
    parameters = dict(world.source.get_database("src").parameters)
    return parameters, [pin.holder for pin in world.source.manifest.pins()]


@pytest.mark.parametrize("root", ["/proc/nope", "/proc/version", "/proc/version/below"])
def test_a_root_that_cannot_be_written(plain_world, root):
    before = traces(plain_world)
    assert before == ({}, [])
    with pytest.raises(ReplError, match="Check the file systems"):
        plain_world.dump(root=root)
    assert traces(plain_world) == before


def test_writers_that_do_not_end(plain_world):
    writer = plain_world.begin()
    writer.insert("t", [(2, "b")])
    with pytest.raises(ReplError, match="while it is written to"):
        plain_world.dump(wait=WaitRules(timeout_seconds=2, poll_seconds=1))
    assert traces(plain_world) == ({}, [])
    writer.commit()
    plain_world.replicate()
    plain_world.assert_same()


def test_an_interrupt_while_it_waits(plain_world):
    plain_world.begin().insert("t", [(2, "b")])

    def interrupt() -> None:
        raise KeyboardInterrupt

    plain_world.clock.on_sleep = interrupt
    with pytest.raises(KeyboardInterrupt):
        plain_world.dump()
    assert traces(plain_world) == ({}, [])


def test_what_was_a_source_before_stays_one(world):
    """Though somebody gave it the value that the dump would have."""
    database = world.source.get_database("src")
    world.source.alter_database("src", with_parameters(database, {"repl.source.for": "hms-bridge"}))
    with pytest.raises(ReplError):
        world.dump(root="/proc/nope")
    assert traces(world) == ({"repl.source.for": "hms-bridge"}, [])


def test_what_an_earlier_dump_pinned_stays(plain_world):
    plain_world.replicate()
    plain_world.begin().lock("t")
    with pytest.raises(ReplError, match="while it is written to"):
        plain_world.dump(
            is_bootstrap_forced=True, wait=WaitRules(timeout_seconds=2, poll_seconds=1)
        )
    assert traces(plain_world) == ({"repl.source.for": "hms-bridge"}, [plain_world.policy_pin])


def test_a_pin_that_somebody_took_meanwhile_stays(plain_world):
    """As an operator does who keeps what is archived for the next dump."""
    writer = plain_world.begin()
    writer.lock("t")

    def hold() -> None:
        plain_world.clock.on_sleep = lambda: None
        plain_world.dumper()._pins("src", str(plain_world.repl_root)).hold_since(0)

    plain_world.clock.on_sleep = hold
    with pytest.raises(ReplError, match="while it is written to"):
        plain_world.dump(wait=WaitRules(timeout_seconds=2, poll_seconds=1))
    assert traces(plain_world) == ({}, [plain_world.policy_pin])


def test_a_policy_of_another_root_keeps_the_database_a_source(plain_world, tmp_path):
    plain_world.dump(root=str(tmp_path / "other"))
    before = traces(plain_world)
    with pytest.raises(ReplError):
        plain_world.dump(root="/proc/nope")
    assert traces(plain_world) == before


@pytest.mark.parametrize("verb", ["put_pin", "settle_announced"])
def test_a_finished_dump_keeps_both_though_something_fails_behind_it(plain_world, verb):
    """The marker is there, so the dump may be loaded: its files must not go."""

    class Refusing(Passing):
        def __getattr__(self, name: str) -> Any:
            if name == verb and any(plain_world.repl_root.rglob("_finished_dump")):
                raise HmsBridgeError("the database is away")
            return super().__getattr__(name)

    dumper = plain_world.dumper()
    dumper._manifest = Refusing(plain_world.source.manifest)
    with pytest.raises(HmsBridgeError, match="the database is away"):
        dumper.run(dumper.plan(plain_world.dump_request()))
    parameters, holders = traces(plain_world)
    assert parameters == {"repl.source.for": "hms-bridge"}
    assert plain_world.policy_pin in holders
    plain_world.load()
    plain_world.assert_same()


def test_another_dump_that_took_over_keeps_both(plain_world):
    """This process slept for so long that another one took its lease and finished a dump."""
    stuck = plain_world.begin()
    stuck.lock("t")

    def sleep_long() -> None:
        plain_world.clock.on_sleep = lambda: None
        stuck.commit()
        for lock in plain_world.source.show_locks():
            plain_world.source.unlock(lock.lock_id)
        plain_world.dump()

    plain_world.clock.on_sleep = sleep_long
    with pytest.raises(HmsBridgeError):
        plain_world.dump()
    parameters, holders = traces(plain_world)
    assert parameters == {"repl.source.for": "hms-bridge"}
    assert plain_world.policy_pin in holders
    plain_world.load()
    plain_world.assert_same()


def test_what_cannot_be_taken_back_is_said(plain_world, caplog):
    """With the command that ends it."""

    def away() -> None:
        raise HmsBridgeError("the database is away")

    source = Interrupted(plain_world.source, lambda: None, before="alter_database")
    plain_world.begin().lock("t")

    def leave() -> None:
        source._action, source.times = away, 1

    plain_world.clock.on_sleep = leave
    with caplog.at_level(logging.WARNING), pytest.raises(ReplError, match="written to"):
        plain_world.dump(source, wait=WaitRules(timeout_seconds=2, poll_seconds=1))
    assert "(the database is away)" in caplog.text
    assert "'repl end src' ends it" in caplog.text
