"""Runs SQL on ACID tables: each statement is one transaction, and Spark does the work.

Spark's own Java reads what a query asks for, where it can (spark/statement_tables.py). Python
workers read the rest, and all that a write reads: exactly, in the write's own transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from changemanager.hadoop import HadoopConfig
from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.dml.named import find_database, find_table
from hms_bridge.dml.names import ROW_PARTITION
from hms_bridge.dml.parse import parse_script
from hms_bridge.dml.plan import QueryPlan, WritePlan, plan_query, plan_write
from hms_bridge.dml.rewrite import SourceView, quote
from hms_bridge.dml.statement import Ddl, Delete, Dml, Insert, NameAsWritten, Select, Update, Use
from hms_bridge.errors import DmlError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.lock import LockComponent
from hms_bridge.model.txn import TxnType
from hms_bridge.rows.scan import ScanSplit
from hms_bridge.session.locked_transaction import locked_transaction, read_lock, write_lock
from hms_bridge.session.transaction import Client
from hms_bridge.spark.char_columns import with_char_values
from hms_bridge.spark.definitions import run_definition
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.results import shown
from hms_bridge.spark.scan import require_full_acid, snapshot_splits, splits_frame
from hms_bridge.spark.session import require_exact_casts
from hms_bridge.spark.statement_tables import StatementTables, is_read_by_java
from hms_bridge.spark.write_job import WriteJob, WriteOutcome

_FrameOf: TypeAlias = Callable[[SourceView], DataFrame]


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlResult:
    """What a statement gave: rows (to be read before the next statement), or a message."""

    columns: tuple[str, ...] = ()
    rows: Iterator[tuple[object, ...]] = field(default_factory=lambda: iter(()))
    message: str | None = None


class SqlSession:
    """A current database, and statements one after the other. Spark starts when it is needed."""

    def __init__(
        self,
        metastore: Metastore,
        *,
        open_spark: Callable[[], SparkSession],
        resolver: Resolver,
        client: Client,
        clock: Clock,
        database: str = "default",
        hadoop: HadoopConfig | None = None,
    ) -> None:
        """``hadoop``: the settings with which the resolver opens files."""
        self._metastore = metastore
        self._open_spark = open_spark
        self._resolver = resolver
        self._client = client
        self._clock = clock
        self._database = database
        self._hadoop = hadoop or HadoopConfig()
        self._spark: SparkSession | None = None
        self._tables_of_java: StatementTables | None = None

    def close(self) -> None:
        """Nothing is left in Spark that asks the metastore."""
        if self._tables_of_java is not None:
            self._tables_of_java.close()
            self._tables_of_java = None

    def run(self, text: str) -> Iterator[SqlResult]:
        """One result a statement. Raises DmlError, and what the metastore raises."""
        for statement in parse_script(text):
            yield self._run(statement)

    def _run(self, statement: Dml | Ddl) -> SqlResult:
        match statement:
            case Select():
                columns, rows = self._query(statement)
                return SqlResult(columns=columns, rows=rows)
            case Insert() | Update() | Delete():
                return SqlResult(message=self._write(statement))
            case Use(database=database):
                find_database(self._metastore, database)
                self._database = database
                return SqlResult(message=f"the current database is {database}")
            case _:
                columns, listed, message = run_definition(
                    statement, self._metastore, self._database
                )
                return SqlResult(columns=columns, rows=iter(listed), message=message)

    def _query(self, statement: Select) -> tuple[tuple[str, ...], Iterator[tuple[object, ...]]]:
        """The transaction ends when the last row is read, or the iterator is closed."""
        rows = self._rows(statement, self._query_plan(statement))
        columns = next(rows)
        return tuple(str(name) for name in columns), rows

    def _query_plan(self, statement: Select) -> QueryPlan:
        return plan_query(statement, self._tables(statement.tables))

    def _rows(self, statement: Select, before: QueryPlan) -> Iterator[tuple[object, ...]]:
        """First the column names, then the rows."""
        spark = self._session()
        tables = [source.table for source in before.sources]
        is_by_java = all(is_read_by_java(spark, self._hadoop, table) for table in tables)
        reading = self._by_java(before) if is_by_java else self._by_python(statement, before)
        with (
            reading as (plan, frame_of),
            self._views(plan.sources, frame_of),
            _spark_errors(),
        ):
            yield from shown(spark.sql(plan.query))

    @contextmanager
    def _by_java(self, plan: QueryPlan) -> Iterator[tuple[QueryPlan, _FrameOf]]:
        """The plan service has snapshot, locks and transaction, until the end of the block."""
        try:
            yield plan, lambda source: self._java_tables().frame(source)
        finally:
            if self._tables_of_java is not None:
                self._tables_of_java.release()

    @contextmanager
    def _by_python(
        self, statement: Select, before: QueryPlan
    ) -> Iterator[tuple[QueryPlan, _FrameOf]]:
        for source in before.sources:
            require_full_acid(source.table)
        locks = [read_lock(source.table) for source in before.sources]
        with locked_transaction(
            self._metastore, self._client, self._clock, locks, kind=TxnType.READ_ONLY
        ) as transaction:

            def frame_of(source: SourceView) -> DataFrame:
                splits = snapshot_splits(self._resolver, transaction, source.table)
                return self._frame(source, splits).drop(ROW_PARTITION)

            yield self._query_plan(statement), frame_of  # a definition may have changed meanwhile

    def _write(self, statement: Insert | Update | Delete) -> str:
        locks = _write_locks(self._write_plan(statement))
        with locked_transaction(self._metastore, self._client, self._clock, locks) as transaction:
            # the definitions may have changed while the locks were awaited; now they stay
            plan = self._write_plan(statement)
            if _write_locks(plan) != locks:
                raise DmlError(
                    f"{plan.table.full_name} was changed while the statement waited for its "
                    "locks; run it again"
                )
            splits = {
                source.view_name: snapshot_splits(self._resolver, transaction, source.table)
                for source in plan.sources
            }

            def frame_of(source: SourceView) -> DataFrame:
                return self._frame(source, splits[source.view_name], is_exact=True)

            size_bytes = sum(s.split.size_bytes for read in splits.values() for s in read)
            with self._views(plan.sources, frame_of), _spark_errors():
                job = WriteJob(self._session(), self._metastore, self._resolver, transaction)
                outcome = job.run(plan, size_bytes)
        return _summary(plan, outcome)

    def _write_plan(self, statement: Insert | Update | Delete) -> WritePlan:
        tables = self._tables((statement.table, *statement.source_tables))
        for table in tables.values():
            require_full_acid(table)
        table = tables[statement.table]
        constraints = self._metastore.get_constraints(table.database_name, table.name)
        return plan_write(statement, tables, constraints)

    @contextmanager
    def _views(self, sources: Sequence[SourceView], frame_of: _FrameOf) -> Iterator[None]:
        """In the session the sources are there as views, until the end of the block."""
        spark = self._session()
        made = []
        try:
            with _spark_errors():
                for source in sources:
                    frame = with_char_values(frame_of(source), source.columns)
                    frame.createOrReplaceTempView(quote(source.view_name))
                    made.append(source.view_name)
            yield
        finally:
            with suppress(PySparkException, Py4JError):  # what went wrong before says more
                for name in made:
                    spark.catalog.dropTempView(name)

    def _frame(
        self, source: SourceView, splits: Sequence[ScanSplit], *, is_exact: bool = False
    ) -> DataFrame:
        return splits_frame(
            self._session(),
            self._resolver,
            splits,
            source.columns,
            has_row_ids=source.has_row_ids,
            is_exact=is_exact,
        )

    def _java_tables(self) -> StatementTables:
        if self._tables_of_java is None:
            self._tables_of_java = StatementTables(
                self._session(),
                self._metastore,
                self._resolver,
                self._client,
                self._clock,
                self._hadoop,
            )
        return self._tables_of_java

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._open_spark()
            require_exact_casts(self._spark)
        return self._spark

    def _tables(self, names: Sequence[NameAsWritten]) -> Mapping[NameAsWritten, Table]:
        return {name: self._table(name.in_database(self._database)) for name in names}

    def _table(self, name: NameAsWritten) -> Table:
        database = name.database or self._database
        return find_table(self._metastore, database, name.name)


def _summary(plan: WritePlan, outcome: WriteOutcome) -> str:
    """What a write did, in words."""
    if plan.delete_statement_id is None:
        rows = _rows(outcome.inserted_count, "inserted")
    elif plan.insert_statement_id is None:
        rows = _rows(outcome.deleted_count, "deleted")
    else:
        rows = _rows(outcome.deleted_count, "updated")
    wrote = f"write id {outcome.write_id}" if outcome.write_id else "nothing was written"
    return f"{rows}, {wrote}"


def _rows(count: int, what: str) -> str:
    return f"{count} {'row' if count == 1 else 'rows'} {what}"


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Turns what Spark says of a statement into a DmlError of one line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise DmlError(f"Spark refused the statement: {first_line(error)}") from error
    except (ValueError, OverflowError) as error:  # e.g. a year that Python does not know
        raise DmlError(
            f"a value of the result cannot be shown: {error}; CAST it AS STRING"
        ) from error


def _write_locks(plan: WritePlan) -> list[LockComponent]:
    locks = [
        read_lock(source.table)
        for source in plan.sources
        if source.table.full_name != plan.table.full_name
    ]
    return [*locks, write_lock(plan.table, plan.kind.operation, plan.kind.lock_type)]
