"""Runs SQL on ACID tables: each statement is one transaction, and Spark does the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.dml.named import find_database, find_table
from hms_bridge.dml.parse import parse_script
from hms_bridge.dml.plan import QueryPlan, WritePlan, plan_query, plan_write
from hms_bridge.dml.rewrite import SourceView, quote
from hms_bridge.dml.statement import Ddl, Delete, Dml, Insert, NameAsWritten, Select, Update, Use
from hms_bridge.errors import DmlError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.lock import LockComponent, LockLevel
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import TxnType
from hms_bridge.session.locked_transaction import LockedTransaction, locked_transaction, read_lock
from hms_bridge.session.transaction import Client
from hms_bridge.spark.char_columns import with_char_values, with_filled_chars
from hms_bridge.spark.definitions import run_definition
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.scan import require_full_acid, snapshot_splits, splits_frame
from hms_bridge.spark.session import require_exact_casts
from hms_bridge.spark.write_job import WriteJob, WriteOutcome


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
    ) -> None:
        self._metastore = metastore
        self._open_spark = open_spark
        self._resolver = resolver
        self._client = client
        self._clock = clock
        self._database = database
        self._spark: SparkSession | None = None

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
        locks = [read_lock(source.table) for source in before.sources]
        with locked_transaction(
            self._metastore, self._client, self._clock, locks, kind=TxnType.READ_ONLY
        ) as transaction:
            plan = self._query_plan(statement)  # a definition may have changed meanwhile
            with self._views(plan.sources, transaction) as views, _spark_errors():
                frame = with_filled_chars(views.spark.sql(plan.query))
                yield tuple(frame.columns)
                for row in frame.toLocalIterator():
                    yield tuple(_plain(value) for value in row)

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
            with (
                self._views(plan.sources, transaction, is_exact=True) as views,
                _spark_errors(),
            ):
                job = WriteJob(views.spark, self._metastore, self._resolver, transaction)
                outcome = job.run(plan, views.size_bytes)
        return _summary(plan, outcome)

    def _write_plan(self, statement: Insert | Update | Delete) -> WritePlan:
        tables = self._tables((statement.table, *statement.source_tables))
        table = tables[statement.table]
        constraints = self._metastore.get_constraints(table.database_name, table.name)
        return plan_write(statement, tables, constraints)

    @contextmanager
    def _views(
        self,
        sources: Sequence[SourceView],
        transaction: LockedTransaction,
        *,
        is_exact: bool = False,
    ) -> Iterator[_Views]:
        """A session in which the sources are there as views, until the end of the block."""
        spark = self._session()
        made = []
        size_bytes = 0
        try:
            with _spark_errors():
                for source in sources:
                    splits = snapshot_splits(self._resolver, transaction, source.table)
                    size_bytes += sum(split.split.size_bytes for split in splits)
                    frame = splits_frame(
                        spark,
                        self._resolver,
                        splits,
                        source.columns,
                        has_row_ids=source.has_row_ids,
                        is_exact=is_exact,
                    )
                    frame = with_char_values(frame, source.columns)
                    frame.createOrReplaceTempView(quote(source.view_name))
                    made.append(source.view_name)
            yield _Views(spark, size_bytes)
        finally:
            with suppress(PySparkException, Py4JError):  # what went wrong before says more
                for name in made:
                    spark.catalog.dropTempView(name)

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._open_spark()
            require_exact_casts(self._spark)
        return self._spark

    def _tables(self, names: Sequence[NameAsWritten]) -> Mapping[NameAsWritten, Table]:
        return {name: self._table(name.in_database(self._database)) for name in names}

    def _table(self, name: NameAsWritten) -> Table:
        database = name.database or self._database
        table = find_table(self._metastore, database, name.name)
        require_full_acid(table)
        return table


@dataclass(frozen=True, slots=True)
class _Views:
    """A session with the sources of a statement, and how many bytes of files they are."""

    spark: SparkSession
    size_bytes: int


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


def _plain(value: object) -> object:
    """Structs as dicts, wherever they are: PySpark's rows forget their names when copied."""
    if isinstance(value, Row):
        return {name: _plain(field) for name, field in zip(value.__fields__, value, strict=True)}
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {_plain_key(key): _plain(member) for key, member in value.items()}
    return value


def _plain_key(value: object) -> object:
    """A struct can be a key in Hive, a dict cannot be one in Python."""
    return tuple(value) if isinstance(value, Row) else value


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
    locks.append(
        LockComponent(
            type=plan.kind.lock_type,
            level=LockLevel.TABLE,
            scope=Scope(plan.table.database_name, plan.table.name),
            operation=plan.kind.operation,
            is_transactional=True,
            is_dynamic_partition_write=plan.table.is_partitioned,
        )
    )
    return locks
