"""A drop and a move of directories at once, by two metastores on one database: what is dropped goes
with its files, what is not keeps them, and no file is left where nothing names it.

Hive's own drops and renames wait for each other by exclusive locks; who takes none, as any client
of the metastore may, loses files there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import (
    HmsBridgeError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import TableType
from hms_bridge.model.target import TableName
from hms_bridge.service import file_work, truncations
from hms_bridge.service.directories import Directories
from hms_bridge.service.file_work import FileWork
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.truncations import TruncationVerbs
from hms_bridge.service.warehouse_files import WarehouseFiles
from tests.conformance.objects import DS, new_table, orc_storage, partition, write
from tests.service.test_objects_of_one_moment import ONE_WRITER, Pair, pair
from tests.support.faults import CrashError

__all__ = ["pair"]

PLAIN: dict[str, Any] = {
    "type": TableType.MANAGED_TABLE.value,
    "parameters": {},
    "partition_columns": DS,
}
ROWS = b"rows"
LONG_SECONDS = 30
Act = Callable[[], object]


def place_of(metastore: MetastoreService, database: str, table: str) -> Path:
    location = metastore.get_table(database, table).storage.location or ""
    return Path(location.removeprefix("file:"))


@pytest.fixture
def place(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a partition with rows of ``s``, beside which is the like table ``u``."""
    monkeypatch.setattr(file_work, "WAIT_SECONDS", 0.0)
    for name in ("s", "u"):
        new_table(pair.one, pair.database, name, **PLAIN)
    pair.one.add_partitions(pair.database, "s", [partition(pair.database, "s", "x")])
    made = place_of(pair.one, pair.database, "s") / "ds=x"
    (made / "data").write_bytes(ROWS)
    return made


def exchange(pair: Pair) -> Act:
    source, target = (TableName(pair.database, name) for name in "su")
    return lambda: pair.one.exchange_partitions({"ds": "x"}, source, target)


def rename_table(pair: Pair, name: str = "s") -> Act:
    table = pair.one.get_table(pair.database, name)
    renamed = replace(table, name="renamed", storage=replace(table.storage, location=None))
    return lambda: pair.one.alter_table(pair.database, name, renamed)


def rename_partition(pair: Pair) -> Act:
    (old,) = pair.one.get_partitions(pair.database, "s")
    wanted = replace(old, values=("y",), storage=replace(old.storage, location=None))
    return lambda: pair.one.rename_partition(pair.database, "s", ["x"], wanted)


def drop_table(pair: Pair, name: str) -> Act:
    return lambda: pair.other.drop_table(pair.database, name)


def drop_partition(pair: Pair) -> Act:
    return lambda: pair.other.drop_partitions(pair.database, "s", ["ds=x"])


def drop_database(pair: Pair) -> Act:
    return lambda: pair.other.drop_database(pair.database, is_cascade=True)


MOVES = [exchange, rename_table, rename_partition]
DROPS: list[Callable[[Pair], Act]] = [
    lambda pair: drop_table(pair, "s"),
    drop_partition,
    drop_database,
]
DROP_NAMES = ["table", "partition", "database"]


@contextmanager
def meanwhile(kind: object, method: str, act: Act) -> Iterator[list[Exception]]:
    """Something happens once, after the next call of a method; what it is refused with."""
    refusals: list[Exception] = []
    inner = getattr(kind, method)
    with pytest.MonkeyPatch.context() as patched:

        def call(*arguments: Any, **named: Any) -> Any:
            patched.undo()
            answer = inner(*arguments, **named)
            try:
                act()
            except HmsBridgeError as error:
                refusals.append(error)
            return answer

        patched.setattr(kind, method, call)
        yield refusals


def refused_or_not(act: Act) -> str:
    try:
        act()
    except HmsBridgeError as error:
        return str(error)
    return ""


def killed(act: Act) -> Act:
    """It dies when the directory is at its new place, before its transaction."""

    def dying() -> None:
        move = Directories.move
        with pytest.MonkeyPatch.context() as patched:

            def call(*arguments: Any, **named: Any) -> None:
                move(*arguments, **named)
                raise CrashError("move")

            patched.setattr(Directories, "move", call)
            with pytest.raises(CrashError):
                act()

    return dying


