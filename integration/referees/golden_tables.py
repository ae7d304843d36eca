"""Puts tables that a real Hive wrote into a metastore: readers see the snapshot that Hive read."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hms_bridge.acid.names import DirectoryName
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column, Database, Partition, SerDe, Storage, Table
from hms_bridge.model.ids import TxnId
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from tests.support.golden import GoldenStage

LAST_TXN = TxnId(10_000)
"""Above all of the goldens': transactions of compactions count as committed."""


def golden_table_name(stage: GoldenStage) -> str:
    """Of a stage, for a metastore."""
    return str(stage).replace("/", "_").replace("-", "_").lower()


def put_golden_tables(
    metastore: Metastore, stages: Iterable[GoldenStage], database: str, folder: Path
) -> None:
    """A table for each stage, below a folder, with as many write ids, of which the same are open or
    aborted."""
    metastore.seed_txn_id(LAST_TXN)
    for stage in stages:
        invalid = {*stage.txns.open_ids, *stage.txns.aborted_ids}
        assert not invalid & _compactions(stage), stage
        _put(metastore, stage, database, folder / golden_table_name(stage))


def copy_definitions(metastore: Metastore, database: str, copy: str) -> None:
    """The same tables without rows, below the other database's place."""
    metastore.create_database(Database(name=copy))
    for name in metastore.get_tables(database):
        table = metastore.get_table(database, name)
        storage = replace(table.storage, location=None)
        metastore.create_table(replace(table, database_name=copy, storage=storage))


def _put(metastore: Metastore, stage: GoldenStage, database: str, folder: Path) -> None:
    definition = stage.state["metastore_table"]
    columns = tuple(Column(name=name, type=kind) for name, kind in definition["columns"])
    keys = tuple(Column(name=name, type=kind) for name, kind in definition["partition_columns"])

    def storage(place: Path) -> Storage:
        return Storage(
            columns=columns,
            location=f"file:{place}",
            input_format=definition["input_format"],
            output_format="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
            serde=SerDe(library=definition["serde"], parameters={}),
            bucket_count=definition["num_buckets"],
            bucket_columns=tuple(definition["bucket_columns"]),
        )

    kept = ("transactional", "transactional_properties", "bucketing_version")
    parameters = {key: definition["parameters"].get(key) for key in kept}
    name = golden_table_name(stage)
    metastore.create_table(
        Table(
            name=name,
            database_name=database,
            owner="hive",
            storage=storage(folder),
            partition_columns=keys,
            parameters={key: value for key, value in parameters.items() if value is not None},
            type="MANAGED_TABLE",
        )
    )
    shutil.copytree(stage.files, folder, dirs_exist_ok=True)
    if keys:
        metastore.add_partitions(
            database,
            name,
            [
                Partition(
                    database_name=database,
                    table_name=name,
                    values=tuple(value for _, value in parse_partition_name(path)),
                    storage=storage(folder / path),
                )
                for path in stage.partitions
                if path is not None
            ],
        )
    _write_ids(metastore, stage, database, name)


def _write_ids(metastore: Metastore, stage: GoldenStage, database: str, name: str) -> None:
    given = stage.write_ids
    count = int(given.high_watermark)
    if not {*given.open_ids, *given.aborted_ids}:
        metastore.seed_write_id(database, name, given.high_watermark)
        return
    txns = metastore.open_txns(OpenTxnsRequest(count=count, user="hive", host="here"))
    metastore.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name=database, table_name=name, txn_ids=txns)
    )
    aborted = [txns[write_id - 1] for write_id in given.aborted_ids if write_id <= count]
    opened = {txns[write_id - 1] for write_id in given.open_ids if write_id <= count}
    if aborted:
        metastore.abort_txns(aborted)
    for txn_id in sorted({*txns} - {*aborted} - opened):
        metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))


def _compactions(stage: GoldenStage) -> set[TxnId]:
    """Transactions of which the names of directories tell."""
    names = (
        DirectoryName.parse(part)
        for entry in stage.state["files"]
        for part in entry["path"].split("/")[:-1]
    )
    return {name.visibility_txn_id for name in names if name and name.visibility_txn_id}
