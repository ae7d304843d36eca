"""Column statistics: thrift structs to records and back."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.ids import WriteId
from hms_bridge.model.statistics import (
    HIVE,
    Bound,
    ColumnStatistics,
    ObjectStatistics,
    StatisticsKind,
    StatisticsUpdate,
)
from hms_bridge.model.target import TableName
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

_NO_WRITE_ID = -1
_INNER = {StatisticsKind.DATE: "daysSinceEpoch", StatisticsKind.TIMESTAMP: "secondsSinceEpoch"}
_WITH_BOUNDS = frozenset(
    {
        StatisticsKind.LONG,
        StatisticsKind.DOUBLE,
        StatisticsKind.DECIMAL,
        StatisticsKind.DATE,
        StatisticsKind.TIMESTAMP,
    }
)
_WITH_LENGTHS = frozenset({StatisticsKind.STRING, StatisticsKind.BINARY})
_WITHOUT_DISTINCT = frozenset({StatisticsKind.BOOLEAN, StatisticsKind.BINARY})
_DIGITS_MAX = 1000
"""More than any Hive type has; a scale beyond it would fill the memory when written out."""
_EXACT = Context(prec=2 * _DIGITS_MAX, Emax=10 * _DIGITS_MAX, Emin=-10 * _DIGITS_MAX)


def statistics_to_struct(of: ColumnStatistics) -> Struct:
    """A ColumnStatisticsObj struct."""
    fields: dict[str, Any] = {"numNulls": of.null_count, "bitVectors": of.bit_vector}
    if of.kind in _WITH_BOUNDS:
        fields |= {
            "lowValue": _bound_to_wire(of.kind, of.low),
            "highValue": _bound_to_wire(of.kind, of.high),
            "histogram": of.histogram,
        }
    if of.kind in _WITH_LENGTHS:
        fields |= {"maxColLen": of.length_max or 0, "avgColLen": of.average_length or 0.0}
    if of.kind is StatisticsKind.BOOLEAN:
        fields |= {"numTrues": of.true_count or 0, "numFalses": of.false_count or 0}
    if of.kind not in _WITHOUT_DISTINCT:
        fields["numDVs"] = of.distinct_count or 0
    known = {name: value for name, value in fields.items() if value is not None}
    data = getattr(hive, _struct_name(of.kind))(**known)
    return hive.ColumnStatisticsObj(
        colName=of.column,
        colType=of.type,
        statsData=hive.ColumnStatisticsData(**{of.kind.value: data}),
    )


def statistics_from_struct(struct: Struct) -> ColumnStatistics:
    """Statistics of a column. Raises InvalidObjectError for none, or for more than one kind."""
    column = given_name(struct.colName, "colName")
    data = given(struct.statsData, "statsData")
    kinds = [kind for kind in StatisticsKind if getattr(data, kind.value) is not None]
    if len(kinds) != 1:
        raise InvalidObjectError(
            f"the statistics of column {column} have {len(kinds)} kinds of values; send one"
        )
    kind, values = kinds[0], getattr(data, kinds[0].value)
    has_bounds, has_lengths = kind in _WITH_BOUNDS, kind in _WITH_LENGTHS
    return ColumnStatistics(
        column=column,
        type=given_name(struct.colType, f"colType of column {column}"),
        kind=kind,
        low=_bound_from_wire(kind, column, values.lowValue) if has_bounds else None,
        high=_bound_from_wire(kind, column, values.highValue) if has_bounds else None,
        null_count=values.numNulls or 0,
        distinct_count=None if kind in _WITHOUT_DISTINCT else values.numDVs or 0,
        average_length=values.avgColLen if has_lengths else None,
        length_max=values.maxColLen if has_lengths else None,
        true_count=values.numTrues if kind is StatisticsKind.BOOLEAN else None,
        false_count=values.numFalses if kind is StatisticsKind.BOOLEAN else None,
        bit_vector=values.bitVectors or None,
        histogram=(values.histogram or None) if has_bounds else None,
    )


def statistics_to_structs(columns: Iterable[ColumnStatistics]) -> list[Struct]:
    """ColumnStatisticsObj structs."""
    return [statistics_to_struct(column) for column in columns]


def object_to_struct(
    statistics: ObjectStatistics, *, database: str, table: str, catalog: str, engine: str
) -> Struct:
    """A ColumnStatistics struct."""
    description = hive.ColumnStatisticsDesc(
        isTblLevel=statistics.partition_name is None,
        dbName=database,
        tableName=table,
        catName=catalog,
        partName=statistics.partition_name,
        lastAnalyzed=statistics.analyzed_seconds,
    )
    return hive.ColumnStatistics(
        statsDesc=description,
        statsObj=statistics_to_structs(statistics.columns),
        isStatsCompliant=statistics.is_compliant,
        engine=engine,
    )


def object_from_struct(struct: Struct) -> ObjectStatistics:
    """Statistics of a table or partition. Raises InvalidObjectError."""
    description = given(struct.statsDesc, "statsDesc")
    partition = None
    if not description.isTblLevel:
        partition = given(description.partName, "partName of the statistics of a partition")
    return ObjectStatistics(
        columns=tuple(
            statistics_from_struct(column) for column in given(struct.statsObj, "statsObj")
        ),
        partition_name=partition,
        analyzed_seconds=description.lastAnalyzed,
        is_compliant=struct.isStatsCompliant,
    )


def update_from_struct(request: Struct) -> StatisticsUpdate | None:
    """From a SetPartitionsStatsRequest; None for one without statistics.

    Raises InvalidObjectError for statistics of more than one table.
    """
    structs = given(request.colStats, "colStats")
    if not structs:
        return None
    update = _update(
        structs,
        engine=request.engine or structs[0].engine or HIVE,
        is_merge=bool(request.needMerge),
        write_id=WriteId(_NO_WRITE_ID if request.writeId is None else request.writeId),
        valid_write_ids=request.validWriteIdList,
    )
    if len(update.objects) > 1 and update.objects[0].partition_name is None:
        # As Hive refuses it (SetAggrStatsHandler).
        raise InvalidObjectError(
            "Expecting only 1 ColumnStatistics for table's column stats, but find "
            f"{len(update.objects)}"
        )
    return update


def update_of_one(struct: Struct) -> StatisticsUpdate:
    """From one ColumnStatistics struct, as the older calls send it."""
    return _update((struct,), engine=struct.engine or HIVE)


def update_to_struct(update: StatisticsUpdate) -> Struct:
    """A SetPartitionsStatsRequest."""
    name = {
        "database": update.database_name,
        "table": update.table_name,
        "catalog": update.catalog_name,
        "engine": update.engine,
    }
    return hive.SetPartitionsStatsRequest(
        colStats=[object_to_struct(statistics, **name) for statistics in update.objects],
        needMerge=update.is_merge,
        writeId=update.write_id,
        validWriteIdList=update.valid_write_ids,
        engine=update.engine,
    )


def _update(structs: Iterable[Struct], **more: Any) -> StatisticsUpdate:
    listed = list(structs)
    names = {_table_of(given(struct.statsDesc, "statsDesc")) for struct in listed}
    if len(names) != 1:
        raise InvalidObjectError("statistics of several tables were sent; send those of one")
    name = names.pop()
    return StatisticsUpdate(
        catalog_name=name.catalog,
        database_name=name.database,
        table_name=name.table,
        objects=tuple(object_from_struct(struct) for struct in listed),
        **more,
    )


def _table_of(description: Struct) -> TableName:
    catalog, database = split_catalog(given(description.dbName, "dbName"))
    in_struct = description.catName or catalog or DEFAULT_CATALOG
    table = given_name(description.tableName, "tableName")
    return TableName(database or "", table, in_struct.lower())


def _struct_name(kind: StatisticsKind) -> str:
    return f"{kind.name.capitalize()}ColumnStatsData"


def _bound_to_wire(kind: StatisticsKind, value: Bound | None) -> Any:
    if value is None:
        return None
    if kind is StatisticsKind.DECIMAL:
        return _decimal_to_struct(str(value))
    inner = _INNER.get(kind)
    return value if inner is None else getattr(hive, kind.name.capitalize())(**{inner: value})


def _bound_from_wire(kind: StatisticsKind, column: str, value: Any) -> Bound | None:
    if value is None:
        return None
    if kind is StatisticsKind.DECIMAL:
        return _decimal_from_struct(column, value)
    inner = _INNER.get(kind)
    bound: Bound | None = value if inner is None else getattr(value, inner)
    return bound


def _decimal_from_struct(column: str, struct: Struct) -> str:
    """As Java's BigDecimal writes it (DecimalUtils.createJdoDecimalString)."""
    unscaled, scale = struct.unscaled or b"", struct.scale or 0
    if abs(scale) > _DIGITS_MAX or len(unscaled) > _DIGITS_MAX:
        raise InvalidObjectError(f"a bound of column {column} is no decimal number of Hive")
    return str(Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, _EXACT))


def _decimal_to_struct(text: str) -> Struct | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None  # nothing is known where another program wrote something else
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > _DIGITS_MAX:
        return None
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    # As long as Java's BigInteger.toByteArray makes it, with room for the sign.
    size = (unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()) // 8 + 1
    return hive.Decimal(unscaled=unscaled.to_bytes(size, "big", signed=True), scale=-exponent)
