"""What dead writers left: removed, and nothing of those who may be alive."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest

from hms_bridge.model.ids import TxnId
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.rows.staging import forget_dead_temporaries

ROOT = "/staging-test/t"
TXNS = ValidTxnList.from_open_txns(TxnId(9), [TxnId(5), TxnId(6)], [False, True])


@pytest.fixture
def fs() -> Any:
    found = fsspec.filesystem("memory")
    yield found
    found.rm("/staging-test", recursive=True)


def test_only_those_of_closed_transactions_go(fs: Any) -> None:
    names = {
        "_tmp_write_v0000003": False,  # committed
        "_tmp_compaction_v0000004": False,
        "_tmp_write_v0000005": True,  # open
        "_tmp_write_v0000006": False,  # aborted
        "_tmp_write_v0000010": True,  # began after the look
        "_tmp_other_v0000003": True,
        "_tmp_write_v0000003.txt": True,
        "delta_0000003_0000003_0000": True,
    }
    for name in names:
        fs.pipe_file(f"{ROOT}/{name}/insert_0/bucket_00000", b"rows")
    removed = forget_dead_temporaries(fs, ROOT, TXNS)
    kept = {path.rpartition("/")[2] for path in fs.ls(ROOT, detail=False)}
    assert kept == {name for name, is_kept in names.items() if is_kept}
    assert set(removed) == names.keys() - kept


def test_a_root_that_is_not_there(fs: Any) -> None:
    fs.mkdir("/staging-test")
    assert forget_dead_temporaries(fs, "/staging-test/nothing", TXNS) == ()
