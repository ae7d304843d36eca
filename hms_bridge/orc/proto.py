"""ORC's protobuf messages, declared as data (ORC v1 specification, orc_proto).

Unknown fields of a parsed message are kept and written back. Two deliberate differences from the
published schema, both equal on the wire: enumerations are plain integers, so that a newer value
is seen and not taken for zero; the magic and the bounds of texts are bytes, since damage or a cut
may leave them no valid UTF-8. Other texts come as bytes, too, if they are none: see `text_of`.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "hms_bridge.orc"

_MESSAGES: Final[dict[str, str]] = {
    "IntegerStatistics": "1 minimum sint64; 2 maximum sint64; 3 sum sint64",
    "DoubleStatistics": "1 minimum double; 2 maximum double; 3 sum double",
    "StringStatistics": (
        "1 minimum bytes; 2 maximum bytes; 3 sum sint64; 4 lower_bound bytes; 5 upper_bound bytes"
    ),
    "BucketStatistics": "1 count uint64*",
    "DecimalStatistics": "1 minimum bytes; 2 maximum bytes; 3 sum bytes",
    "DateStatistics": "1 minimum sint32; 2 maximum sint32",
    "TimestampStatistics": (
        "1 minimum sint64; 2 maximum sint64; 3 minimum_utc sint64; 4 maximum_utc sint64;"
        " 5 minimum_nanos int32; 6 maximum_nanos int32"
    ),
    "BinaryStatistics": "1 sum sint64",
    "CollectionStatistics": "1 min_children uint64; 2 max_children uint64; 3 total_children uint64",
    "ColumnStatistics": (
        "1 number_of_values uint64; 2 int_statistics IntegerStatistics;"
        " 3 double_statistics DoubleStatistics; 4 string_statistics StringStatistics;"
        " 5 bucket_statistics BucketStatistics; 6 decimal_statistics DecimalStatistics;"
        " 7 date_statistics DateStatistics; 8 binary_statistics BinaryStatistics;"
        " 9 timestamp_statistics TimestampStatistics; 10 has_null bool; 11 bytes_on_disk uint64;"
        " 12 collection_statistics CollectionStatistics"
    ),
    "RowIndexEntry": "1 positions uint64*; 2 statistics ColumnStatistics",
    "RowIndex": "1 entry RowIndexEntry*",
    "Stream": "1 kind uint32!; 2 column uint32; 3 length uint64",
    "ColumnEncoding": "1 kind uint32; 2 dictionary_size uint32; 3 bloom_encoding uint32",
    "StripeEncryptionVariant": "1 streams Stream*; 2 encoding ColumnEncoding*",
    "StripeFooter": (
        "1 streams Stream*; 2 columns ColumnEncoding*; 3 writer_timezone string;"
        " 4 encryption StripeEncryptionVariant*"
    ),
    "StringPair": "1 key string; 2 value string",
    "Type": (
        "1 kind uint32; 2 subtypes uint32*; 3 field_names string*; 4 maximum_length uint32;"
        " 5 precision uint32; 6 scale uint32; 7 attributes StringPair*"
    ),
    "StripeInformation": (
        "1 offset uint64; 2 index_length uint64; 3 data_length uint64; 4 footer_length uint64;"
        " 5 number_of_rows uint64; 6 encrypt_stripe_id uint64; 7 encrypted_local_keys bytes*"
    ),
    "UserMetadataItem": "1 name string; 2 value bytes",
    "StripeStatistics": "1 column_statistics ColumnStatistics*",
    "Metadata": "1 stripe_statistics StripeStatistics*",
    "Footer": (
        "1 header_length uint64; 2 content_length uint64; 3 stripes StripeInformation*;"
        " 4 types Type*; 5 metadata UserMetadataItem*; 6 number_of_rows uint64;"
        " 7 statistics ColumnStatistics*; 8 row_index_stride uint32; 9 writer uint32;"
        " 10 encryption bytes; 11 calendar uint32; 12 software_version string"
    ),
    "PostScript": (
        "1 footer_length uint64; 2 compression uint32; 3 compression_block_size uint64;"
        " 4 version uint32*; 5 metadata_length uint64; 6 writer_version uint32;"
        " 7 stripe_statistics_length uint64; 8000 magic bytes"
    ),
}
"""Message name to its fields: number, name, type; ``*`` repeats, ``!`` is required."""

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[dict[str, int]] = {
    "bool": _FIELD.TYPE_BOOL,
    "bytes": _FIELD.TYPE_BYTES,
    "double": _FIELD.TYPE_DOUBLE,
    "int32": _FIELD.TYPE_INT32,
    "sint32": _FIELD.TYPE_SINT32,
    "sint64": _FIELD.TYPE_SINT64,
    "string": _FIELD.TYPE_STRING,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
}
_PACKABLE: Final = frozenset({"uint32", "uint64"})


def _add_field(message: Any, declaration: str) -> None:
    number, name, kind = declaration.split()
    field = message.field.add(name=name, number=int(number))
    base = kind.rstrip("*!")
    field.label = _FIELD.LABEL_OPTIONAL
    if kind.endswith("*"):
        field.label = _FIELD.LABEL_REPEATED
        field.options.packed = base in _PACKABLE
    elif kind.endswith("!"):
        field.label = _FIELD.LABEL_REQUIRED
    if base in _SCALARS:
        field.type = _SCALARS[base]
    else:
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{base}"


def _build_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="hms_bridge/orc.proto", package=_PACKAGE, syntax="proto2"
    )
    for message_name, declarations in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for declaration in declarations.split(";"):
            _add_field(message, declaration)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES: Final = _build_classes()


def text_of(value: str | bytes) -> str:
    """A string field's value; raises UnicodeDecodeError if it is no UTF-8."""
    return value if isinstance(value, str) else value.decode()


ColumnStatistics: Final[Any] = _CLASSES["ColumnStatistics"]
"""Statistics of one column in one file, stripe or row group."""
ColumnEncoding: Final[Any] = _CLASSES["ColumnEncoding"]
"""How the streams of one column of a stripe are encoded."""
RowIndex: Final[Any] = _CLASSES["RowIndex"]
"""Positions and statistics of every row group of one column."""
StripeFooter: Final[Any] = _CLASSES["StripeFooter"]
"""Streams and encodings of one stripe."""
StripeStatistics: Final[Any] = _CLASSES["StripeStatistics"]
"""Statistics of every column of one stripe."""
Metadata: Final[Any] = _CLASSES["Metadata"]
"""Statistics of every stripe."""
Type: Final[Any] = _CLASSES["Type"]
"""One node of the type tree."""
Footer: Final[Any] = _CLASSES["Footer"]
"""What a file holds: stripes, types, user metadata, statistics."""
PostScript: Final[Any] = _CLASSES["PostScript"]
"""How to read the footer."""
