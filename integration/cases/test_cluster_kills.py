"""kill -9 of each of our processes while real Hive writes: nothing acknowledged is lost, nothing
doubled, no ghosts, and everything goes on by itself afterwards.

HMS_BRIDGE_KILLS is how often each is killed.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator

import pytest

from integration.referees.cluster import Cluster, OurSide
from integration.referees.hive42 import HiveSession
from integration.referees.processes import Server, free_port
from integration.story.sides import rows_of, table_rows, unfinished, wait_until
from integration.story.writer import Writer

KILLS = int(os.environ.get("HMS_BRIDGE_KILLS", "1"))
# Each kill costs a lease that has to end, a compaction, a dump and a load, beside a writing Hive.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900 + 240 * KILLS)]

SEED = int(os.environ.get("HMS_BRIDGE_KILLS_SEED", "8"))
# What a dead process leaves is free after this time; a client has to beat within it.
TIMEOUT = "10s"
PATIENCE_SECONDS = 180


class Scene:
    """A source of ours with its server, a writer's Hive, and a replica in real Hive's metastore."""

    def __init__(self, cluster: Cluster) -> None:
        short = {"hive.txn.timeout": TIMEOUT, "hive.compactor.worker.timeout": "20s"}
        self.cluster = cluster
        self.side: OurSide = cluster.our_side("killed", short)
        self.random = random.Random(SEED)
        self.kills = 0
        self.server = self.side.serve("--worker", "--cleaner")
        self._hive = cluster.hive_at(self.side, {"hive.txn.timeout": TIMEOUT})
        self.asking: HiveSession = self._hive.main
        self._to_second = ("--metastore", cluster.second.uri)

    def restart(self, *words: str) -> None:
        self.server.stop()
        self.server = self.side.serve(*words)

    def writer(self, database: str) -> Writer:
        """A database that is dumped and loaded once, with somebody who writes to it."""
        self.asking.sql(f"create database {database}")
        writer = Writer(self._hive.session(), f"{database}.t").start()
        self.replicate(database)
        return writer

    def dump(self, database: str) -> tuple[str, ...]:
        return ("repl", "dump", database, "--wait", "20s")

    def load(self, database: str) -> tuple[str, ...]:
        return ("repl", "load", database, *self._to_second)

    def load_if_any(self, database: str) -> None:
        """A dump that was killed after its end waits for its load; an unfinished one does not."""
        answer = self.side.run(*self.load(database))
        assert "Traceback" not in answer.err, answer.err

    def replicate(self, database: str) -> None:
        """Dump and load until both were done: a killed one's lease has to end first."""
        self.insist(*self.dump(database))
        self.insist(*self.load(database))

    def insist(self, *words: str) -> float:
        """Run a verb again until it succeeds; seconds of the last time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            started = time.monotonic()
            answer = self.side.run(*words)
            if answer.exit_code == 0:
                return time.monotonic() - started
            assert "Traceback" not in answer.err, answer.err
            assert time.monotonic() < deadline, (words, answer.out, answer.err)
            time.sleep(1)

    def kill(self, process: Server, after_seconds: float) -> bool:
        """SIGKILL to the process itself; false if it had ended by then."""
        time.sleep(after_seconds)
        was_running = process.is_running
        if was_running:
            os.kill(process.process.pid, signal.SIGKILL)
        process.process.wait()
        process.stop()  # what it had started, such as Spark's Java
        return was_running

    def kill_verb(self, words: tuple[str, ...], took_seconds: float) -> bool:
        """Start a verb and kill it somewhere in the time that it takes."""
        share = self.random.uniform(0.3, 1.0)
        return self.kill(self.side.start(*words), share * took_seconds)

    def until_killed(self) -> Iterator[int]:
        """Rounds, until KILLS processes were caught alive; a verb may be done before its end."""
        self.kills = 0
        for turn in range(4 * KILLS):
            yield turn
            if self.kills >= KILLS:
                return
        raise AssertionError(f"only {self.kills} of {KILLS} were killed in time")

    def compact(self, writer: Writer, kind: str = "major") -> None:
        """Ask for both partitions; one that is being compacted refuses, which is right."""
        for name in "ab":
            words = ("compact", writer.table, kind, "--partition", f"p={name}")
            self.side.run(*words)

    def settles(self, database: str, writer: Writer) -> None:
        """All goes on by itself, and both sides have what the writer was told."""
        self.restart("--worker", "--cleaner")
        wait_until(lambda: not unfinished(self.side), "the queue", timeout_seconds=PATIENCE_SECONDS)
        # Also on a slow machine it has written something, and goes on after the last kill.
        wait_until(lambda: writer.acknowledged > 5, "the writer", timeout_seconds=PATIENCE_SECONDS)
        writer.stop()
        self.replicate(database)
        rows = table_rows(self.asking, writer.table)
        assert writer.ledger.differences(rows) == []
        replica = rows_of(self.cluster.hive_at_second, database)
        assert replica == {"t": rows}


@pytest.fixture(scope="module")
def scene(cluster: Cluster) -> Iterator[Scene]:
    made = Scene(cluster)
    yield made
    made.server.stop()


def test_server_with_worker_and_cleaner(scene: Scene) -> None:
    writer = scene.writer("k_serve")
    for _ in scene.until_killed():
        scene.compact(writer)
        scene.kills += scene.kill(scene.server, scene.random.uniform(0, 6))
        scene.server = scene.side.serve("--worker", "--cleaner")
    scene.settles("k_serve", writer)


def test_worker(scene: Scene) -> None:
    writer = scene.writer("k_worker")
    scene.restart("--cleaner")
    for _ in scene.until_killed():
        scene.compact(writer)
        worker = scene.side.start("serve", "--worker", "--port", str(free_port()))
        worker.wait_until(lambda w=worker: w.log_contains("serving thrift://"))  # type: ignore[misc]
        scene.kills += scene.kill(worker, scene.random.uniform(0, 5))
    scene.settles("k_worker", writer)


def test_cleaner(scene: Scene) -> None:
    writer = scene.writer("k_cleaner")
    scene.restart("--worker")
    took = scene.insist("cleaner", "run")
    for _ in scene.until_killed():
        scene.compact(writer)
        wait_until(lambda: {entry[2] for entry in unfinished(scene.side)} <= {"r"}, "the worker")
        scene.kills += scene.kill_verb(("cleaner", "run"), took)
    scene.settles("k_cleaner", writer)


def test_dump(scene: Scene) -> None:
    writer = scene.writer("k_dump")
    scene.restart("--worker", "--cleaner")
    took = scene.insist(*scene.dump("k_dump"))
    scene.insist(*scene.load("k_dump"))
    for _ in scene.until_killed():
        scene.compact(writer)
        scene.kills += scene.kill_verb(scene.dump("k_dump"), took)
        scene.load_if_any("k_dump")
        scene.replicate("k_dump")
    scene.settles("k_dump", writer)


def test_load(scene: Scene) -> None:
    writer = scene.writer("k_load")
    scene.restart("--worker", "--cleaner")
    scene.insist(*scene.dump("k_load"))
    took = scene.insist(*scene.load("k_load"))
    for _ in scene.until_killed():
        scene.compact(writer)
        scene.insist(*scene.dump("k_load"))
        scene.kills += scene.kill_verb(scene.load("k_load"), took)
        scene.insist(*scene.load("k_load"))
    scene.settles("k_load", writer)
