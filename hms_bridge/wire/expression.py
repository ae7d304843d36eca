"""Partition expressions as HiveServer2 sends them: Hive's ExprNodeDesc trees in Kryo's form.

Read as of Hive 4.0 to 4.2 (``SerializationUtilities.serializeObjectWithTypeInformation``, Kryo 5
with references). Of the functions only those stand here whose meaning
:mod:`hms_bridge.catalog.partition_expression` has; everything else is unreadable, and the caller
answers as Hive does where it cannot decide: all partitions, perhaps (docs/hive/metastore.md §10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from hms_bridge.model.expression import (
    Call,
    ColumnReference,
    Constant,
    Expression,
    ExpressionValue,
    Function,
)
from hms_bridge.wire.kryo import ANY, STRINGS, KryoObject, KryoReader, Layouts
from hms_bridge.wire.kryo_input import UnreadableError

NODES_MAX = 100_000
"""Nodes of a tree; one that is referred to counts each time."""

_PLAN = "org.apache.hadoop.hive.ql.plan."
_GENERIC = "org.apache.hadoop.hive.ql.udf.generic."
_UDF = "org.apache.hadoop.hive.ql.udf."
_TYPE = "org.apache.hadoop.hive.serde2.typeinfo."
_COMMON = "org.apache.hadoop.hive.common.type."
_SERDE_IO = "org.apache.hadoop.hive.serde2.io."
_HADOOP_IO = "org.apache.hadoop.io."
_INSPECTOR = "org.apache.hadoop.hive.serde2.objectinspector."
_COMPARE_TYPE = f"{_GENERIC}GenericUDFBaseCompare$CompareType"

_COMPARISONS = {
    "GenericUDFOPEqual": Function.EQUAL,
    "GenericUDFOPNotEqual": Function.NOT_EQUAL,
    "GenericUDFOPLessThan": Function.LESS,
    "GenericUDFOPEqualOrLessThan": Function.LESS_OR_EQUAL,
    "GenericUDFOPGreaterThan": Function.GREATER,
    "GenericUDFOPEqualOrGreaterThan": Function.GREATER_OR_EQUAL,
    "GenericUDFOPEqualNS": Function.NOT_DISTINCT,
}
_WITH_RESULT = {
    "GenericUDFOPAnd": Function.AND,
    "GenericUDFOPOr": Function.OR,
    "GenericUDFOPNot": Function.NOT,
    "GenericUDFOPNull": Function.IS_NULL,
    "GenericUDFOPNotNull": Function.IS_NOT_NULL,
}
_WITH_CONVERTER = {
    "GenericUDFOPTrue": Function.IS_TRUE,
    "GenericUDFOPNotTrue": Function.IS_NOT_TRUE,
    "GenericUDFOPFalse": Function.IS_FALSE,
    "GenericUDFOPNotFalse": Function.IS_NOT_FALSE,
}
_CASTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "GenericUDFToDate": (),
    "GenericUDFTimestamp": (("intToTimestampInSeconds", "boolean"),),
    "GenericUDFToString": (),
    "GenericUDFToDecimal": (("typeInfo", ANY),),
    "GenericUDFToVarchar": (("typeInfo", ANY),),
    "GenericUDFToChar": (("typeInfo", ANY),),
}
_OTHERS: Mapping[str, tuple[Function, Sequence[tuple[str, str]]]] = {
    "GenericUDFIn": (Function.IN, (("bw", ANY), ("isInSetConstant", "boolean"))),
    "GenericUDFBetween": (
        Function.BETWEEN,
        (("argumentOIs", ANY), ("egt", ANY), ("elt", ANY), ("result", ANY)),
    ),
    "GenericUDFStruct": (Function.STRUCT, ()),
}
_FUNCTIONS: Mapping[str, Function] = {
    **{f"{_GENERIC}{name}": function for name, function in _COMPARISONS.items()},
    **{f"{_GENERIC}{name}": function for name, function in _WITH_RESULT.items()},
    **{f"{_GENERIC}{name}": function for name, function in _WITH_CONVERTER.items()},
    **{f"{_GENERIC}{name}": function for name, (function, _) in _OTHERS.items()},
    **{f"{_GENERIC}{name}": Function.CAST for name in _CASTS},
}
_BRIDGED: Mapping[str, Function] = {
    f"{_UDF}UDFLike": Function.LIKE,
    **{
        f"{_UDF}UDFTo{kind}": Function.CAST
        for kind in ("Byte", "Short", "Integer", "Long", "Float", "Double")
    },
}
"""Older functions, which a GenericUDFBridge names. The name selects one here, no class."""

_DECIMAL_FIELDS = (
    ("fast0", "long"), ("fast1", "long"), ("fast2", "long"), ("fastIntegerDigitCount", "int"),
    ("fastScale", "int"), ("fastSerializationScale", "int"), ("fastSignum", "int"),
)  # fmt: skip
_WRITABLES: Mapping[str, Sequence[tuple[str, str]]] = {
    f"{_HADOOP_IO}BooleanWritable": (("value", "boolean"),),
    f"{_HADOOP_IO}IntWritable": (("value", "int"),),
    f"{_HADOOP_IO}LongWritable": (("value", "long"),),
    f"{_HADOOP_IO}FloatWritable": (("value", "float"),),
    f"{_SERDE_IO}ByteWritable": (("value", "byte"),),
    f"{_SERDE_IO}ShortWritable": (("value", "short"),),
    f"{_SERDE_IO}DoubleWritable": (("value", "double"),),
    f"{_SERDE_IO}DateWritableV2": (("date", ANY),),
}
_INSPECTED = (
    "Boolean", "Byte", "Short", "Int", "Long", "Float", "Double", "String", "Date", "Timestamp",
    "HiveDecimal", "HiveChar", "HiveVarchar",
)  # fmt: skip
_INSPECTORS: Mapping[str, Sequence[tuple[str, str]]] = {
    f"{_INSPECTOR}primitive.{owner}{kind}ObjectInspector": fields
    for kind in _INSPECTED
    for owner, fields in (
        ("Writable", (("typeInfo", ANY),)),
        ("Java", (("typeInfo", ANY),)),
        ("WritableConstant", (("typeInfo", ANY), ("value", ANY))),
    )
}
"""What functions that were initialised before they were sent still hold; read to be left."""

_TEXT = f"{_HADOOP_IO}Text"
_TEXT_FIELDS = (("bytes", "[B"), ("length", "int"))
_OBJECTS: Mapping[str, Sequence[tuple[str, str]]] = {
    f"{_PLAN}ExprNodeGenericFuncDesc": (
        ("children", ANY), ("genericUDF", ANY), ("isSortedExpr", "boolean"), ("typeInfo", ANY),
    ),
    f"{_PLAN}ExprNodeColumnDesc": (
        ("column", "string"), ("isPartitionColOrVirtualCol", "boolean"),
        ("isSkewedCol", "boolean"), ("tabAlias", "string"), ("typeInfo", ANY),
    ),
    f"{_PLAN}ExprNodeConstantDesc": (("typeInfo", ANY), ("value", ANY)),
    f"{_TYPE}PrimitiveTypeInfo": (("typeName", "string"),),
    f"{_TYPE}DecimalTypeInfo": (("precision", "int"), ("scale", "int"), ("typeName", "string")),
    f"{_TYPE}CharTypeInfo": (("length", "int"), ("typeName", "string")),
    f"{_TYPE}VarcharTypeInfo": (("length", "int"), ("typeName", "string")),
    f"{_TYPE}StructTypeInfo": (
        ("allStructFieldNames", STRINGS), ("allStructFieldTypeInfos", ANY),
    ),
    f"{_COMMON}Date": (("localDate", "java.time.LocalDate"),),
    f"{_COMMON}Timestamp": (("localDateTime", "java.time.LocalDateTime"),),
    f"{_COMMON}HiveDecimal": _DECIMAL_FIELDS,
    f"{_COMMON}HiveChar": (("value", "string"),),
    f"{_COMMON}HiveVarchar": (("value", "string"),),
    f"{_GENERIC}GenericUDFBridge": (
        ("isOperator", "boolean"), ("udfClassName", "string"), ("udfName", "string"),
    ),
    **{
        f"{_GENERIC}{name}": (
            ("compareOI", ANY), ("compareType", _COMPARE_TYPE),
            ("opDisplayName", "string"), ("opName", "string"), ("result", ANY),
        )
        for name in _COMPARISONS
    },
    **{f"{_GENERIC}{name}": (("result", ANY),) for name in _WITH_RESULT},
    **{
        f"{_GENERIC}{name}": (("conditionConverter", ANY), ("result", ANY))
        for name in _WITH_CONVERTER
    },
    **{f"{_GENERIC}{name}": fields for name, fields in _CASTS.items()},
    **{f"{_GENERIC}{name}": fields for name, (_, fields) in _OTHERS.items()},
    **_WRITABLES,
    **_INSPECTORS,
}  # fmt: skip


def _layouts(text_fields: Sequence[tuple[str, str]]) -> Layouts:
    return Layouts(
        objects={**_OBJECTS, _TEXT: text_fields},
        lists=frozenset({"java.util.ArrayList", "java.util.LinkedList"}),
        arrays=frozenset({f"[L{_INSPECTOR}ObjectInspector;"}),
        enums={
            _COMPARE_TYPE: (
                "COMPARE_STRING", "COMPARE_TEXT", "COMPARE_INT", "COMPARE_LONG", "COMPARE_BYTE",
                "COMPARE_BOOL", "SAME_TYPE", "NEED_CONVERT",
            )
        },
    )  # fmt: skip


_VARIANTS = (_layouts((*_TEXT_FIELDS, ("textLength", "int"))), _layouts(_TEXT_FIELDS))
"""Hadoop 3.4's Text has one field more than the one before."""


