from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.arrow_types import arrow_type, orc_type
from hms_bridge.orc.hive_types import hive_type_text, parse_column_list, parse_hive_type
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.orc.types import OrcKind, OrcType, messages_of_tree, tree_of_messages
from tests.support.orc_values import orc_types


@given(orc_types())
def test_text_and_messages_keep_the_type(node: OrcType) -> None:
    assert parse_hive_type(hive_type_text(node)) == node
    assert tree_of_messages(messages_of_tree(node)) == node


@given(st.lists(orc_types(with_unions=False, with_sized_texts=False), min_size=1, max_size=4))
def test_arrow_schema_comes_back(children: list[OrcType]) -> None:
    from hms_bridge.orc.types import struct_type

    node = struct_type([f"c{at}" for at in range(len(children))], children)
    assert orc_type(arrow_type(node)) == node


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("DECIMAL", "decimal(10,0)"),
        ("Array< int >", "array<int>"),
        ("struct<`A b`:int>", "struct<A b:int>"),
        ("decimal( 5 , 2 )", "decimal(5,2)"),
        ("timestamp with local time zone", "timestamp with local time zone"),
    ],
)
def test_hives_other_spellings(text: str, wanted: str) -> None:
    assert hive_type_text(parse_hive_type(text)) == wanted


@pytest.mark.parametrize(
    "text",
    ["", "foo", "int>", "array<int", "array<int,int>", "map<int>", "struct<a int>", "decimal(39,1)",
     "decimal(2,3)", "char(0)", "char(x)", "varchar", "array<" * 200 + "int" + ">" * 200],
)  # fmt: skip
def test_malformed_texts_are_named(text: str) -> None:
    with pytest.raises(AcidFormatError, match="position"):
        parse_hive_type(text)


def test_a_list_of_columns() -> None:
    """Blanks inside of types are no new columns."""
    text = " id int, m map<string, int >,d decimal(10, 2 ) ,s:struct<a:double precision, b:int>"
    assert hive_type_text(parse_column_list(text)) == (
        "struct<id:int,m:map<string,int>,d:decimal(10,2),s:struct<a:double,b:int>>"
    )


@pytest.mark.parametrize("text", ["", "id", "id int,", "id int name string", "id int>", ",id int"])
def test_malformed_lists_of_columns_are_named(text: str) -> None:
    with pytest.raises(AcidFormatError, match="position"):
        parse_column_list(text)


def test_timestamp_forms() -> None:
    node = parse_hive_type("array<timestamp>")
    assert str(arrow_type(node)) == "list<item: timestamp[us]>"
    assert str(arrow_type(node, TimestampForm.NANOS)) == "list<item: timestamp[ns]>"
    parts = arrow_type(node, TimestampForm.PARTS)
    assert orc_type(parts) == node


def test_column_ids_are_places_in_preorder() -> None:
    node = parse_hive_type("struct<a:int,b:map<string,array<int>>,c:date>")
    ids = node.child_ids()
    assert [list(node.preorder())[own_id].kind for own_id in ids] == [
        OrcKind.INT,
        OrcKind.MAP,
        OrcKind.DATE,
    ]


def test_damaged_type_trees_are_refused() -> None:
    messages = messages_of_tree(parse_hive_type("struct<a:int,b:array<int>>"))
    with pytest.raises(AcidFormatError, match="belong to no column"):
        tree_of_messages([*messages, messages[1]])
    messages[0].subtypes[1] = 0
    with pytest.raises(AcidFormatError, match="not where"):
        tree_of_messages(messages)
    messages[0].subtypes[1] = 2
    messages[1].kind = 99
    with pytest.raises(AcidFormatError, match="99 is unknown"):
        tree_of_messages(messages)
