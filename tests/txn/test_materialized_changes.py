"""What a materialized view has missed: by that its rebuild takes the new rows only, or all of them
(Hive: GetMaterializationInvalidationInfoFunction)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import CreationMetadata
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.materialization import MaterializationChanges
from hms_bridge.model.valid_ids import ValidTxnWriteIdList
from tests.support.txns import Txns
from tests.support.world import World

NONE = MaterializationChanges()
INSERT, UPDATE = DataOperation.INSERT, DataOperation.UPDATE


def made_now(txns: Txns) -> CreationMetadata:
    """Of a view that reads db.t, as it is."""
    snapshot = ValidTxnWriteIdList(txn_id=txns.snapshot().high_watermark, lists=(txns.valid(),))
    return CreationMetadata(
        database_name="db",
        table_name="view",
        table_names=frozenset({"db.t"}),
        snapshot=snapshot.format(),
    )


def changes(world: World, txns: Txns, creation: CreationMetadata) -> MaterializationChanges | None:
    return world.metastore.get_materialization_changes(creation, txns.snapshot())


def write(txns: Txns, operation: DataOperation) -> TxnId:
    txn_id, _ = txns.write(operation)
    txns.commit(txn_id)
    return txn_id


@pytest.mark.parametrize("text", ["[" * 50_000, "9" * 5000], ids=["deep", "long number"])
def test_what_a_view_saw_may_be_no_text_of_any_kind(world: World, txns: Txns, text: str) -> None:
    creation = replace(made_now(txns), snapshot=text)
    with pytest.raises(MetaError, match="malformed"):
        changes(world, txns, creation)


def test_new_rows_alone_are_no_change_of_old_ones(world: World, txns: Txns) -> None:
    write(txns, UPDATE)
    creation = made_now(txns)
    write(txns, INSERT)
    assert changes(world, txns, creation) == NONE
    write(txns, UPDATE)
    assert changes(world, txns, creation) == MaterializationChanges(has_updates_or_deletes=True)


def test_a_view_whose_lowest_open_write_has_ended_is_made_anew(world: World, txns: Txns) -> None:
    """What an update or delete left may be forgotten by then: nobody knows what it was."""
    slow, _ = txns.write(INSERT)
    slower, _ = txns.write(INSERT)
    write(txns, INSERT)
    creation = made_now(txns)
    txns.commit(slower)
    assert changes(world, txns, creation) == NONE, "the lowest is open as before"
    txns.commit(slow)
    assert changes(world, txns, creation) is None


def test_a_write_that_is_open_now_and_was_not_counts_too(world: World, txns: Txns) -> None:
    creation = made_now(txns)
    txns.write(UPDATE)
    write(txns, INSERT)
    assert changes(world, txns, creation) is None
