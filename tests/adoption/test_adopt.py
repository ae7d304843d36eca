"""Adopting into a metastore: what is registered, what is refused, what an interruption leaves."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.adoption.adopt import adopt, describe
from hms_bridge.adoption.look import look
from hms_bridge.adoption.plan import AdoptionPlan, AdoptionRequest
from hms_bridge.connect import LocalStore
from hms_bridge.errors import (
    AcidFormatError,
    AlreadyExistsError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    NotOrcError,
)
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import KEEP_FILES, Column, Table
from hms_bridge.model.compaction import ShowCompactionsRequest
from hms_bridge.model.ids import TxnId
from hms_bridge.model.target import Scope
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.rows.scan import plan_scan, read_scan_split
from hms_bridge.service.file_work import FileWork
from hms_bridge.session.transaction import current_snapshot
from tests.conformance.objects import abort, open_txn, write_id
from tests.support.golden import acid_goldens
from tests.support.passing import Interrupted, Passing

PLAIN, COMPACTED = "g02_iud/01-before-minor", "g02_iud/05-after-major"
PARTITIONED = "g07_part/03-after-minor-cleaner"
ABORTS = "g10_aborts/01-open-and-aborts"
ABORTED = ValidWriteIdList.parse("g.g10_aborts:11:8:8,10:2,4,5,7,11")


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Where Hive's tables were."""
    folder = tmp_path / "left"
    folder.mkdir()
    return folder


def copied(stage: str, target: Path) -> Path:
    return Path(shutil.copytree(acid_goldens() / stage / "files", target))


def planned(location: Path, name: str = "t", **given: Any) -> AdoptionPlan:
    values: dict[str, Any] = {
        "database_name": "d", "table_name": name, "location": str(location), "owner": "ann",
    } | given  # fmt: skip
    return look(AdoptionRequest(**values), FsspecResolver())


def carry_out(plan: AdoptionPlan, store: LocalStore) -> None:
    adopt(plan, store.metastore, user="ann", host="here")


def ids(store: LocalStore, name: str = "t") -> list[int]:
    table = store.metastore.get_table("d", name)
    txns = current_snapshot(store.metastore)
    (write_ids,) = store.metastore.get_valid_write_ids([table.full_name], txns)
    splits = plan_scan(store.metastore, store.resolver, table, txns=txns, write_ids=write_ids)
    columns = [Column(name="id", type="int")]
    return sorted(
        row["id"]
        for split in splits
        for batch in read_scan_split(store.resolver, split, columns, has_row_ids=False)
        for row in batch.to_pylist()
    )


def test_what_is_registered(store: LocalStore, left: Path) -> None:
    carry_out(planned(copied(PARTITIONED, left / "t"), partition_types={"b": "int"}), store)
    table = store.metastore.get_table("d", "t")
    assert table.is_full_acid
    assert (table.owner, table.storage.location) == ("ann", f"file:{left}/t")
    names = store.metastore.get_partition_names("d", "t")
    assert len(names) == 11
    assert {"a=sl%2Fash/b=1", "a=100%25/b=5", "a=日本/b=3", "a=sp ace/b=1"} <= set(names)
    assert "a=__HIVE_DEFAULT_PARTITION__/b=4" in names
    opened = store.metastore.get_open_txns()
    assert (opened.txns, opened.high_watermark) == ((), 355)


def test_compacted_directories_are_visible(store: LocalStore, left: Path) -> None:
    """``base_…_v134`` is read only by who knows transaction 134 as committed."""
    directory = copied(COMPACTED, left / "t")
    for path in directory.iterdir():
        if not path.name.startswith("base_"):
            shutil.rmtree(path)
    carry_out(planned(directory), store)
    assert len(ids(store)) > 0


def test_the_next_write_and_transaction_have_new_numbers(store: LocalStore, left: Path) -> None:
    carry_out(planned(copied(COMPACTED, left / "t")), store)
    txn_id = open_txn(store.metastore)
    assert txn_id > 134
    assert write_id(store.metastore, txn_id, "d") == 11


def test_given_aborted_writes_stay_unseen(store: LocalStore, left: Path) -> None:
    """Without the list even a base that was aborted counts: it would hide what is below it."""
    carry_out(planned(copied(ABORTS, left / "t")), store)
    plan = planned(copied(ABORTS, left / "u"), "u", valid_write_ids=ABORTED, is_open_aborted=True)
    carry_out(plan, store)
    assert ids(store, "u") == [1, 2, 3, 4, 5, 6]
    assert ids(store) != ids(store, "u")
    (found,) = store.metastore.get_valid_write_ids(["d.u"], current_snapshot(store.metastore))
    assert (found.open_ids, found.aborted_ids) == ((), (2, 4, 5, 7, 8, 10, 11))


