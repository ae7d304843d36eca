"""Files and bytes that the service counts itself, as Hive's metastore does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.config.settings import EventSettings
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.catalog import Column, Partition, Storage, Table
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.properties import DO_NOT_UPDATE, ERASURE_CODED_COUNT, FILE_BYTES, FILE_COUNT
from hms_bridge.model.statistics_state import ACCURATE
from hms_bridge.service.file_statistics import COUNTED
from tests.support.world import World

TRUSTED = '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}'
MM = "insert_only"
OF_TASK = {"STATS_GENERATED": "TASK"}


@pytest.fixture
def metastore(tmp_path: Path) -> LocalMetastore:
    return World(tmp_path, database="d").metastore


def _table(tmp_path: Path, **given: object) -> Table:
    place = tmp_path / "place"
    values: dict[str, object] = {
        "name": "t",
        "database_name": "d",
        "storage": Storage(
            columns=(Column(name="id", type="int"),), location=place.as_uri(), input_format="i"
        ),
    } | given
    return Table(**values)  # type: ignore[arg-type]


def _write_files(folder: Path) -> None:
    delta = folder / "delta_0000001_0000001_0000"
    delta.mkdir(parents=True)
    (delta / "bucket_00000").write_bytes(b"12345")
    (delta / "_orc_acid_version").write_bytes(b"2")
    (folder / ".staging").mkdir()
    (folder / ".staging" / "file").write_bytes(b"12")
    (folder / "file").write_bytes(b"123")


def _counted(parameters: object) -> dict[str, str]:
    assert isinstance(parameters, dict)
    return {name: value for name, value in parameters.items() if name in COUNTED}


BOTH = {FILE_COUNT: "2", FILE_BYTES: "8", ERASURE_CODED_COUNT: "0"}


def test_a_table_made_over_files_is_counted(metastore: LocalMetastore, tmp_path: Path) -> None:
    _write_files(tmp_path / "place")
    metastore.create_table(_table(tmp_path, parameters={ACCURATE: TRUSTED}))
    made = metastore.get_table("d", "t")
    assert _counted(made.parameters) == BOTH
    assert ACCURATE not in made.parameters


@pytest.mark.parametrize(
    "given",
    [
        {"parameters": {DO_NOT_UPDATE: "true"}},
        {"parameters": {}, "partition_columns": (Column(name="p", type="int"),)},
    ],
)
def test_a_table_is_not_always_counted(
    metastore: LocalMetastore, tmp_path: Path, given: dict[str, object]
) -> None:
    _write_files(tmp_path / "place")
    metastore.create_table(_table(tmp_path, **given))
    parameters = metastore.get_table("d", "t").parameters
    assert _counted(parameters) == {}
    assert DO_NOT_UPDATE not in parameters


def test_a_new_directory_has_no_files(metastore: LocalMetastore, tmp_path: Path) -> None:
    metastore.create_table(_table(tmp_path))
    parameters = metastore.get_table("d", "t").parameters
    assert _counted(parameters) == dict.fromkeys(COUNTED, "0")
    assert ACCURATE not in parameters


@pytest.mark.parametrize("has_files", [True, False])
def test_a_new_table_without_files_is_known_completely(
    metastore: LocalMetastore, tmp_path: Path, has_files: bool
) -> None:
    """As Hive 4.2 asks for it in CREATE TABLE: nothing can be wrong about no rows."""
    if has_files:
        _write_files(tmp_path / "place")
    metastore.create_table(_table(tmp_path), trusted_columns=["id"])
    parameters = metastore.get_table("d", "t").parameters
    assert parameters.get(ACCURATE) == (None if has_files else TRUSTED)
    assert parameters.get("numRows") == (None if has_files else "0")
    assert _counted(parameters) == (BOTH if has_files else dict.fromkeys(COUNTED, "0"))


def test_a_changed_table_is_counted_again(metastore: LocalMetastore, tmp_path: Path) -> None:
    metastore.create_table(_table(tmp_path), trusted_columns=["id"])
    _write_files(tmp_path / "place")
    made = metastore.get_table("d", "t")
    metastore.alter_table("d", "t", made, environment={DO_NOT_UPDATE: "true"})
    assert metastore.get_table("d", "t").parameters == made.parameters
    metastore.alter_table("d", "t", made, environment=OF_TASK)
    counted = metastore.get_table("d", "t").parameters
    assert _counted(counted) == BOTH
    assert counted[ACCURATE] == TRUSTED
    metastore.alter_table("d", "t", replace(made, storage=replace(made.storage, location=None)))
    counted = metastore.get_table("d", "t").parameters
    assert _counted(counted) == BOTH
    assert ACCURATE not in counted


@pytest.mark.parametrize("known", [None, "no JSON", "[]"])
def test_trust_that_cannot_be_read_begins_anew(
    metastore: LocalMetastore, tmp_path: Path, known: str | None
) -> None:
    metastore.create_table(_table(tmp_path))
    made = metastore.get_table("d", "t")
    given = {} if known is None else {ACCURATE: known}
    metastore.alter_table("d", "t", replace(made, parameters=given), environment=OF_TASK)
    assert metastore.get_table("d", "t").parameters[ACCURATE] == '{"BASIC_STATS":"true"}'


def test_a_table_whose_files_cannot_be_reached_is_changed_all_the_same(
    metastore: LocalMetastore, tmp_path: Path
) -> None:
    metastore.create_table(_table(tmp_path))
    made = metastore.get_table("d", "t")
    away = replace(made, storage=replace(made.storage, location="nowhere://host/t"))
    metastore.alter_table("d", "t", replace(away, parameters={"k": "v"}))
    parameters = metastore.get_table("d", "t").parameters
    assert (parameters["k"], _counted(parameters)) == ("v", {})


def _partitioned(metastore: LocalMetastore, tmp_path: Path, **parameters: str) -> Partition:
    columns = (Column(name="p", type="int"),)
    metastore.create_table(_table(tmp_path, partition_columns=columns, parameters=parameters))
    _write_files(tmp_path / "place" / "p=1")
    partition = Partition(values=("1",), database_name="d", table_name="t")
    (added,) = metastore.add_partitions("d", "t", [partition])
    return added


def test_a_partition_added_over_files_is_counted(metastore: LocalMetastore, tmp_path: Path) -> None:
    added = _partitioned(metastore, tmp_path, transactional="true", transactional_properties=MM)
    assert _counted(added.parameters) == BOTH


def test_a_changed_partition_is_counted_if_it_has_no_count(
    metastore: LocalMetastore, tmp_path: Path
) -> None:
    added = _partitioned(metastore, tmp_path, EXTERNAL="TRUE")
    (tmp_path / "place" / "p=1" / "more").write_bytes(b"1")
    trusted = replace(added, parameters={**added.parameters, ACCURATE: TRUSTED})
    metastore.alter_partitions("d", "t", [trusted], environment=OF_TASK)
    same = metastore.get_partition("d", "t", ["1"])
    assert _counted(same.parameters) == BOTH
    assert same.parameters[ACCURATE] == TRUSTED
    metastore.alter_partitions("d", "t", [replace(same, parameters={"k": "v"})])
    counted = metastore.get_partition("d", "t", ["1"]).parameters
    assert _counted(counted) == BOTH | {FILE_COUNT: "3", FILE_BYTES: "9"}


def test_changed_partitions_of_transactional_tables_are_not_counted(
    metastore: LocalMetastore, tmp_path: Path
) -> None:
    added = _partitioned(metastore, tmp_path, transactional="true", transactional_properties=MM)
    metastore.alter_partitions("d", "t", [replace(added, parameters={"k": "v"})])
    assert _counted(metastore.get_partition("d", "t", ["1"]).parameters) == {}


@pytest.mark.parametrize("is_one_event", [True, False])
def test_which_event_a_change_of_partitions_is_can_be_set(
    tmp_path: Path, is_one_event: bool
) -> None:
    events = EventSettings(is_alter_partitions_one_event=is_one_event)
    service = World(tmp_path, database="d", events=events).metastore
    added = _partitioned(service, tmp_path, EXTERNAL="TRUE")
    last = service.get_current_event_id()
    service.alter_partitions("d", "t", [added])
    (event,) = service.get_next_notification(NotificationRequest(last_event_id=last))
    assert event.type == ("ALTER_PARTITIONS" if is_one_event else "ALTER_PARTITION")
