"""TRUNCATE: what becomes of files, statistics and the notification log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hms_bridge.errors import InvalidOperationError, MetaError, NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.catalog import Table, TableType
from hms_bridge.model.ids import WriteId
from tests.conformance.objects import (
    DS,
    abort,
    events_after,
    new_database,
    new_table,
    partition,
    write,
)
from tests.support.event_messages import read_message
from tests.support.world import World

PLAIN = {"EXTERNAL": "TRUE"}
TRUNCATED = b'{"thisFileVersion":"0","dataFormat":"truncated"}'


@pytest.fixture
def metastore(tmp_path: Path) -> LocalMetastore:
    return World(tmp_path).metastore


def _folder(location: str | None) -> Path:
    assert location is not None
    return Path(location.removeprefix("file://").removeprefix("file:"))


def _plain(metastore: LocalMetastore, database: str, **given: object) -> Table:
    made = new_table(
        metastore, database, parameters=PLAIN, type=TableType.EXTERNAL_TABLE.value, **given
    )
    folder = _folder(made.storage.location)
    (folder / "sub").mkdir()
    (folder / "sub" / "a").write_bytes(b"1")
    (folder / "b").write_bytes(b"2")
    (folder / "_hidden").write_bytes(b"3")
    return made


def test_a_transactional_table_gets_an_empty_base(metastore: LocalMetastore) -> None:
    name = new_database(metastore)
    made = new_table(metastore, name, parameters={"transactional": "true", "numRows": "5"})
    folder = _folder(made.storage.location)
    (folder / "delta_0000001_0000001_0000").mkdir()
    _, given = write(metastore, name)
    last = metastore.get_current_event_id()
    for is_data_deleted in (False, True):
        metastore.truncate_table(name, "t", write_id=given, is_data_deleted=is_data_deleted)
    assert (folder / "base_0000001" / "_metadata_acid").read_bytes() == TRUNCATED
    assert sorted(one.name for one in folder.iterdir()) == [
        "base_0000001", "delta_0000001_0000001_0000",
    ]  # fmt: skip
    after = metastore.get_table(name, "t")
    assert (after.parameters["numRows"], after.write_id) == ("0", given)
    assert after.parameters["COLUMN_STATS_ACCURATE"] == '{"BASIC_STATS":"true"}'
    event = events_after(metastore, last)[0]
    message = read_message(event)
    assert (event.type, message["isTruncateOp"], message["writeId"]) == (
        "ALTER_TABLE", "true", given,
    )  # fmt: skip
    assert message["tableObjBeforeJson"] == message["tableObjAfterJson"]


@pytest.mark.parametrize("given", [None, WriteId(-1), WriteId(1), WriteId(9)])
def test_a_transactional_table_needs_the_write_id_of_an_open_transaction(
    metastore: LocalMetastore, given: WriteId | None
) -> None:
    name = new_database(metastore)
    made = new_table(metastore, name)
    txn, _ = write(metastore, name)
    abort(metastore, txn)
    with pytest.raises(InvalidOperationError, match="no write id of an open transaction"):
        metastore.truncate_table(name, "t", write_id=given)
    assert list(_folder(made.storage.location).iterdir()) == []


def test_another_table_loses_its_files(metastore: LocalMetastore) -> None:
    name = new_database(metastore)
    made = _plain(metastore, name)
    metastore.truncate_table(name, "t", is_data_deleted=False)
    assert len(list(_folder(made.storage.location).iterdir())) == 3
    metastore.truncate_table(name, "t")
    assert [one.name for one in _folder(made.storage.location).iterdir()] == ["_hidden"]


def test_files_of_a_replication_source_are_archived_first(
    metastore: LocalMetastore, tmp_path: Path
) -> None:
    name = new_database(metastore, parameters={"repl.source.for": "p1"})
    _plain(metastore, name)
    metastore.truncate_table(name, "t")
    kept = sorted(one.name.partition("_")[0] for one in (tmp_path / "cmroot").iterdir())
    assert {"a", "b"} <= set(kept)


def test_only_the_named_partitions_are_emptied(metastore: LocalMetastore) -> None:
    name = new_database(metastore)
    new_table(metastore, name, partition_columns=DS)
    metastore.add_partitions(name, "t", [partition(name, "t", v) for v in ("a", "b")])
    _, given = write(metastore, name)
    last = metastore.get_current_event_id()
    metastore.truncate_table(name, "t", ["ds=a"], write_id=given, is_data_deleted=False)
    emptied, left = (metastore.get_partition(name, "t", [v]) for v in ("a", "b"))
    assert (_folder(emptied.storage.location) / "base_0000001").is_dir()
    assert not (_folder(left.storage.location) / "base_0000001").exists()
    (event,) = events_after(metastore, last)
    message = read_message(event)
    assert (event.type, message["isTruncateOp"], message["writeId"], message["partitions"]) == (
        "ALTER_PARTITIONS", "true", given, [{"ds": "a"}],
    )  # fmt: skip
    assert json.loads(message["partitionListJson"][0])["10"] == {"i64": given}
    metastore.truncate_table(name, "t", [], write_id=given, is_data_deleted=False)
    metastore.truncate_table(name, "t", write_id=given, is_data_deleted=False)
    assert (_folder(left.storage.location) / "base_0000001").is_dir()


def test_views_and_unknown_tables_are_refused(metastore: LocalMetastore) -> None:
    name = new_database(metastore)
    new_table(metastore, name, "v", type=TableType.VIRTUAL_VIEW.value, parameters={})
    with pytest.raises(InvalidOperationError, match="is a view"):
        metastore.truncate_table(name, "v")
    with pytest.raises(NoSuchObjectError):
        metastore.truncate_table(name, "t")


def test_a_place_that_cannot_be_written_is_told(metastore: LocalMetastore) -> None:
    name = new_database(metastore)
    made = new_table(metastore, name)
    _, given = write(metastore, name)
    folder = _folder(made.storage.location)
    folder.rmdir()
    folder.write_bytes(b"a file")
    with pytest.raises(MetaError, match="cannot be truncated"):
        metastore.truncate_table(name, "t", write_id=given)
