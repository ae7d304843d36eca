"""Iceberg's Java library with its Hive catalog, which Spark, Flink and Trino's forks commit by.

Hive's client and Hadoop are those that PySpark brings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from integration.referees import install
from integration.referees.java_client import JavaProcess
from integration.referees.java_metastore import pyspark_home
from integration.referees.processes import Workplace

WITHOUT_LOCKS = {"engine.hive.lock-enabled": "false", "commit.retry.num-retries": "2"}


class JavaIceberg(JavaProcess):
    """The Java process that holds the catalogs."""

    def __init__(self, workplace: Workplace) -> None:
        class_path = (f"{install.ensure(install.ICEBERG)}/*", f"{pyspark_home()}/jars/*")
        super().__init__(workplace, "java-iceberg", install.java_17(), class_path)

    def catalog(self, uri: str, warehouse: Path) -> IcebergCatalog:
        """A Hive catalog of the metastore at `uri`, with connections of its own."""
        return IcebergCatalog(self, uri, warehouse)


class IcebergCatalog:
    """Tables are named `database.table`."""

    def __init__(self, process: JavaProcess, uri: str, warehouse: Path) -> None:
        java: Any = process.gateway.jvm
        self._iceberg, self._hadoop = java.org.apache.iceberg, java.org.apache.hadoop
        self._catalog = self._iceberg.hive.HiveCatalog()
        self._catalog.setConf(self._hadoop.conf.Configuration())
        # A pool of connections for each name of a catalog and user.
        properties = {"uri": uri, "warehouse": f"file://{warehouse}", "clients": "4"}
        self._catalog.initialize("referee", properties)

    def create(self, name: str) -> None:
        """A table with one column, whose commits take no lock."""
        field = self._iceberg.types.Types.NestedField.required(
            1, "id", self._iceberg.types.Types.LongType.get()
        )
        schema = self._iceberg.Schema([field])
        self._catalog.createTable(
            self._name(name), schema, self._iceberg.PartitionSpec.unpartitioned(), WITHOUT_LOCKS
        )

    def append(self, name: str, file: str) -> bool:
        """Commit one data file, which need not be there; whether the commit says that it is done.
        CommitFailedException says that it is not."""
        table = self._catalog.loadTable(self._name(name))
        data = (
            self._iceberg.DataFiles.builder(table.spec())
            .withPath(file)
            .withFormat("orc")
            .withFileSizeInBytes(1)
            .withRecordCount(1)
            .build()
        )
        try:
            table.newAppend().appendFile(data).commit()
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "CommitFailedException":
                return False
            raise
        return True

    def files(self, name: str) -> set[str]:
        """The data files that a reader finds."""
        tasks = self._catalog.loadTable(self._name(name)).newScan().planFiles().iterator()
        found = set()
        while tasks.hasNext():
            found.add(str(tasks.next().file().location()))
        return found

    def _name(self, name: str) -> Any:
        return self._iceberg.catalog.TableIdentifier.parse(name)
