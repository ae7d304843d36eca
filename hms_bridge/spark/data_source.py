"""``spark.read.format("hive_acid")``: one snapshot of a full ACID table.

Options
  metastore      URL of a database or ``thrift://host:port``; needed
  table          ``database.table``; needed
  columns        comma-separated columns to read, else all (Spark cannot prune a Python source)
  row_ids        ``true`` adds ``row__id struct<writeid,bucketid,rowid>`` and ``row__partition``
  valid_txns, valid_write_ids
                 Hive's texts of a snapshot that the caller holds open; without them a snapshot is
                 taken when Spark plans, under a read-only transaction that lives for
                 ``hive.txn.timeout`` and is kept alive by each task that starts
  webhdfs        HTTP addresses of HDFS clusters, as ``hms.bridge.webhdfs.addresses``; other
                 settings of Hadoop come from the driver's ``HADOOP_CONF_DIR``

Rows come as Arrow record batches, a stripe at a time. This needs Spark 4: PySpark 3.5 has no data
sources in Python, and :func:`hms_bridge.spark.scan.read_table` instead. Schema and partitions are
asked of a Python worker on the driver's host, which must have this package's dependencies, too.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
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
from hms_bridge.model.ids import NO_TXN, LockId, TxnId
from hms_bridge.model.lock import LockRequest, LockState
from hms_bridge.model.txn import OpenTxnsRequest, TxnType
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.min_history import register_reader
from hms_bridge.rows.scan import ScanSplit, plan_scan, read_scan_split
from hms_bridge.rows.transaction import current_snapshot, read_lock
from hms_bridge.spark.scan import chosen_columns, frame_schema, require_full_acid

FORMAT = "hive_acid"


def register(spark: SparkSession) -> None:
    """Make the format known to a session."""
    spark.dataSource.register(HiveAcidDataSource)


@dataclass(frozen=True, kw_only=True)
class AcidPartition(InputPartition):  # type: ignore[misc]
    """One task's share of a scan, and the transaction that protects its files; NO_TXN where the
    caller's own does."""

    split: ScanSplit
    columns: tuple[Column, ...]
    has_row_ids: bool
    metastore_url: str
    lease_txn_id: TxnId


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
    valid_txns: str | None
    valid_write_ids: str | None
    hadoop: HadoopConfig

    @property
    def settings(self) -> Settings:
        """What a reader has to know of them."""
        return Settings(hadoop=self.hadoop)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ScanRequest:
        """Raises DmlError for an option that is missing, ConfigError for a malformed one."""
        for needed in ("metastore", "table"):
            if not options.get(needed):
                raise DmlError(f'format("{FORMAT}") needs .option("{needed}", …)')
        database, _, name = options["table"].lower().rpartition(".")
        wanted = options.get("columns", "").lower().split(",")
        return cls(
            metastore_url=options["metastore"],
            database_name=database or "default",
            table_name=name,
            column_names=tuple(name.strip() for name in wanted if name.strip()),
            has_row_ids=options.get("row_ids", "false").lower() == "true",
            valid_txns=options.get("valid_txns"),
            valid_write_ids=options.get("valid_write_ids"),
            hadoop=_hadoop(options),
        )

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
            table = request.table(metastore)
            lease = NO_TXN
            if request.valid_txns is not None and request.valid_write_ids is not None:
                txns = ValidTxnList.parse(request.valid_txns)
                write_ids = ValidWriteIdList.parse(request.valid_write_ids)
            else:
                lease = _open_lease(metastore, table)
                txns = current_snapshot(metastore, lease)
                write_ids = metastore.get_valid_write_ids([table.full_name], txns)[0]
            splits = plan_scan(
                metastore, file_systems(request.settings), table, txns=txns, write_ids=write_ids
            )
            return [
                AcidPartition(
                    split=split,
                    columns=request.chosen(table),
                    has_row_ids=request.has_row_ids,
                    metastore_url=request.metastore_url,
                    lease_txn_id=lease,
                )
                for split in splits
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split. Raises DmlError if its files are not protected any more.

        For a scan without splits PySpark makes up a partition of its own class: it has no rows.
        """
        if not isinstance(partition, AcidPartition):
            return
        if partition.lease_txn_id != NO_TXN:
            _renew_lease(partition)
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
    """Imported here: a task that renews no lease needs neither thrift nor a database."""
    from hms_bridge.connect import open_metastore

    return open_metastore(metastore_url, is_created=False)


def _open_lease(metastore: Metastore, table: Table) -> TxnId:
    """A read-only transaction with a shared lock: the cleaner leaves what it can see (I3)."""
    user, host = getpass.getuser(), socket.gethostname()
    (txn_id,) = metastore.open_txns(
        OpenTxnsRequest(user=user, host=host, agent="spark hive_acid", type=TxnType.READ_ONLY)
    )
    answer = metastore.lock(
        LockRequest(components=(read_lock(table),), txn_id=txn_id, user=user, host=host)
    )
    if answer.state is not LockState.ACQUIRED:
        raise DmlError(f"{table.full_name} is locked exclusively; see hms-bridge locks")
    register_reader(metastore, txn_id, [table.full_name])
    return txn_id


def _renew_lease(partition: AcidPartition) -> None:
    with closing(_open(partition.metastore_url)) as metastore:
        try:
            metastore.heartbeat(partition.lease_txn_id, LockId(0))
        except (NoSuchTxnError, TxnAbortedError) as error:
            raise DmlError(
                "the snapshot of this read has timed out (hive.txn.timeout), so its files may be "
                "gone; read again"
            ) from error
