"""What every metastore does with column statistics and functions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column, PrincipalType, TableType
from hms_bridge.model.function import Function, Resource, ResourceType
from hms_bridge.model.ids import WriteId
from hms_bridge.model.statistics import (
    ColumnStatistics,
    ObjectStatistics,
    StatisticsKind,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.model.statistics_state import ACCURATE
from tests.conformance.objects import (
    DS,
    acid_table,
    commit,
    events_after,
    new_database,
    new_table,
    open_txn,
    orc_storage,
    partition,
    write_id,
)
from tests.support.event_messages import read_message

EXTERNAL = {"type": TableType.EXTERNAL_TABLE.value, "parameters": {"EXTERNAL": "TRUE"}}
KINDS = (
    ("b", "boolean"), ("l", "bigint"), ("d", "double"), ("s", "string"), ("y", "binary"),
    ("n", "decimal(10,2)"), ("e", "date"), ("w", "timestamp"),
)  # fmt: skip
OF_EACH_KIND = (
    ColumnStatistics(column="b", type="boolean", kind=StatisticsKind.BOOLEAN, null_count=1,
                     true_count=2, false_count=3),
    ColumnStatistics(column="l", type="bigint", kind=StatisticsKind.LONG, low=-5, high=2**62,
                     null_count=1, distinct_count=4),
    ColumnStatistics(column="d", type="double", kind=StatisticsKind.DOUBLE, low=-0.5, high=1.5,
                     distinct_count=2),
    ColumnStatistics(column="s", type="string", kind=StatisticsKind.STRING, distinct_count=7,
                     average_length=4.5, length_max=9),
    ColumnStatistics(column="y", type="binary", kind=StatisticsKind.BINARY, average_length=2.0,
                     length_max=4),
    ColumnStatistics(column="n", type="decimal(10,2)", kind=StatisticsKind.DECIMAL, low="-12.50",
                     high="2.57", distinct_count=3),
    ColumnStatistics(column="e", type="date", kind=StatisticsKind.DATE, low=-1, high=20,
                     distinct_count=4),
    ColumnStatistics(column="w", type="timestamp", kind=StatisticsKind.TIMESTAMP, low=10, high=99,
                     distinct_count=4),
)  # fmt: skip


def ids(low: int, high: int, *, nulls: int = 0, distinct: int = 1) -> ColumnStatistics:
    return ColumnStatistics(
        column="id", type="int", kind=StatisticsKind.LONG, low=low, high=high, null_count=nulls,
        distinct_count=distinct,
    )  # fmt: skip


def put(metastore: Metastore, database: str, *columns: ColumnStatistics, **given: object) -> bool:
    partition_name = given.pop("partition_name", None)
    one = ObjectStatistics(columns=columns, partition_name=partition_name)  # type: ignore[arg-type]
    return metastore.set_column_statistics(
        StatisticsUpdate(database_name=database, table_name="t", objects=(one,), **given)  # type: ignore[arg-type]
    )


def get(
    metastore: Metastore, database: str, *columns: str, **given: object
) -> tuple[ColumnStatistics, ...]:
    query = StatisticsQuery(database_name=database, table_name="t", columns=columns, **given)  # type: ignore[arg-type]
    found = metastore.get_column_statistics(query)
    return tuple(one for each in found if each.is_compliant is not False for one in each.columns)


def state(metastore: Metastore, database: str, name: str = "t") -> dict[str, object]:
    text = metastore.get_table(database, name).parameters.get(ACCURATE, "{}")
    found: dict[str, object] = json.loads(text)
    return found


class StatisticsBehaviour:
    """Inherit through MetastoreBehaviour."""

    def test_statistics_come_back_as_they_were_given(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        columns = tuple(Column(name=column, type=kind) for column, kind in KINDS)
        new_table(metastore, name, storage=orc_storage(columns), **EXTERNAL)
        names = [column for column, _ in KINDS]
        assert get(metastore, name, *names) == ()
        assert put(metastore, name, *OF_EACH_KIND)
        found = {one.column: one for one in get(metastore, name, *names)}
        # Other writings of one number are as good.
        low = found["n"].low
        assert isinstance(low, str)
        assert float(low) == -12.5
        found["n"] = replace(found["n"], low="-12.50")
        assert found == {one.column: one for one in OF_EACH_KIND}
        assert get(metastore, name, "l", engine="impala") == ()
        accurate = state(metastore, name)["COLUMN_STATS"]
        assert accurate == dict.fromkeys(names, "true")

    def test_statistics_are_replaced_or_merged(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, **EXTERNAL)
        assert put(metastore, name, ids(1, 5, nulls=1, distinct=3), is_merge=True)
        assert get(metastore, name, "id") == ()  # nothing says that there were no rows before
        assert put(metastore, name, ids(1, 5, nulls=1, distinct=3))
        assert put(metastore, name, ids(4, 9, nulls=2, distinct=2), is_merge=True)
        assert get(metastore, name, "id") == (ids(1, 9, nulls=3, distinct=3),)
        assert put(metastore, name, ids(7, 8))
        assert get(metastore, name, "id") == (ids(7, 8),)

    def test_what_is_not_there_has_no_statistics(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        with pytest.raises(NoSuchObjectError):
            put(metastore, name, ids(1, 2))
        with pytest.raises(NoSuchObjectError):
            get(metastore, name, "id")
        new_table(metastore, name, **EXTERNAL)
        with pytest.raises(MetaError):
            put(metastore, name, replace(ids(1, 2), column="nope"))

    def test_statistics_of_partitions_together(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS, **EXTERNAL)
        values = ("a", "b", "c", "d")
        metastore.add_partitions(name, "t", [partition(name, "t", v) for v in values])
        for place, value in enumerate(values[:3]):
            known = ids(10 * place, 10 * place + 5, nulls=1, distinct=place + 1)
            assert put(metastore, name, known, partition_name=f"ds={value}")
        query = StatisticsQuery(
            database_name=name, table_name="t", columns=["id"],
            partition_names=["ds=a", "ds=b", "ds=c"],
        )  # fmt: skip
        found = metastore.get_column_statistics(query)
        assert [one.partition_name for one in found] == ["ds=a", "ds=b", "ds=c"]
        together = metastore.get_aggregated_statistics(query)
        assert (together.columns, together.partition_count) == (
            (ids(0, 25, nulls=3, distinct=3),), 3,
        )  # fmt: skip
        # Of one partition nothing is known: the others are drawn out to it.
        wider = replace(query, partition_names=[f"ds={value}" for value in values])
        together = metastore.get_aggregated_statistics(wider)
        assert (together.columns, together.partition_count) == (
            (ids(0, 35, nulls=4, distinct=4),), 3,
        )  # fmt: skip
        none = replace(query, partition_names=[])
        assert metastore.get_aggregated_statistics(none).partition_count == 0

    def test_statistics_are_deleted(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, **EXTERNAL)
        put(metastore, name, ids(1, 2))
        last = metastore.get_current_event_id()
        assert metastore.delete_column_statistics(name, "t", columns=["id"], engine="hive")
        assert get(metastore, name, "id") == ()
        types = [event.type for event in events_after(metastore, last)]
        assert set(types) == {"DELETE_TBL_COL_STAT_EVENT"}

    def test_an_update_is_logged(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, **EXTERNAL)
        last = metastore.get_current_event_id()
        put(metastore, name, ids(1, 2))
        (event,) = events_after(metastore, last)
        assert (event.type, event.database_name, event.table_name) == (
            "UPDATE_TBL_COL_STAT_EVENT", name, "t",
        )  # fmt: skip
        message = read_message(event)
        assert '"2":{"i64":2}' in message["colStatsJson"]
        assert ACCURATE in message["parameters"]

    def test_columns_that_go_take_their_statistics_along(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name, **EXTERNAL)
        words = ColumnStatistics(column="name", type="string", kind=StatisticsKind.STRING,
                                 distinct_count=1, average_length=2.0, length_max=2)  # fmt: skip
        put(metastore, name, ids(1, 2), words)
        known = metastore.get_table(name, "t")
        columns = (made.storage.columns[0], Column(name="other", type="string"))
        changed = replace(known, storage=replace(known.storage, columns=columns))
        metastore.alter_table(name, "t", changed, environment={"DO_NOT_UPDATE_STATS": "true"})
        assert get(metastore, name, "id", "name") == (ids(1, 2),)
        assert state(metastore, name)["COLUMN_STATS"] == {"id": "true"}
        known = metastore.get_table(name, "t")
        renamed = replace(known, name="u")
        metastore.alter_table(name, "t", renamed, environment={"DO_NOT_UPDATE_STATS": "true"})
        query = StatisticsQuery(database_name=name, table_name="u", columns=["id"])
        assert metastore.get_column_statistics(query)[0].columns == (ids(1, 2),)
        metastore.drop_table(name, "u", is_data_deleted=False)


class TransactionalStatisticsBehaviour:
    """Inherit through MetastoreBehaviour."""

    def test_snapshots_believe_only_writers_that_they_see(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        metastore.create_table(acid_table(name), trusted_columns=["id", "name"])
        assert state(metastore, name)["BASIC_STATS"] == "true"
        txn = open_txn(metastore)
        first = write_id(metastore, txn, name)
        mine = f"{name}.t:{first}:9223372036854775807::"
        assert put(metastore, name, ids(1, 5), is_merge=True, write_id=first, valid_write_ids=mine)
        before = f"{name}.t:0:9223372036854775807::"
        assert get(metastore, name, "id", valid_write_ids=mine) == (ids(1, 5),)
        assert get(metastore, name, "id", valid_write_ids=before) == ()
        commit(metastore, txn)
        # One that did not see the first writer may not say that the statistics are right.
        txn = open_txn(metastore)
        second = write_id(metastore, txn, name)
        blind = f"{name}.t:{second}:{first}:{first}:"
        put(metastore, name, ids(7, 9), is_merge=True, write_id=second, valid_write_ids=blind)
        now = f"{name}.t:{second}:9223372036854775807::"
        assert get(metastore, name, "id", valid_write_ids=now) == ()
        assert state(metastore, name) == {}
        commit(metastore, txn)

    def test_statistics_need_a_write_id(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        metastore.create_table(acid_table(name), trusted_columns=["id", "name"])
        with pytest.raises(MetaError, match="without providing the transactional write state"):
            put(metastore, name, ids(1, 5))
        with pytest.raises(MetaError, match="transactional table"):
            metastore.delete_column_statistics(name, "t", columns=["id"], engine="hive")

    def test_an_alteration_that_saw_not_the_last_writer_takes_the_trust(
        self, metastore: Metastore
    ) -> None:
        name = new_database(metastore)
        metastore.create_table(acid_table(name), trusted_columns=["id", "name"])
        known = metastore.get_table(name, "t")
        quiet = {"DO_NOT_UPDATE_STATS": "true"}
        metastore.alter_table(
            name, "t", replace(known, write_id=WriteId(1)), environment=quiet,
            valid_write_ids=f"{name}.t:1:9223372036854775807::",
        )  # fmt: skip
        assert state(metastore, name)["BASIC_STATS"] == "true"
        metastore.alter_table(
            name, "t", replace(known, write_id=WriteId(2)), environment=quiet,
            valid_write_ids=f"{name}.t:2:1:1:",
        )  # fmt: skip
        assert state(metastore, name) == {}
        trusted = replace(
            known, parameters={**known.parameters, ACCURATE: '{"BASIC_STATS":"true"}'}
        )
        with pytest.raises(MetaError, match="without providing the transactional write state"):
            metastore.alter_table(name, "t", replace(trusted, write_id=-1), environment=quiet)


class FunctionBehaviour:
    """Inherit through MetastoreBehaviour."""

    def test_functions(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        jar = Resource(type=ResourceType.JAR, uri="hdfs://nn/a.jar")
        function = Function(
            name="Fn", database_name=name, class_name="org.example.Fn", owner_name="bob",
            owner_type=PrincipalType.USER, resources=(jar,),
        )  # fmt: skip
        last = metastore.get_current_event_id()
        metastore.create_function(function)
        with pytest.raises(AlreadyExistsError):
            metastore.create_function(function)
        with pytest.raises(InvalidObjectError):
            metastore.create_function(replace(function, name="bad name"))
        with pytest.raises(NoSuchObjectError):
            metastore.create_function(replace(function, database_name="no_such_database"))
        found = metastore.get_function(name, "FN")
        assert (found.name, found.class_name, found.resources) == ("fn", "org.example.Fn", (jar,))
        assert found.create_time
        assert metastore.get_functions(name, "f*") == (found,)
        assert found in metastore.get_functions()
        metastore.alter_function(name, "fn", replace(found, class_name="org.example.Other"))
        assert metastore.get_function(name, "fn").class_name == "org.example.Other"
        with pytest.raises(MetaError):
            metastore.alter_function(name, "nope", found)
        metastore.drop_function(name, "fn")
        for verb in (metastore.get_function, metastore.drop_function):
            with pytest.raises(NoSuchObjectError):
                verb(name, "fn")
        types = [event.type for event in events_after(metastore, last)]
        assert types == ["CREATE_FUNCTION", "DROP_FUNCTION"]

    def test_a_database_takes_its_functions_along(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        for function in ("fn", "a"):
            metastore.create_function(
                Function(
                    name=function,
                    database_name=name,
                    class_name="c",
                    owner_name="bob",
                    owner_type=PrincipalType.USER,
                )  # fmt: skip
            )
        with pytest.raises(InvalidOperationError):
            metastore.drop_database(name)
        last = metastore.get_current_event_id()
        metastore.drop_database(name, is_cascade=True)
        with pytest.raises(NoSuchObjectError):
            metastore.get_function(name, "fn")
        told = events_after(metastore, last)
        assert [event.type for event in told] == [
            "DROP_FUNCTION", "DROP_FUNCTION", "DROP_TABLE", "DROP_DATABASE",
        ]  # fmt: skip
        assert [read_message(event)["functionName"] for event in told[:2]] == ["a", "fn"]
