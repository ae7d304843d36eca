"""``spark.read.format("hive_acid")``: one snapshot of a full ACID table.

The snapshot is held by the driver, for as long as a block lasts::

    with snapshot_options("thrift://host:9083", "sales.orders", client=client) as options:
        orders = spark.read.format("hive_acid").options(**options).load()
        ...

A frame is read within the block: after it, tasks refuse. Spark asks for the files of a frame once,
so a frame without a block around it would show one snapshot for ever, and nobody could tell when to
let go of it.

Options
  metastore, table, txn, valid_txns, valid_write_ids
                 what ``snapshot_options`` gives; needed
  columns        comma-separated columns to read, else all (Spark cannot prune a Python source)
  row_ids        ``true`` adds ``row__id struct<writeid,bucketid,rowid>`` and ``row__partition``
  webhdfs        HTTP addresses of HDFS clusters, as ``hms.bridge.webhdfs.addresses``; other
                 settings of Hadoop come from the driver's ``HADOOP_CONF_DIR``

The metastore is connected to by the settings of the driver's ``HMS_BRIDGE_CONFIG`` or
``HIVE_CONF_DIR``: what asks there for TLS or SASL stops the read.

Rows come as Arrow record batches, a stripe at a time. This needs Spark 4: PySpark 3.5 has no data
sources in Python, and :func:`hms_bridge.spark.scan.read_table` instead. Schema and partitions are
asked of a Python worker on the driver's host, which must have this package's dependencies, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from changemanager.hadoop import HadoopConfig
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.hive_site import read_hadoop_site
from hms_bridge.config.settings import Settings
from hms_bridge.config.values import parse_web_addresses
from hms_bridge.errors import DmlError, NoSuchTxnError, TxnAbortedError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column, Table
from hms_bridge.model.ids import TxnId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.scan import ScanSplit, plan_scan, read_scan_split
from hms_bridge.session.heartbeat import require_open
from hms_bridge.session.transaction import Client
from hms_bridge.spark.scan import (
    chosen_columns,
    frame_schema,
    open_table_snapshot,
    require_full_acid,
)

FORMAT = "hive_acid"
_SNAPSHOT = ("metastore", "table", "txn", "valid_txns", "valid_write_ids")
_FLAGS = {"true": True, "false": False}
_CHOICES = ("columns", "row_ids", "webhdfs")


def register(spark: SparkSession) -> None:
    """Make the format known to a session."""
    spark.dataSource.register(HiveAcidDataSource)


@contextmanager
def snapshot_options(
    metastore_url: str, table_name: str, *, client: Client
) -> Iterator[dict[str, str]]:
    """Options of the format for one snapshot of ``database.table``.

    Until the end of the block this process keeps its transaction alive, and the cleaner leaves what
    it reads (I3). Raises NoSuchObjectError, DmlError.
    """
    with (
        closing(_open(metastore_url)) as metastore,
        open_table_snapshot(metastore, table_name, client) as (transaction, table),
    ):
        yield {
            "metastore": metastore_url,
            "table": table.full_name,
            "txn": str(transaction.id),
            "valid_txns": transaction.txns.format(),
            "valid_write_ids": transaction.write_ids(table.full_name).format(),
        }


@dataclass(frozen=True, kw_only=True)
class AcidPartition(InputPartition):  # type: ignore[misc]
    """One task's share of a scan, and the transaction that protects its files."""

    split: ScanSplit
    columns: tuple[Column, ...]
    has_row_ids: bool
    metastore_url: str
    txn_id: TxnId


