"""Many clients at once: a reader of the log misses nothing, nobody gets what another one got."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hms_bridge.backend.engine import open_database
from hms_bridge.config.settings import Settings, TxnSettings
from hms_bridge.errors import AlreadyExistsError, NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnState
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import (
    DS,
    acid_table,
    commit,
    events_after,
    new_database,
    new_table,
    open_txn,
    partition,
    unique,
    write,
)
from tests.support.databases import OTHER_URLS

THREADS = 4
ROUNDS = 5


@pytest.fixture(params=["sqlite", *OTHER_URLS])
def metastore(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalMetastore]:
    url = f"sqlite:///{tmp_path}/metastore.db" if request.param == "sqlite" else request.param
    service = open_local_metastore(url, warehouse=str(tmp_path / "warehouse"))
    yield service
    service.close()


def run(*works: Callable[[], None]) -> None:
    """All of them at once; the first error that any of them raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_a_reader_of_the_log_misses_nothing(metastore: LocalMetastore) -> None:
    name = new_database(metastore)
    new_table(metastore, name, partition_columns=DS)
    first = metastore.get_current_event_id()
    is_over = threading.Event()
    seen: list[int] = []
    kinds: Counter[str] = Counter()

    def change(number: int) -> Callable[[], None]:
        def work() -> None:
            for turn in range(ROUNDS):
                txn, _ = write(metastore, name)
                metastore.add_partitions(name, "t", [partition(name, "t", f"{number}-{turn}")])
                commit(metastore, txn)
                metastore.create_table(acid_table(name, f"t_{number}_{turn}"))
                metastore.drop_table(name, f"t_{number}_{turn}")

        return work

    def follow() -> None:
        last: int = first
        while not is_over.is_set() or metastore.get_current_event_id() > last:
            for event in events_after(metastore, last):
                seen.append(event.id)
                kinds[event.type] += 1
                last = event.id

    reader = threading.Thread(target=follow)
    reader.start()
    try:
        run(*(change(number) for number in range(THREADS)))
    finally:
        is_over.set()
        reader.join()
    assert seen == list(range(first + 1, metastore.get_current_event_id() + 1))
    # An opening that took longer than the open timeout is aborted and tried again.
    kinds["OPEN_TXN"] -= kinds.pop("ABORT_TXN", 0)
    assert set(kinds.values()) == {THREADS * ROUNDS}
    assert len(kinds) == 6
    assert metastore.get_max_allocated_write_id(name, "t") == THREADS * ROUNDS
    assert len(metastore.get_partition_names(name, "t")) == THREADS * ROUNDS


def test_one_of_many_makes_a_table(metastore: LocalMetastore) -> None:
    name = new_database(metastore)
    outcomes: list[str] = []

    def make() -> None:
        try:
            metastore.create_table(acid_table(name))
            outcomes.append("made")
        except AlreadyExistsError:
            outcomes.append("there")

    run(*[make] * THREADS)
    assert sorted(outcomes) == ["made", *["there"] * (THREADS - 1)]
    place = metastore.get_table(name, "t").storage.location
    assert place is not None
    assert Path(place.removeprefix("file:")).is_dir()


def test_dropping_and_adding_at_once_leaves_no_orphans(metastore: LocalMetastore) -> None:
    for turn in range(ROUNDS):
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)

        def add(name: str = name, turn: int = turn) -> None:
            try:
                metastore.add_partitions(name, "t", [partition(name, "t", str(turn))])
            except (NoSuchObjectError, AlreadyExistsError):
                return

        def drop(name: str = name) -> None:
            metastore.drop_table(name, "t")

        run(add, drop, add)
        metastore.drop_database(name)


def test_no_two_workers_get_the_same_compaction(metastore: LocalMetastore) -> None:
    name, pool = new_database(metastore), unique("pool")
    new_table(metastore, name, partition_columns=DS)
    names = [f"ds={number}" for number in range(THREADS * 3)]
    metastore.add_partitions(name, "t", [partition(name, "t", one[3:]) for one in names])
    for one in names:
        metastore.compact(
            CompactionRequest(
                target=Target(name, "t", one),
                type=CompactionType.MAJOR, pool_name=pool,
            )
        )  # fmt: skip
    taken: list[int] = []

    def work() -> None:
        while (found := metastore.find_next_compaction("w", "4.0", pool)) is not None:
            taken.append(found.id)

    run(*[work] * THREADS)
    assert len(taken) == len(set(taken)) == len(names)


def test_who_waits_for_another_writer_does_not_open_slowly(tmp_path: Path) -> None:
    """No id is drawn before the wait is over, so nobody can have counted one as dead."""
    url = f"sqlite:///{tmp_path}/metastore.db"
    settings = Settings(warehouse=str(tmp_path / "wh"), txn=TxnSettings(open_timeout_ms=2000))
    service = open_local_metastore(url, settings=settings)
    other = open_database(url)
    is_held = threading.Event()

    def hold() -> None:
        with other.transaction(write=True):
            is_held.set()
            time.sleep(2.2)

    def open_one() -> None:
        assert is_held.wait(30)
        open_txn(service)

    run(hold, open_one)
    assert [txn.state for txn in service.get_open_txns().txns] == [TxnState.OPEN]
    other.close()
    service.close()