def read_expression(data: bytes) -> Expression:
    """The tree in a call's bytes. Raises UnreadableError with the reason."""
    *others, last = _VARIANTS
    for layouts in others:
        with suppress(UnreadableError):
            return _Converter().expression(KryoReader(data, layouts).read())
    return _Converter().expression(KryoReader(data, last).read())


class _Converter:
    """Kryo's records to an expression; a node that is shared counts each time it is used."""

    def __init__(self) -> None:
        self._count = 0

    def expression(self, node: Any) -> Expression:
        self._counted()
        name = node.class_name if isinstance(node, KryoObject) else type(node).__name__
        if name == f"{_PLAN}ExprNodeColumnDesc":
            column = _text(node, "column")
            return ColumnReference(column.lower(), _type_text(node.fields["typeInfo"]))
        if name == f"{_PLAN}ExprNodeConstantDesc":
            return Constant(self._value(node.fields["value"]), _type_text(node.fields["typeInfo"]))
        if name == f"{_PLAN}ExprNodeGenericFuncDesc":
            return self._call(node)
        raise UnreadableError(f"{name} where an expression is due")

    def _call(self, node: KryoObject) -> Call:
        function = _function(node.fields["genericUDF"])
        children = node.fields["children"]
        if not isinstance(children, tuple):
            raise UnreadableError(f"no operands of {function}")
        return Call(
            function,
            tuple(self.expression(child) for child in children),
            _type_text(node.fields["typeInfo"]),
        )

    def _value(self, stored: Any) -> ExpressionValue:
        """A constant. Of a struct, which is a list, its members."""
        self._counted()
        if stored is None or isinstance(stored, bool | int | float | str):
            return stored
        if isinstance(stored, tuple):
            return tuple(self._value(member) for member in stored)
        if isinstance(stored, KryoObject):
            if stored.class_name == f"{_COMMON}HiveDecimal":
                return _decimal(stored.fields)
            if stored.class_name.startswith(_COMMON):
                (value,) = stored.fields.values()
                if isinstance(value, str | tuple):
                    return value
            if stored.class_name == f"{_PLAN}ExprNodeConstantDesc":
                return self._value(stored.fields["value"])
        raise UnreadableError("a constant of a class that is none of Hive's values")

    def _counted(self) -> None:
        self._count += 1
        if self._count > NODES_MAX:
            raise UnreadableError(f"the expression has more than {NODES_MAX} nodes")


