"""A scan takes all files that can hold rows, or tells which one it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.connect import LocalStore
from hms_bridge.model.catalog import Column, Storage, Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.scan import plan_scan
from tests.support.world import World


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return World(tmp_path).store


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
