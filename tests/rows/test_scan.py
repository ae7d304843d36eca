"""A scan takes all files that can hold rows, or tells which one it does not know."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.config.settings import Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.model.catalog import Column, Storage, Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.scan import plan_scan


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[LocalStore]:
    shutil.copy(empty_database, tmp_path / "m.db")
    settings = Settings(warehouse=f"{tmp_path}/wh")
    opened = open_local(f"sqlite:///{tmp_path}/m.db", settings, is_created=False)
    yield opened
    opened.metastore.close()


@pytest.mark.parametrize("path", ["part-00000.orc", "delta_0000001_0000001_0000/part-00000.orc"])
def test_a_file_of_an_unknown_name_is_told(
    store: LocalStore, tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "t"
    file = root / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"rows of somebody")
    (root / "_SUCCESS").write_bytes(b"")
    table = Table(
        name="t",
        database_name="default",
        storage=Storage(columns=(Column(name="a", type="int"),), location=str(root)),
        parameters={"transactional": "true"},
    )
    txns = ValidTxnList(high_watermark=TxnId(9))
    write_ids = ValidWriteIdList(table="default.t", high_watermark=WriteId(9))

    def scanned() -> int:
        return len(
            plan_scan(store.metastore, FsspecResolver(), table, txns=txns, write_ids=write_ids)
        )

    assert scanned() == 0
    (message,) = [record.getMessage() for record in caplog.records]
    assert f"default.t: no row is read from {file}," in message
    caplog.clear()
    file.unlink()
    assert (scanned(), caplog.records) == (0, [])
