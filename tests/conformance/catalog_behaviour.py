"""What every metastore does with databases and tables."""

from __future__ import annotations

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
from hms_bridge.model.catalog import Column, Database, Skew, SortColumn, TableType
from tests.conformance.objects import (
    ACID,
    COLUMNS,
    DS_HR,
    acid_table,
    commit,
    new_database,
    new_table,
    orc_storage,
    partition,
    unique,
    write,
)


class DatabaseBehaviour:
    """Inherit through MetastoreBehaviour, and give the fixture `metastore`."""

    def test_default_database_is_there(self, metastore: Metastore) -> None:
        assert "default" in metastore.get_databases()
        assert metastore.get_database("default").location

    def test_a_database_comes_back_as_it_was_made(self, metastore: Metastore) -> None:
        name = new_database(metastore, description="golden", parameters={"k": "v"}, owner_name="o")
        found = metastore.get_database(name)
        assert (found.description, dict(found.parameters), found.owner_name) == (
            "golden", {"k": "v"}, "o",
        )  # fmt: skip
        assert found.location is not None
        assert found.location.endswith(f"/{name}.db")
        assert found.create_time

    def test_names_have_no_case(self, metastore: Metastore) -> None:
        name = unique("Mixed")
        metastore.create_database(Database(name=name.upper()))
        assert metastore.get_database(name.upper()).name == name.lower()
        assert name.lower() in metastore.get_databases()

    def test_a_database_is_made_once(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        with pytest.raises(AlreadyExistsError):
            metastore.create_database(Database(name=name))

    def test_an_unknown_database_is_refused(self, metastore: Metastore) -> None:
        for verb in (metastore.get_database, metastore.drop_database):
            with pytest.raises(NoSuchObjectError):
                verb("no_such_database")

    def test_a_name_that_cannot_be_stored_is_refused(self, metastore: Metastore) -> None:
        for name in ("", "x" * 129):
            with pytest.raises((InvalidObjectError, MetaError)):
                metastore.create_database(Database(name=name))

    def test_database_patterns(self, metastore: Metastore) -> None:
        one, two = unique("pat_a"), unique("pat_b")
        for name in (one, two):
            metastore.create_database(Database(name=name))
        assert one in metastore.get_databases("pat_a*")
        assert two not in metastore.get_databases("pat_a*")
        assert set(metastore.get_databases(f"{one}|{two}")) == {one, two}
        assert metastore.get_databases("") == ()
        assert metastore.get_databases("zz_none*") == ()

    def test_altering_a_database_replaces_its_properties(self, metastore: Metastore) -> None:
        name = new_database(metastore, parameters={"a": "1", "b": "2"})
        found = metastore.get_database(name)
        metastore.alter_database(name, replace(found, parameters={"b": "3"}, description="new"))
        after = metastore.get_database(name)
        assert dict(after.parameters) == {"b": "3"}
        assert after.description == "new"
        metastore.alter_database(name, replace(after, description=None, parameters={}))
        assert metastore.get_database(name) == replace(after, parameters={})

    def test_a_database_with_tables_goes_only_by_cascade(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        with pytest.raises(InvalidOperationError):
            metastore.drop_database(name)
        metastore.drop_database(name, is_cascade=True)
        assert name not in metastore.get_databases()
        assert metastore.get_tables(name) == ()

    def test_a_replication_source_is_not_dropped(self, metastore: Metastore) -> None:
        name = new_database(metastore, parameters={"repl.source.for": "p1"})
        with pytest.raises((InvalidOperationError, MetaError)):
            metastore.drop_database(name)
        assert name in metastore.get_databases()

    def test_the_default_database_is_not_dropped(self, metastore: Metastore) -> None:
        with pytest.raises(MetaError):
            metastore.drop_database("default")


class TableBehaviour:
    """Inherit through MetastoreBehaviour, and give the fixture `metastore`."""

    def test_a_table_comes_back_as_it_was_made(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        storage = orc_storage(bucket_count=4, bucket_columns=("id",))
        made = new_table(
            metastore,
            name,
            storage=storage,
            partition_columns=DS_HR,
            parameters=ACID | {"k": "ü中"},
        )
        assert made.storage.columns == COLUMNS
        assert made.partition_columns == DS_HR
        assert made.storage.bucket_columns == ("id",)
        assert made.storage.bucket_count == 4
        assert made.parameters["k"] == "ü中"
        assert made.owner == "hive"
        assert made.create_time > 0

    @pytest.mark.parametrize("is_acid", [False, True])
    def test_details_of_storage_are_told_unless_the_table_is_acid(
        self, metastore: Metastore, is_acid: bool
    ) -> None:
        name = new_database(metastore)
        storage = orc_storage(
            parameters={"sd": "1"}, skew=Skew(columns=("id",), values=(("1",), ("2",)))
        )
        if is_acid:
            made = new_table(metastore, name, storage=storage)
        else:
            made = new_table(
                metastore,
                name,
                storage=storage,
                parameters={"EXTERNAL": "TRUE"},
                type=TableType.EXTERNAL_TABLE.value,
            )
        told = made.storage
        assert (told.parameters == {"sd": "1"}) is not is_acid
        assert (told.skew.values == (("1",), ("2",))) is not is_acid
        assert (told.serde.parameters == {"serialization.format": "1"}) is not is_acid

    def test_a_table_lies_below_its_database(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name, "T1")
        assert made.name == "t1"
        assert made.storage.location is not None
        assert made.storage.location.endswith(f"/{name}.db/t1")

    def test_transactional_properties_are_added(self, metastore: Metastore) -> None:
        made = new_table(metastore, new_database(metastore))
        assert made.parameters["transactional_properties"] == "default"
        assert made.is_full_acid
        assert int(made.parameters["transient_lastDdlTime"]) > 0

    def test_an_insert_only_table_needs_no_orc(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(
            metastore,
            name,
            storage=orc_storage(
                input_format="org.apache.hadoop.mapred.TextInputFormat",
                output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            ),
            parameters=ACID | {"transactional_properties": "insert_only"},
        )
        assert made.is_insert_only

    def test_what_cannot_be_transactional_is_refused(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        text = "org.apache.hadoop.mapred.TextInputFormat"
        for wrong in (
            acid_table(name, storage=orc_storage(input_format=text)),
            acid_table(name, parameters=ACID | {"transactional_properties": "bogus"}),
            acid_table(
                name,
                type=TableType.EXTERNAL_TABLE.value,
                parameters=ACID | {"EXTERNAL": "TRUE"},
            ),
            acid_table(
                name,
                storage=orc_storage(
                    bucket_count=2, bucket_columns=("id",), sort_columns=(SortColumn(name="id"),)
                ),
            ),
        ):
            with pytest.raises(MetaError):
                metastore.create_table(wrong)
        assert metastore.get_tables(name) == ()

    def test_a_table_is_made_once(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        with pytest.raises(AlreadyExistsError):
            metastore.create_table(acid_table(name))

    def test_a_table_needs_its_database(self, metastore: Metastore) -> None:
        with pytest.raises((NoSuchObjectError, InvalidObjectError)):
            metastore.create_table(acid_table("no_such_database"))

    def test_an_unknown_table_is_refused(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        for verb in (metastore.get_table, metastore.drop_table):
            with pytest.raises(NoSuchObjectError):
                verb(name, "no_such_table")

    def test_bad_columns_are_refused(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        twice = (Column(name="a", type="int"), Column(name="A", type="int"))
        for columns in (twice, (Column(name="a", type="nonsense"),)):
            with pytest.raises((InvalidObjectError, MetaError)):
                metastore.create_table(acid_table(name, storage=orc_storage(columns)))

    def test_table_patterns_and_types(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        for table in ("acid1", "acid2", "mm_1"):
            new_table(metastore, name, table)
        metastore.create_table(
            acid_table(name, "v1", type=TableType.VIRTUAL_VIEW.value, parameters={},
                       view_original_text="select 1", view_expanded_text="select 1")
        )  # fmt: skip
        assert metastore.get_tables(name, "acid*") == ("acid1", "acid2")
        assert metastore.get_tables(name, "ACID1|mm*") == ("acid1", "mm_1")
        assert metastore.get_tables(name, "acid.") == ("acid1", "acid2")
        assert metastore.get_tables(name, "") == ()
        assert metastore.get_tables(name, None, TableType.VIRTUAL_VIEW.value) == ("v1",)
        assert metastore.get_tables("no_such_database") == ()

    def test_tables_by_names_leave_out_what_is_not_there(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        for table in ("b", "a"):
            new_table(metastore, name, table)
        found = metastore.get_tables_by_names(name, ["a", "none", "B"])
        assert {table.name for table in found} == {"a", "b"}
        assert metastore.get_tables_by_names(name, []) == ()

    def test_altering_a_table_changes_columns_and_properties(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name)
        columns = (*COLUMNS, Column(name="extra", type="bigint"))
        metastore.alter_table(
            name,
            "t",
            replace(
                made,
                storage=replace(made.storage, columns=columns),
                parameters={**made.parameters, "comment": "altered"},
            ),
        )
        after = metastore.get_table(name, "t")
        assert after.storage.columns == columns
        assert after.parameters["comment"] == "altered"
        assert after.storage.location == made.storage.location
        assert after.create_time == made.create_time

    def test_an_alteration_that_expects_another_parameter_is_refused(
        self, metastore: Metastore
    ) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name)

        def alter(value: str, expected: str) -> None:
            pair = {"expected_parameter_key": "k", "expected_parameter_value": expected}
            altered = replace(made, parameters={**made.parameters, "k": value})
            metastore.alter_table(name, "t", altered, environment=pair)

        with pytest.raises(MetaError, match="parameter value for key 'k' is 'null'"):
            alter("1", "0")
        metastore.alter_table(name, "t", replace(made, parameters={**made.parameters, "k": "0"}))
        alter("1", "0")
        with pytest.raises(MetaError, match="key 'k' is '1'. The expected was value was '0'"):
            alter("2", "0")
        assert metastore.get_table(name, "t").parameters["k"] == "1"

    def test_partitions_keep_their_columns_when_the_table_changes(
        self, metastore: Metastore
    ) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name, partition_columns=DS_HR)
        metastore.add_partitions(name, "t", [partition(name, "t", "a", "1")])
        columns = (*COLUMNS, Column(name="extra", type="bigint"))
        altered = replace(made, storage=replace(made.storage, columns=columns))
        metastore.alter_table(name, "t", altered)
        assert metastore.get_partition(name, "t", ["a", "1"]).storage.columns == COLUMNS

    def test_a_column_keeps_a_type_that_holds_its_values(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name)
        narrow = (Column(name="id", type="tinyint"), COLUMNS[1])
        with pytest.raises(InvalidOperationError):
            metastore.alter_table(
                name, "t", replace(made, storage=replace(made.storage, columns=narrow))
            )
        wide = (Column(name="id", type="bigint"), COLUMNS[1])
        metastore.alter_table(name, "t", replace(made, storage=replace(made.storage, columns=wide)))
        assert metastore.get_table(name, "t").storage.columns[0].type == "bigint"

    def test_partition_columns_do_not_change(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name, partition_columns=DS_HR)
        with pytest.raises(InvalidOperationError):
            metastore.alter_table(name, "t", replace(made, partition_columns=DS_HR[:1]))

    def test_a_transactional_table_stays_one(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name)
        for parameters in (
            {"transactional": "false"},
            {},
            ACID | {"transactional_properties": "insert_only"},
        ):
            with pytest.raises(MetaError):
                metastore.alter_table(name, "t", replace(made, parameters=parameters))
        assert metastore.get_table(name, "t").is_full_acid

    def test_a_renamed_table_keeps_its_write_ids(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name, partition_columns=DS_HR)
        metastore.add_partitions(name, "t", [partition(name, "t", "a", "1")])
        txn, given = write(metastore, name)
        commit(metastore, txn)
        metastore.alter_table(name, "t", replace(made, name="t2"))
        assert metastore.get_tables(name) == ("t2",)
        assert metastore.get_max_allocated_write_id(name, "t2") == given
        assert metastore.get_max_allocated_write_id(name, "t") == 0
        moved = metastore.get_table(name, "t2").storage.location
        assert moved is not None
        assert moved.endswith(f"/{name}.db/t2")
        place = metastore.get_partition(name, "t2", ["a", "1"]).storage.location
        assert place == f"{moved}/ds=a/hr=1"

    def test_a_table_is_not_renamed_onto_another(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name)
        new_table(metastore, name, "t2")
        with pytest.raises(InvalidOperationError):
            metastore.alter_table(name, "t", replace(made, name="t2"))
        with pytest.raises((InvalidOperationError, NoSuchObjectError)):
            metastore.alter_table(name, "none", replace(made, name="t3"))
        assert metastore.get_tables(name) == ("t", "t2")

    def test_a_dropped_table_starts_again_at_one(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, _ = write(metastore, name)
        commit(metastore, txn)
        metastore.drop_table(name, "t")
        assert metastore.get_tables(name) == ()
        new_table(metastore, name)
        assert metastore.get_max_allocated_write_id(name, "t") == 0