def _function(udf: Any) -> Function:
    if not isinstance(udf, KryoObject):
        raise UnreadableError("a call without a function")
    function = _FUNCTIONS.get(udf.class_name)
    if udf.class_name == f"{_GENERIC}GenericUDFBridge":
        function = _BRIDGED.get(_text(udf, "udfClassName"))
    if function is None:
        raise UnreadableError(f"function {udf.fields.get('udfName') or udf.class_name}")
    return function


def _text(node: KryoObject, field: str) -> str:
    value = node.fields[field]
    if not isinstance(value, str):
        raise UnreadableError(f"no text in {field} of {node.class_name}")
    return value


def _type_text(info: Any) -> str:
    """Hive's type text; for a struct only the word."""
    if not isinstance(info, KryoObject):
        raise UnreadableError("a node without a type")
    kind = info.class_name.removeprefix(_TYPE)
    if kind == "StructTypeInfo":
        return "struct"
    if kind == "DecimalTypeInfo":
        return f"decimal({info.fields['precision']},{info.fields['scale']})"
    name = _text(info, "typeName")
    if kind in ("CharTypeInfo", "VarcharTypeInfo"):
        return f"{name.partition('(')[0]}({info.fields['length']})"
    if kind == "PrimitiveTypeInfo":
        return name
    raise UnreadableError(f"type {info.class_name}")


def _decimal(fields: Mapping[str, Any]) -> Decimal:
    """Three numbers of sixteen digits each, lowest first, a sign and a scale (FastHiveDecimal)."""
    digits = fields["fast2"] * 10**32 + fields["fast1"] * 10**16 + fields["fast0"]
    if not 0 <= fields["fastScale"] <= 38 or not 0 <= digits < 10**48:
        raise UnreadableError("a decimal of more than 38 digits")
    sign = "-" if fields["fastSignum"] < 0 else ""
    return Decimal(f"{sign}{digits}E-{fields['fastScale']}")