def test_aborted_rows_are_queued_for_compaction_where_they_are(
    store: LocalStore, left: Path
) -> None:
    given = ValidWriteIdList.parse("g.t:6:9223372036854775807::6")
    plan = planned(copied(PARTITIONED, left / "t"), valid_write_ids=given)
    carry_out(plan, store)
    queued = store.metastore.show_compactions(ShowCompactionsRequest())
    assert [one.target.partition for one in queued] == list(plan.partitions_with_aborts)
    whole = planned(copied(ABORTS, left / "u"), "u", valid_write_ids=ABORTED, is_open_aborted=True)
    carry_out(whole, store)
    queued = store.metastore.show_compactions(ShowCompactionsRequest(scope=Scope(table="u")))
    assert [(one.target.partition, one.state.word) for one in queued] == [(None, "initiated")]


class QuickWorker(Passing):
    """A metastore with a worker that takes what is queued before the table is there."""

    def create_table(self, table: Table) -> None:
        while (entry := self.inner.find_next_compaction("w", "v")) is not None:
            self.inner.mark_refused(replace(entry, error_message="no such table"))
        self.inner.create_table(table)


def test_a_compaction_that_was_refused_too_early_is_queued_again(
    store: LocalStore, left: Path
) -> None:
    plan = planned(copied(ABORTS, left / "t"), valid_write_ids=ABORTED, is_open_aborted=True)
    adopt(plan, cast(Metastore, QuickWorker(store.metastore)), user="ann", host="here")
    found = store.metastore.show_compactions(ShowCompactionsRequest())
    assert [one.state.word for one in found] == ["initiated", "refused"]


@pytest.mark.parametrize("is_aborted", [True, False])
def test_compactions_with_the_number_of_a_transaction_here_are_refused(
    store: LocalStore, left: Path, is_aborted: bool
) -> None:
    metastore = store.metastore
    metastore.seed_txn_id(TxnId(134))
    txn_id = open_txn(metastore)
    assert txn_id == 134
    if is_aborted:
        # It has written, so it is remembered.
        write_id(metastore, txn_id, "x", "x")
        abort(metastore, txn_id)
    plan = planned(copied(COMPACTED, left / "t"))
    with pytest.raises(InvalidOperationError, match="compaction transaction 134.*new metastore"):
        carry_out(plan, store)
    with pytest.raises(NoSuchObjectError):
        metastore.get_database("d")


def test_a_name_is_adopted_once(store: LocalStore, left: Path) -> None:
    plan = planned(copied(PLAIN, left / "t"))
    carry_out(plan, store)
    with pytest.raises(AlreadyExistsError, match=r"d\.t is adopted already, from file:.*left/t"):
        carry_out(plan, store)
    other = planned(copied(PLAIN, left / "u"))
    with pytest.raises(AlreadyExistsError, match=r"d\.t is there already.*choose another name"):
        carry_out(other, store)


@pytest.mark.parametrize("place", ["t", "."])
def test_a_directory_has_one_table(store: LocalStore, left: Path, place: str) -> None:
    """Two tables over the same files would clean away each other's rows (I1)."""
    directory = copied(PLAIN, left / "t")
    carry_out(planned(directory), store)
    if place == ".":
        shutil.copytree(
            directory / "delta_0000001_0000001_0000", left / "delta_0000001_0000001_0000"
        )
    with pytest.raises(AlreadyExistsError, match=r"belongs to d\.t.*would lose rows"):
        carry_out(planned(left / place, "other"), store)


def test_write_ids_of_an_earlier_table_are_noticed(store: LocalStore, left: Path) -> None:
    write_id(store.metastore, open_txn(store.metastore), "d")
    with pytest.raises(InvalidOperationError, match=r"other write ids for d\.t"):
        carry_out(planned(copied(PLAIN, left / "t")), store)


def _cut_power() -> None:
    raise KeyboardInterrupt


