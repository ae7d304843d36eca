"""Rules of tables, limits of names, and patterns: all without a database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.catalog.limits import check_database, check_partition, check_table
from hms_bridge.catalog.patterns import like_texts
from hms_bridge.catalog.table_rules import (
    has_own_files,
    is_type_compatible,
    with_acid_properties,
    with_altered_acid_properties,
)
from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.model.catalog import Column, Database, Storage, Table, TableType
from tests.conformance.objects import acid_table, orc_storage, partition


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": {"transactional": "maybe"}}, "may only have value 'true'"),
        ({"parameters": {"transactional": "true", "transactional_properties": "bogus"}},
         "Invalid transactional properties specified for db.t with the error unknown value bogus "
         "for transactional_properties"),
        ({"storage": Storage()}, "ACID compliant format"),
        ({"catalog_name": "other"}, "catalog 'hive' only"),
        ({"type": TableType.EXTERNAL_TABLE.value}, "external table"),
        ({"parameters": {"transactional": "true", "external": "TRUE"}}, "external table"),
    ],
)  # fmt: skip
def test_what_cannot_be_transactional(change: dict, message: str) -> None:
    with pytest.raises(MetaError, match=message):
        with_acid_properties(replace(acid_table("db"), **change))


def test_what_is_not_transactional_stays_as_it_is() -> None:
    for parameters in ({}, {"transactional": "false"}):
        plain = acid_table("db", parameters=parameters, storage=Storage())
        assert with_acid_properties(plain) is plain


def test_a_plain_table_may_become_transactional_and_never_back() -> None:
    plain, acid = acid_table("db", parameters={}), with_acid_properties(acid_table("db"))
    assert with_altered_acid_properties(plain, acid_table("db")).is_full_acid
    with pytest.raises(MetaError, match="cannot be unset: db.t"):
        with_altered_acid_properties(acid, plain)
    only = replace(
        acid, parameters={"transactional": "true", "transactional_properties": "insert_only"}
    )
    with pytest.raises(MetaError, match="cannot be altered after the table is created"):
        with_altered_acid_properties(acid, only)
    # The value that is added by itself may be left out.
    assert with_altered_acid_properties(acid, acid_table("db")).is_full_acid


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (acid_table("db"), True),
        (acid_table("db", type=TableType.EXTERNAL_TABLE.value, parameters={}), False),
        (acid_table("db", parameters={"EXTERNAL": "TRUE"}), False),
        (acid_table("db", parameters={"EXTERNAL": "TRUE", "external.table.purge": "true"}), True),
        (acid_table("db", type=TableType.VIRTUAL_VIEW.value, parameters={}), False),
    ],
)
def test_whose_files_go_with_the_table(table: Table, expected: bool) -> None:
    assert has_own_files(table) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("int", "bigint", True), ("bigint", "int", False), ("int", "string", True),
        ("string", "int", False), ("string", "double", True), ("varchar(3)", "char(5)", True),
        ("date", "string", True), ("void", "int", True),
        ("struct<a:int>", "struct<a:int,b:int>", True),
        ("array<int>", "int", False), ("decimal(5,2)", "decimal(9,2)", True),
        ("float", "double", True),
    ],
)  # fmt: skip
def test_which_types_hold_the_values_of_which(before: str, after: str, expected: bool) -> None:
    assert is_type_compatible(before, after) is expected


def test_patterns_become_like_texts() -> None:
    assert like_texts("A*|b.c") == ("a%", "b_c")
    assert like_texts("a.*") == ("a%",)
    assert like_texts("50%_/") == ("50/%/_//",)
    assert like_texts("") == ()
    assert like_texts("|") == ()


@pytest.mark.parametrize("name", ["", "  ", ".", "..", "a/b", "a\nb", "x" * 257])
def test_names_that_would_leave_their_directory(name: str) -> None:
    with pytest.raises(InvalidObjectError):
        check_table(acid_table("db", name))


@pytest.mark.parametrize(
    "table",
    [
        acid_table("db", parameters={"k" * 257: "v"}),
        acid_table("db", parameters={"": "v"}),
        acid_table("db", owner="o" * 768),
        acid_table("db", storage=orc_storage((Column(name="a" * 768, type="int"),))),
        acid_table("db", storage=orc_storage((Column(name="a", type=""),))),
        acid_table("db", storage=orc_storage((Column(name="a", type="int", comment="c" * 4001),))),
        acid_table("db", storage=orc_storage(location="file:/" + "x" * 4000)),
        acid_table("db", partition_columns=(Column(name="p" * 129, type="int"),)),
    ],
)
def test_texts_that_do_not_fit(table: Table) -> None:
    with pytest.raises(InvalidObjectError, match="fit|name|type"):
        check_table(table)


def test_databases_and_partitions_that_do_not_fit() -> None:
    for wrong in (
        Database(name="x" * 129),
        Database(name="d", parameters={"k" * 181: "v"}),
        Database(name="d", parameters={"k": "v" * 4001}),
        Database(name="d", description="v" * 4001),
    ):
        with pytest.raises(InvalidObjectError):
            check_database(wrong)
    with pytest.raises(InvalidObjectError, match="partition value"):
        check_partition(partition("db", "t", "v" * 257), "ds=v")
    with pytest.raises(InvalidObjectError, match="its name"):
        check_partition(partition("db", "t", "v"), "ds=" + "v" * 765)
    with pytest.raises(InvalidObjectError, match="NUL"):
        check_partition(partition("db", "t", "a\0b"), "ds=a\0b")