class HiveAcidDataSource(DataSource):  # type: ignore[misc]
    """The format."""

    @classmethod
    def name(cls) -> str:
        """``hive_acid``."""
        return FORMAT

    def schema(self) -> str:
        """Spark's words for the chosen columns. Raises DmlError for an unknown one."""
        request = ScanRequest.of(self.options)
        with closing(_open(request.metastore_url)) as metastore:
            columns = request.chosen(request.table(metastore))
        return frame_schema(columns, has_row_ids=request.has_row_ids)

    def reader(self, schema: StructType) -> AcidReader:  # noqa: ARG002
        """The scan."""
        return AcidReader(ScanRequest.of(self.options))


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """The options, checked."""

    metastore_url: str
    database_name: str
    table_name: str
    column_names: tuple[str, ...]
    has_row_ids: bool
    txn_id: TxnId
    txns: ValidTxnList
    write_ids: ValidWriteIdList
    hadoop: HadoopConfig

    @property
    def settings(self) -> Settings:
        """What a reader has to know of them."""
        return Settings(hadoop=self.hadoop)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ScanRequest:
        """Raises DmlError for an option that is missing, unknown or malformed."""
        _require_known(options)
        database, _, name = options["table"].lower().rpartition(".")
        wanted = options.get("columns", "").lower().split(",")
        try:
            return cls(
                metastore_url=options["metastore"],
                database_name=database or "default",
                table_name=name,
                column_names=tuple(name.strip() for name in wanted if name.strip()),
                has_row_ids=_FLAGS[options.get("row_ids", "false").lower()],
                txn_id=TxnId(int(options["txn"])),
                txns=ValidTxnList.parse(options["valid_txns"]),
                write_ids=ValidWriteIdList.parse(options["valid_write_ids"]),
                hadoop=_hadoop(options),
            )
        except (ValueError, KeyError) as error:
            raise DmlError(f'an option of format("{FORMAT}") is malformed: {error}') from error

    def table(self, metastore: Metastore) -> Table:
        """Raises NoSuchObjectError; DmlError for a table that is not full ACID."""
        table = metastore.get_table(self.database_name, self.table_name)
        require_full_acid(table)
        return table

    def chosen(self, table: Table) -> tuple[Column, ...]:
        """The columns to read, in the order asked. Raises DmlError for an unknown one."""
        return chosen_columns(table, self.column_names)


class AcidReader(DataSourceReader):  # type: ignore[misc]
    """Plans a scan, and reads its splits in Spark's tasks."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request

    def partitions(self) -> list[AcidPartition]:
        """One for each split of each partition of the table."""
        request = self._request
        with closing(_open(request.metastore_url)) as metastore:
            _require_open(metastore, request.txn_id)
            table = request.table(metastore)
            splits = plan_scan(
                metastore,
                file_systems(request.settings),
                table,
                txns=request.txns,
                write_ids=request.write_ids,
            )
            return [
                AcidPartition(
                    split=split,
                    columns=request.chosen(table),
                    has_row_ids=request.has_row_ids,
                    metastore_url=request.metastore_url,
                    txn_id=request.txn_id,
                )
                for split in splits
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split. Raises DmlError if its files are not protected any more.

        For a scan without splits PySpark makes up a partition of its own class: it has no rows.
        """
        if not isinstance(partition, AcidPartition):
            return
        with closing(_open(partition.metastore_url)) as metastore:
            _require_open(metastore, partition.txn_id)
        yield from read_scan_split(
            file_systems(self._request.settings),
            partition.split,
            partition.columns,
            has_row_ids=partition.has_row_ids,
        )


def _hadoop(options: Mapping[str, str]) -> HadoopConfig:
    """The configuration around this process; executors are given it with the splits."""
    return HadoopConfig(
        values=read_hadoop_site(os.environ),
        web_addresses=parse_web_addresses(options.get("webhdfs", "")),
    )


def _open(metastore_url: str) -> Metastore:
    """With the settings around this process, which may ask for a protection that nobody gives.
    Imported here: only who reads needs thrift or a database."""
    from hms_bridge.config.reading import settings_of_environment
    from hms_bridge.connect import open_metastore

    settings = settings_of_environment(os.environ)
    return open_metastore(metastore_url, settings, is_created=False)


def _require_known(options: Mapping[str, str]) -> None:
    for needed in _SNAPSHOT:
        if not options.get(needed):
            raise DmlError(
                f'format("{FORMAT}") needs .option("{needed}", …): read within a block of '
                "hms_bridge.spark.data_source.snapshot_options, which gives it, or of "
                "hms_bridge.spark.scan.read_table"
            )
    unknown = sorted({name.lower() for name in options} - {*_SNAPSHOT, *_CHOICES})
    if unknown:
        raise DmlError(
            f'format("{FORMAT}") knows no option {unknown[0]}; it has {", ".join(_CHOICES)}'
        )


def _require_open(metastore: Metastore, txn_id: TxnId) -> None:
    """Raises DmlError if the snapshot is held no more."""
    try:
        require_open(metastore, txn_id)
    except (NoSuchTxnError, TxnAbortedError) as error:
        raise DmlError(
            "the snapshot of this read has ended, so its files may be gone; read within the block "
            "of snapshot_options"
        ) from error