CALLS = (
    "seed_txn_id", "open_txns", "commit_txn", "create_database", "repl_table_write_id_state",
    "create_table", "add_partitions",
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_what_was_interrupted_is_completed(store: LocalStore, left: Path, call: str) -> None:
    plan = planned(copied(PARTITIONED, left / "t"), partition_types={"b": "int"})
    with pytest.raises(KeyboardInterrupt):
        cut_off: Any = Interrupted(store.metastore, _cut_power, before=call)
        adopt(plan, cut_off, user="ann", host="here")
    carry_out(plan, store)
    assert len(store.metastore.get_partition_names("d", "t")) == 11
    assert len(ids(store)) > 0
    with pytest.raises(AlreadyExistsError):
        carry_out(plan, store)


def test_an_empty_table_needs_its_columns(store: LocalStore, left: Path) -> None:
    base = left / "t" / "base_0000004_v0000009"
    base.mkdir(parents=True)
    (base / "_orc_acid_version").write_text("2")
    with pytest.raises(AcidFormatError, match="no data file names the columns; give --columns"):
        planned(left / "t")
    carry_out(planned(left / "t", columns=(Column(name="id", type="int"),)), store)
    assert ids(store) == []


def test_partitions_with_originals_only_are_found(store: LocalStore, left: Path) -> None:
    """Of a table that was converted, partitions may have no delta yet."""
    directory = copied(PARTITIONED, left / "t")
    files = acid_goldens() / "g06b_converted_only" / "00-converted" / "files"
    (original, *_) = sorted(path for path in files.rglob("*") if path.is_file())
    (directory / "a=converted" / "b=9").mkdir(parents=True)
    shutil.copy(original, directory / "a=converted" / "b=9" / "000000_0")
    (directory / "a=nothing" / "b=9").mkdir(parents=True)
    plan = planned(directory, partition_types={"b": "int"})
    carry_out(plan, store)
    names = set(store.metastore.get_partition_names("d", "t"))
    assert {"a=converted/b=9", "a=nothing/b=9"} <= names
    assert len(names) == 13


def test_a_mixed_directory_is_refused(left: Path) -> None:
    directory = copied(PARTITIONED, left / "t")
    copied(PLAIN, left / "u")
    shutil.copytree(left / "u" / "delta_0000001_0000001_0000", directory / "delta_0000001_0000001")
    with pytest.raises(AcidFormatError, match="holds partitions .* and data of its own"):
        planned(directory)


def test_junk_is_reported_and_left(store: LocalStore, left: Path) -> None:
    directory = copied(PARTITIONED, left / "t")
    junk = [
        directory / "README.txt", directory / "a=x" / "notes.csv",
        directory / "a=x" / "b=1" / "part-0.parquet",
    ]  # fmt: skip
    for path in junk:
        path.write_text("junk")
    (directory / "_SUCCESS").touch()
    plan = planned(directory, partition_types={"b": "int"})
    (told,) = [text for text in plan.warnings if "none of the ACID format" in text]
    for path in junk:
        assert path.name in told
    assert "_SUCCESS" not in told
    before = ids_of_files(directory)
    carry_out(plan, store)
    assert ids_of_files(directory) == before
    assert len(ids(store)) > 0


def ids_of_files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_junk_in_a_delta_is_not_asked_for_columns(left: Path) -> None:
    directory = copied(PLAIN, left / "t")
    (directory / "delta_0000007_0000007_0001" / "zzz.txt").write_text("junk")
    plan = planned(directory)
    assert [column.name for column in plan.table.storage.columns] == ["id", "name", "amt"]
    assert any("zzz.txt" in text for text in plan.warnings)


def test_a_broken_file_is_named(left: Path) -> None:
    directory = copied(PLAIN, left / "t")
    broken = directory / "delta_0000007_0000007_0001" / "bucket_00000_0"
    broken.write_text("no ORC at all, but long enough to be looked at")
    with pytest.raises(NotOrcError, match=f"{broken}: this is no ORC file: .*restore it") as caught:
        planned(directory)
    assert caught.value.path == str(broken)


def test_the_plan_in_words(left: Path) -> None:
    plan = planned(copied(PARTITIONED, left / "t"), partition_types={"b": "int"})
    assert describe(plan) == {
        "table": "d.t",
        "location": str(left / "t"),
        "columns": "id int, v string",
        "partition columns": "a string, b int",
        "partitions": 11,
        "write ids": "d.t:6:9223372036854775807::",
        "compaction transactions": [352, 354],
        "to compact": [],
    }


def dropped(store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of a table whose DROP was committed; its process died before the files went."""
    place = tmp_path / "warehouse" / "d.db" / "t"
    place.parent.mkdir(parents=True)
    copied(PLAIN, place)
    carry_out(planned(place), store)
    with monkeypatch.context() as patched:
        patched.setattr(FileWork, "carry_out", lambda *_: None)
        store.metastore.drop_database("d", is_cascade=True)
    return place


def test_a_table_whose_drop_is_not_carried_out_yet_is_saved(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = dropped(store, monkeypatch, tmp_path)
    before = {path for path in place.rglob("*") if path.is_file()}
    carry_out(planned(place), store)
    store.metastore.run_housekeeping()
    assert before and {path for path in place.rglob("*") if path.is_file()} == before
    assert KEEP_FILES not in store.metastore.get_table("d", "t").parameters
    assert ids(store)
    store.metastore.drop_table("d", "t")
    assert not place.exists()


def test_a_table_of_which_files_are_deleted_already_is_not_adopted(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = dropped(store, monkeypatch, tmp_path)
    first, *others = sorted(path for path in place.rglob("bucket_*") if path.is_file())
    plan = planned(place)
    first.unlink()
    with pytest.raises(MetaError, match=r"its deletion has begun: .* copy what is there elsewhere"):
        carry_out(plan, store)
    assert all(path.exists() for path in others)