def keep_house(pair: Pair) -> None:
    """When the claims of those that were killed have run out."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_work, "CLAIM_MS", -1000)
        pair.other._file_work.resume()


def rows_below(place: Path) -> list[Path]:
    return list(place.parents[1].rglob("data"))


def require_nothing_lost(pair: Pair, place: Path, *, is_dropped: bool) -> None:
    """The rows are where their partition says, or nowhere if it was dropped."""
    is_gone = pair.database not in pair.one.get_databases()
    names = [] if is_gone else pair.one.get_tables(pair.database)
    places = [
        Path((row.storage.location or "").removeprefix("file:"))
        for name in names
        for row in pair.one.get_partitions(pair.database, name)
    ]
    assert [path.parent for path in rows_below(place)] == places
    assert len(places) == (0 if is_dropped else 1)


with_moves = pytest.mark.parametrize("move", MOVES)
with_drops = pytest.mark.parametrize("drop", DROPS, ids=DROP_NAMES)
Making = Callable[[Pair], Act]


@with_drops
@with_moves
def test_a_drop_while_a_directory_is_elsewhere_is_refused(
    pair: Pair, place: Path, move: Making, drop: Making
) -> None:
    """The rename would fail, and put back what then belongs to nobody: the next table or partition
    of the name would show it."""
    with meanwhile(Directories, "move", drop(pair)) as refusals:
        move(pair)()
    assert "is still being moved" in str(refusals[0])
    require_nothing_lost(pair, place, is_dropped=False)


@with_drops
@with_moves
def test_a_drop_that_looked_before_the_move_began_is_refused(
    pair: Pair, place: Path, move: Making, drop: Making
) -> None:
    """Its files would be elsewhere when they are to be deleted, and come back later."""
    with (
        meanwhile(WarehouseFiles, "look", killed(move(pair))),
        pytest.raises(MetaError, match="is still being moved"),
    ):
        drop(pair)()
    keep_house(pair)
    require_nothing_lost(pair, place, is_dropped=False)
    drop(pair)()
    require_nothing_lost(pair, place, is_dropped=True)


@with_drops
@with_moves
def test_a_drop_puts_back_what_a_killed_move_left_elsewhere(
    pair: Pair, place: Path, move: Making, drop: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as its claim has run out; what is dropped then goes with its files."""
    killed(move(pair))()
    assert "is still being moved" in refused_or_not(drop(pair))
    monkeypatch.setattr(file_work, "CLAIM_MS", -1000)
    drop(pair)()
    require_nothing_lost(pair, place, is_dropped=True)


@with_drops
@with_moves
def test_what_was_dropped_is_not_moved_away_from_its_deletion(
    pair: Pair, place: Path, move: Making, drop: Making
) -> None:
    """The drop comes when the move has looked, and deletes when that would have moved."""
    tasks: list[Any] = []

    def commit() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(FileWork, "carry_out", lambda _, doomed: tasks.extend(doomed))
            drop(pair)()

    def delete() -> None:
        pair.other._file_work.carry_out(tasks)

    with (
        meanwhile(Directories, "exists", commit) as refusals,
        meanwhile(Directories, "move", delete) as too_late,
    ):
        assert refused_or_not(move(pair))
    assert (refusals, too_late) == ([], [])
    assert tasks
    delete()
    require_nothing_lost(pair, place, is_dropped=True)


