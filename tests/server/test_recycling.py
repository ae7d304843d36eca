"""HiveServer2 has files archived before it removes them (INSERT OVERWRITE, LOAD DATA OVERWRITE)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.config.settings import ArchiveSettings
from hms_bridge.errors import InvalidOperationError, MetastoreError
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.wire.structs import hive
from tests.conformance.objects import partition
from tests.support.installation import Installation
from tests.support.served_metastore import ServedMetastore, served_metastore

STORAGE = Storage(columns=(Column(name="a", type="int"),))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """A replication source with a file in its table t, and one in partition p=1 of its table p."""
    with served_metastore(tmp_path, location_roots=()) as served:
        source = Database(name="db", parameters={"repl.source.for": "policy"})
        served.metastore.create_database(source)
        keys = (Column(name="p", type="string"),)
        for table in (
            Table(name="t", database_name="db", storage=STORAGE),
            Table(name="p", database_name="db", storage=STORAGE, partition_columns=keys),
        ):
            served.metastore.create_table(table)
        served.metastore.add_partitions("db", "p", [partition("db", "p", "1")])
        for place in ("t", "p/p=1"):
            folder = served.warehouse / "db.db" / place
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "rows").write_bytes(place.encode())
        yield served


def _recycle(served: ServedMetastore, place: str) -> None:
    request = hive.CmRecycleRequest(dataPath=f"file:{served.warehouse}/{place}", purge=False)
    assert served.call("cm_recycle", request=request) == hive.CmRecycleResponse()


def _archived(served: ServedMetastore) -> list[bytes]:
    root = served.warehouse.parent / "cmroot"
    return sorted(path.read_bytes() for path in root.rglob("rows_*"))


def test_files_are_archived_and_stay_for_the_client(served: ServedMetastore) -> None:
    for _ in range(2):
        _recycle(served, "db.db/t")
    assert _archived(served) == [b"t"]
    assert (served.warehouse / "db.db/t/rows").exists()
    _recycle(served, "db.db/p/p=1")
    assert _archived(served) == [b"p/p=1", b"t"]
    _recycle(served, "db.db/t/none")


def test_what_is_no_tables_is_not_archived(served: ServedMetastore) -> None:
    (served.warehouse.parent / "secrets").mkdir()
    (served.warehouse.parent / "secrets" / "rows").write_bytes(b"s")
    for place in ("../secrets", "db.db", "", "db.db/t/../../../secrets"):
        with pytest.raises(MetastoreError):
            _recycle(served, place)
    assert _archived(served) == []


def test_nor_is_what_a_client_gave_a_table_elsewhere(served: ServedMetastore) -> None:
    """Its files would be copied to where others may read them."""
    secrets = served.warehouse.parent / "secrets"
    secrets.mkdir()
    (secrets / "rows").write_bytes(b"s")
    table = Table(
        name="elsewhere", database_name="db", storage=replace(STORAGE, location=secrets.as_uri()),
        type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"},
    )  # fmt: skip
    served.metastore.create_table(table)
    request = hive.CmRecycleRequest(dataPath=secrets.as_uri(), purge=False)
    with pytest.raises(MetastoreError, match=r"name a directory above it in hms\.bridge\.location"):
        served.call("cm_recycle", request=request)
    assert _archived(served) == []


def test_what_cannot_be_archived_must_not_be_removed(served: ServedMetastore) -> None:
    (served.warehouse.parent / "cmroot").mkdir(exist_ok=True)
    (served.warehouse / "db.db/t/rows").unlink()
    (served.warehouse / "db.db/t/rows").symlink_to(served.warehouse / "gone")
    with pytest.raises(MetastoreError, match="cannot be archived"):
        _recycle(served, "db.db/t")


def test_without_an_archive_files_of_a_replication_source_must_stay(tmp_path: Path) -> None:
    """Hive says yes whatever its settings are, and its client removes them."""
    world = Installation(tmp_path, archive=ArchiveSettings(is_enabled=False))
    for name, parameters in (("plain", {}), ("source", {"repl.source.for": "policy"})):
        world.metastore.create_database(Database(name=name, parameters=parameters))
        world.metastore.create_table(Table(name="t", database_name=name, storage=STORAGE))
    world.metastore.recycle_directory(f"file:{world.warehouse}/plain.db/t")
    world.metastore.recycle_directory("file:/none")
    with pytest.raises(InvalidOperationError, match="the ChangeManager is off"):
        world.metastore.recycle_directory(f"file:{world.warehouse}/source.db/t")
    world.close()
