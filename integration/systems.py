"""The real systems: one line each. Markers, the README's table and what a run needs all come from
here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """A system, the fixture that starts it (also its marker), and what is compared with it."""

    fixture: str
    name: str
    version: str
    compared: str


SYSTEMS = (
    System(
        fixture="hive42",
        name="Hive: SQL on Tez, embedded metastore, compactor threads, REPL",
        version="4.2.0",
        compared="rows, ROW__IDs, directories, compaction queue, notification log",
    ),
    System(
        fixture="hive42_metastore",
        name="Hive metastore server",
        version="4.2.0",
        compared="thrift answers, transactions, ACID tables that others write through it",
    ),
    System(
        fixture="hive42_beside",
        name="Hive and hms-bridge on one database",
        version="4.2.0",
        compared="drops, readers' protection from cleaners, mixed work",
    ),
    System(
        fixture="hms401",
        name="Hive metastore server as shipped",
        version="4.0.1",
        compared="thrift answers, transactions, write ids",
    ),
    System(
        fixture="java_clients",
        name="Hive's Java client, HiveMetaStoreClient",
        version="4.0.1",
        compared="what ours answers it, and what a metastore of its release does",
    ),
    System(
        fixture="hive_texts",
        name="Hive's own classes for id lists and for names of partitions, directories and files",
        version="4.0.1, 4.2.0",
        compared="what they write and ours reads, and what both make of damaged texts",
    ),
    System(
        fixture="java_iceberg",
        name="Iceberg's Java library, HiveCatalog",
        version="1.10.0, client 2.3.10",
        compared="commits of several clients at once, without locks",
    ),
    System(
        fixture="hms313",
        name="Hive metastore server as shipped",
        version="3.1.3",
        compared="thrift answers, transactions, write ids",
    ),
    System(
        fixture="hive2310",
        name="Hive metastore server inside PySpark",
        version="2.3.10",
        compared="thrift answers, transactions",
    ),
    System(
        fixture="spark_hive",
        name="Spark's built-in Hive client",
        version="Spark 4.3.0, client 2.3.10",
        compared="tables made and read through a metastore",
    ),
    System(
        fixture="spark_local2",
        name="Spark on local[2]",
        version="4.3.0",
        compared="jobs and their results",
    ),
    System(
        fixture="spark_standalone",
        name="Spark standalone: master and two workers",
        version="4.3.0",
        compared="jobs that run in two executor processes; the files of a load",
    ),
    System(
        fixture="spark_hidden",
        name="Spark standalone: workers that see neither checkout nor environment",
        version="4.3.0",
        compared="our SQL, DML, compaction from the packed archive; tasks killed, frozen, copied",
    ),
    System(
        fixture="spark_35",
        name="Spark on local[2], the oldest of the declared range",
        version="3.5.9",
        compared="our SQL, DML and compaction",
    ),
    System(
        fixture="trino476",
        name="Trino",
        version="476",
        compared="ACID tables read and written by an engine of its own",
    ),
    System(
        fixture="pyiceberg_catalog",
        name="PyIceberg hive catalog",
        version="0.12.0",
        compared="namespaces and Iceberg tables",
    ),
    System(
        fixture="hmsclient",
        name="hmsclient",
        version="0.1.1",
        compared="databases, tables, partitions",
    ),
    System(
        fixture="pymetastore",
        name="pymetastore",
        version="0.4.2",
        compared="databases, tables",
    ),
    System(
        fixture="postgresql",
        name="PostgreSQL",
        version="15",
        compared="store of metastores",
    ),
    System(
        fixture="mariadb",
        name="MariaDB",
        version="10.11",
        compared="store of metastores",
    ),
    System(
        fixture="hdfs",
        name="HDFS, NameNode and DataNode",
        version="3.4.1",
        compared="files, checksums, extended attributes",
    ),
    System(
        fixture="cluster",
        name="A cluster: HDFS with permissions, PostgreSQL, Hive on our metastore and its own",
        version="3.4.1, 15, 4.2.0",
        compared="a replica's rows and ROW__IDs after dumps and kills; how-to page, runbook",
    ),
    System(
        fixture="s3",
        name="S3 by moto's server",
        version="5.2.5",
        compared="files",
    ),
)