@ONE_WRITER
@pytest.mark.parametrize(
    ("drop", "mark"),
    [(DROPS[0], "DELETE FROM TBLS"), (drop_partition, "DELETE FROM PARTITIONS")],
    ids=DROP_NAMES[:2],
)
@with_moves
def test_no_move_begins_while_a_drop_commits(
    pair: Pair,
    place: Path,
    move: Making,
    drop: Making,
    mark: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither would see of the other what it has written down."""
    moving, began, ended = move(pair), [], threading.Event()
    move_back = Directories.move_back

    def move_back_late(*arguments: Any, **named: Any) -> None:
        ended.wait(LONG_SECONDS)
        move_back(*arguments, **named)

    def begin() -> None:
        with suppress(HmsBridgeError):
            moving()

    monkeypatch.setattr(Directories, "move_back", move_back_late)
    with ThreadPoolExecutor(1) as beside:
        pair.meanwhile(mark, lambda: began.append(pair.beside(beside, begin)), of=pair.other)
        drop(pair)()
        ended.set()
    assert began
    require_nothing_lost(pair, place, is_dropped=True)


def test_a_table_that_was_made_again_since_it_was_looked_at_is_dropped_with_its_files(
    pair: Pair, place: Path
) -> None:
    def make_again() -> None:
        pair.one.drop_table(pair.database, "s")
        new_table(pair.one, pair.database, "s", **PLAIN)
        pair.one.add_partitions(pair.database, "s", [partition(pair.database, "s", "x")])
        (place / "data").write_bytes(b"others")

    with meanwhile(WarehouseFiles, "look", make_again) as refusals:
        drop_table(pair, "s")()
    assert refusals == []
    require_nothing_lost(pair, place, is_dropped=True)


@with_moves
def test_a_move_of_what_was_made_again_since_it_was_looked_at_is_refused(
    pair: Pair, place: Path, move: Making
) -> None:
    """Before its directory is moved: readers of the new one would find nothing meanwhile."""
    moves: list[None] = []

    def make_again() -> None:
        pair.other.drop_table(pair.database, "s")
        new_table(pair.other, pair.database, "s", **PLAIN)
        pair.other.add_partitions(pair.database, "s", [partition(pair.database, "s", "x")])

    with (
        meanwhile(Directories, "exists", make_again) as refusals,
        meanwhile(Directories, "move", lambda: moves.append(None)),
        pytest.raises(MetaError, match=r"(was|were) changed by someone else while"),
    ):
        move(pair)()
    assert (refusals, moves) == ([], [])


def test_who_drops_the_target_of_an_exchange_deletes_nothing_of_its_source(
    pair: Pair, place: Path
) -> None:
    """The rows lie in the target's directory, and are the source's until the exchange commits."""
    with meanwhile(Directories, "move", drop_table(pair, "u")) as refusals:
        exchange(pair)()
    assert "is still being moved" in str(refusals[0])
    require_nothing_lost(pair, place, is_dropped=False)


@pytest.mark.parametrize(("move", "name"), [(rename_partition, "s"), (exchange, "u")])
def test_what_moved_into_a_dropped_table_since_it_was_looked_at_goes_with_it(
    pair: Pair, place: Path, move: Making, name: str
) -> None:
    """Else the next table of its name would show it."""
    with meanwhile(WarehouseFiles, "look", move(pair)) as refusals:
        drop_table(pair, name)()
    assert refusals == []
    require_nothing_lost(pair, place, is_dropped=True)


def test_a_table_is_not_made_of_what_a_rename_moved_to_its_place(pair: Pair, place: Path) -> None:
    """The rename takes its files back, and the new table's with them."""
    with (
        meanwhile(FileWork, "settle", killed(rename_table(pair))),
        pytest.raises(MetaError, match="is still being moved"),
    ):
        new_table(pair.other, pair.database, "renamed", **PLAIN)
    keep_house(pair)
    require_nothing_lost(pair, place, is_dropped=False)


def test_a_table_is_not_made_of_files_that_are_being_deleted(pair: Pair, place: Path) -> None:
    """It would be said to have the rows of another one that shared its place."""
    other = orc_storage(location=f"file:{place}")

    def commit() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(FileWork, "carry_out", lambda *_: None)
            drop_table(pair, "s")()

    with (
        meanwhile(FileWork, "settle", commit) as refusals,
        pytest.raises(MetaError, match="is still being deleted"),
    ):
        new_table(pair.one, pair.database, "v", storage=other, parameters={})
    assert refusals == []


def test_a_partition_is_not_added_where_an_exchange_has_moved_another(
    pair: Pair, place: Path
) -> None:
    """The exchange takes the directory back, and what was written for the new one with it."""
    with (
        meanwhile(FileWork, "settle", killed(exchange(pair))),
        pytest.raises(MetaError, match="is still being moved"),
    ):
        pair.other.add_partitions(pair.database, "u", [partition(pair.database, "u", "x")])
    keep_house(pair)
    require_nothing_lost(pair, place, is_dropped=False)


def test_nothing_is_moved_to_where_another_table_has_come_meanwhile(
    pair: Pair, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an object store no directory shows that it is there."""
    there = orc_storage(location=f"file:{place.parents[1]}/renamed")
    monkeypatch.setattr(Directories, "make_all", lambda *_: None)
    act = lambda: new_table(pair.other, pair.database, "v", storage=there)  # noqa: E731
    with (
        meanwhile(Directories, "exists", act) as refusals,
        pytest.raises(InvalidOperationError, match="already exists"),
    ):
        rename_table(pair)()
    assert refusals == []
    assert (place / "data").read_bytes() == ROWS


def truncated(pair: Pair) -> Act:
    """A transactional table ``s``, emptied in a transaction that is open."""
    pair.one.drop_table(pair.database, "s")
    new_table(pair.one, pair.database, "s")
    _, write_id = write(pair.one, pair.database, "s")
    return lambda: pair.one.truncate_table(pair.database, "s", write_id=write_id)


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_truncation_leaves_no_base_where_its_table_is_gone(
    pair: Pair, place: Path, *, is_moved: bool
) -> None:
    """It would hide the rows of the next table there once that has as many write ids."""
    truncate = truncated(pair)
    away = rename_table(pair) if is_moved else drop_table(pair, "s")
    with (
        meanwhile(TruncationVerbs, "_require_all_alone", away) as refusals,
        pytest.raises(NoSuchObjectError),
    ):
        truncate()
    assert refusals == []
    assert not place.parent.exists()


def test_what_is_being_moved_is_not_emptied(pair: Pair, place: Path) -> None:
    """What lies there is another's until the rename has ended."""
    pair.one.add_partitions(pair.database, "u", [partition(pair.database, "u", "x")])

    def make_way() -> None:
        pair.other.drop_partitions(pair.database, "u", ["ds=x"])
        killed(exchange(pair))()

    with (
        meanwhile(truncations, "require_definitions_open", make_way) as refusals,
        pytest.raises(MetaError, match="is still being moved"),
    ):
        pair.other.truncate_table(pair.database, "u")
    assert refusals == []
    keep_house(pair)
    require_nothing_lost(pair, place, is_dropped=False)


@pytest.mark.parametrize("is_transactional", [True, False])
def test_what_a_rename_has_elsewhere_is_not_noted_as_empty(
    pair: Pair, place: Path, *, is_transactional: bool
) -> None:
    """It comes back with its rows, under the new name or the old one."""
    truncate: Act = lambda: pair.one.truncate_table(pair.database, "s")  # noqa: E731
    if is_transactional:
        truncate = truncated(pair)
    is_moved, is_over, move = threading.Event(), threading.Event(), Directories.move

    def linger(*arguments: Any) -> None:
        move(*arguments)
        is_moved.set()
        assert is_over.wait(LONG_SECONDS)

    rename = rename_table(pair)
    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patched:
        patched.setattr(Directories, "move", linger)
        renaming: list[Future[object]] = []

        def begin() -> None:
            renaming.append(pool.submit(rename))
            assert is_moved.wait(LONG_SECONDS)

        with (
            meanwhile(TruncationVerbs, "_require_all_alone", begin),
            pytest.raises(MetaError, match="is still being moved"),
        ):
            truncate()
        is_over.set()
        renaming[0].result(LONG_SECONDS)
    assert list(place.parent.rglob("*")) == [], "no base either"
    if not is_transactional:
        require_nothing_lost(pair, place, is_dropped=False)
