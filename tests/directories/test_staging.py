"""What dead writers left: removed, and nothing of those who may be alive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from changemanager.filesystem.opening import open_volume
from changemanager.filesystem.volume import Volume
from hms_bridge.directories.staging import forget_dead_temporaries
from hms_bridge.model.ids import TxnId
from hms_bridge.model.valid_ids import ValidTxnList

ROOT = "/staging-test/t"
TXNS = ValidTxnList(high_watermark=TxnId(9), open_ids=(TxnId(5),), aborted_ids=(TxnId(6),))


@pytest.fixture
def volume() -> Iterator[Volume]:
    found = open_volume("memory", "")
    yield found
    if found.status("/staging-test") is not None:
        found.remove_tree("/staging-test")


def test_only_those_of_closed_transactions_go(volume: Volume) -> None:
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
        volume.write_new(f"{ROOT}/{name}/insert_0/bucket_00000", [b"rows"])
    removed = forget_dead_temporaries(volume, ROOT, TXNS)
    kept = {status.name for status in volume.children(ROOT)}
    assert kept == {name for name, is_kept in names.items() if is_kept}
    assert set(removed) == names.keys() - kept


def test_a_root_that_is_not_there(volume: Volume) -> None:
    assert forget_dead_temporaries(volume, "/staging-test/nothing", TXNS) == ()
