"""Lists that are encoded already stand where thrift would have put them."""

import pytest
from thrift.protocol.fastbinary import encode_binary

from hms_bridge.wire.methods import method
from hms_bridge.wire.struct_bytes import EncodedStructs, field_header, struct_pieces
from hms_bridge.wire.structs import Struct, hive

ORDERS = [hive.Order(col="a", order=1), hive.Order(col="ö", order=0)]


def _by_thrift(struct: Struct) -> bytes:
    encoded: bytes = encode_binary(struct, [type(struct), struct.thrift_spec])
    return encoded


def _encoded(structs: list[Struct]) -> EncodedStructs:
    return EncodedStructs(len(structs), [_by_thrift(struct) for struct in structs])


@pytest.mark.parametrize("orders", [[], ORDERS], ids=["empty", "two"])
def test_a_list_stands_between_the_fields_of_its_struct(orders: list[Struct]) -> None:
    """In the order of the interface, whatever was set first; what is None is left out."""
    others = {"storedAsSubDirectories": True, "location": "/t", "cols": [], "parameters": None}
    expected = _by_thrift(hive.StorageDescriptor(sortCols=orders, **others))
    assert (
        b"".join(struct_pieces(hive.StorageDescriptor(sortCols=_encoded(orders), **others)))
        == expected
    )


def test_a_list_is_an_answer_or_in_one() -> None:
    columns = [hive.FieldSchema(name="a", type="int")]
    for name, wrapped in (
        ("get_fields", lambda structs: structs),
        ("get_fields_req", lambda structs: hive.GetFieldsResponse(fields=structs)),
    ):
        result = method(name).result
        assert result is not None
        expected = _by_thrift(result(success=wrapped(columns)))
        assert b"".join(struct_pieces(result(success=wrapped(_encoded(columns))))) == expected


def test_a_field_that_no_struct_has_has_no_header() -> None:
    with pytest.raises(AttributeError, match="Order has no field nmae"):
        field_header(hive.Order, "nmae")
