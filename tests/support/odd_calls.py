"""Calls of which something is missing, empty or wrong: what two real Hives did with each stands in
tests/golden/wire/odd-calls.tsv.gz, written by integration/recorded/odd_calls.py."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hms_bridge.wire.structs import Struct, hive
from tests.support.golden_wire import FOLDER
from tests.support.wire_answers import Thrown

FILE = FOLDER / "odd-calls.tsv.gz"
HEADER = "method\tcall\t4.0.1\t4.2.0"

DATABASE, TABLE, VIEW, PLAIN = "odd", "t", "v", "plain"
"""The table has partitions 1/1 and 2/1 of keys ds and hr."""
INVALID = "inv@lid"


def recorded_lines() -> list[str]:
    """Of the file, with the header."""
    return gzip.decompress(FILE.read_bytes()).decode().splitlines()


def record(lines: list[str]) -> None:
    """Write the file."""
    FILE.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


Send = Callable[..., Any]
"""Sends a method by its name and its arguments by theirs; what it answers."""
_UNSET = object()


@dataclass(frozen=True)
class OddCall:
    """One call. ``before`` makes what it is about."""

    label: str
    method: str
    arguments: dict[str, Any]
    before: tuple[tuple[str, dict[str, Any]], ...] = field(default=())

    def outcome(self, send: Send) -> str:
        """The class that was thrown, or "answered"."""
        for method, arguments in self.before:
            send(method, **arguments)
        answer = send(self.method, **self.arguments)
        return answer.cls if isinstance(answer, Thrown) else "answered"


def storage(place: str | None = None) -> Struct:
    return hive.StorageDescriptor(
        cols=[hive.FieldSchema(name="c", type="int")], location=place, compressed=False,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat", numBuckets=-1,
        serdeInfo=hive.SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
        ),
        bucketCols=[], sortCols=[], parameters={},
    )  # fmt: skip


def table(name: str = TABLE, *keys: str, **fields: Any) -> Struct:
    whole = {
        "dbName": DATABASE, "tableName": name, "owner": "ann", "tableType": "EXTERNAL_TABLE",
        "sd": storage(), "partitionKeys": [hive.FieldSchema(name=k, type="string") for k in keys],
        "parameters": {"EXTERNAL": "TRUE"}, **fields,
    }  # fmt: skip
    return hive.Table(**_set(whole))


def partition(*values: str, of: str = TABLE, **fields: Any) -> Struct:
    whole = {
        "dbName": DATABASE, "tableName": of, "values": list(values), "sd": storage(),
        "parameters": {}, **fields,
    }  # fmt: skip
    return hive.Partition(**_set(whole))


def make(send: Send) -> None:
    """The database, its tables and a view."""
    send("create_database", database=hive.Database(name=DATABASE, parameters={}))
    send("create_table", tbl=table(TABLE, "ds", "hr"))
    send("create_table", tbl=table(PLAIN))
    send("create_table", tbl=_view(VIEW, "ds"))
    send("add_partitions", new_parts=[partition("1", "1"), partition("2", "1")])


def odd_calls(folder: str) -> Iterator[OddCall]:
    """Each is about things of its own, whatever came of those before it; tables and partitions that
    change lie in the folder."""
    for made in (_reads, _requests, _tables, _additions, _appended, _drops, _others):
        yield from made()
    for placed in (_alterations, _changes):
        yield from placed(folder)


def _view(name: str, *keys: str) -> Struct:
    return table(
        name, *keys, tableType="VIRTUAL_VIEW", parameters={},
        viewOriginalText="select 1", viewExpandedText="select 1",
    )  # fmt: skip


def _set(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not _UNSET}


def _without_each(method: str, base: dict[str, Any], *empty: str) -> Iterator[OddCall]:
    """Without an argument each, and with an empty text for some."""
    for name in base:
        yield OddCall(f"no {name}", method, {k: v for k, v in base.items() if k != name})
    for name in empty:
        yield OddCall(f"empty {name}", method, {**base, name: ""})


def _of_request(
    method: str, argument: str, struct: str, base: dict[str, Any], *empty: str
) -> Iterator[OddCall]:
    for call in _without_each(method, base, *empty):
        request = getattr(hive, struct)(**call.arguments)
        yield OddCall(call.label, method, {argument: request})


_OF_T = {"db_name": DATABASE, "tbl_name": TABLE}
_VALUES = {**_OF_T, "part_vals": ["1", "1"]}
_AUTH = {"user_name": "u", "group_names": ["g"]}
_NAMED = {**_OF_T, "part_name": "ds=1/hr=1"}


def _reads() -> Iterator[OddCall]:
    names = ("db_name", "tbl_name")
    yield from _without_each(
        "get_table", {"dbname": DATABASE, "tbl_name": TABLE}, "dbname", "tbl_name"
    )
    yield from _without_each(
        "get_tables", {"db_name": DATABASE, "pattern": "*"}, "db_name", "pattern"
    )
    yield from _without_each("get_all_tables", {"db_name": DATABASE}, "db_name")
    yield from _without_each(
        "get_tables_by_type",
        {"db_name": DATABASE, "pattern": "*", "tableType": "EXTERNAL_TABLE"},
        *("db_name", "pattern", "tableType"),
    )
    yield from _without_each(
        "get_table_meta",
        {"db_patterns": "*", "tbl_patterns": "*", "tbl_types": []},
        "db_patterns",
        "tbl_patterns",
    )
    yield from _without_each(
        "get_table_names_by_filter",
        {"dbname": DATABASE, "filter": 'hive_filter_field_owner__ = "ann"', "max_tables": -1},
        "dbname",
        "filter",
    )
    yield from _without_each(
        "get_table_objects_by_name", {"dbname": DATABASE, "tbl_names": [TABLE]}, "dbname"
    )
    for method in ("get_fields", "get_schema"):
        yield from _without_each(
            method, {"db_name": DATABASE, "table_name": TABLE}, "db_name", "table_name"
        )
    yield from _without_each("get_database", {"name": DATABASE}, "name")
    yield from _without_each("get_databases", {"pattern": "*"}, "pattern")
    yield from _without_each("get_partition", _VALUES, *names)
    yield from _without_each("get_partition_by_name", _NAMED, *names, "part_name")
    yield from _without_each("get_partition_with_auth", {**_VALUES, **_AUTH}, *names, "user_name")
    for method in ("get_partitions", "get_partition_names", "get_partitions_pspec"):
        yield from _without_each(method, {**_OF_T, "max_parts": -1}, *names)
    yield from _without_each(
        "get_partitions_with_auth", {**_OF_T, "max_parts": -1, **_AUTH}, *names
    )
    for method in ("get_partitions_ps", "get_partition_names_ps"):
        yield from _without_each(method, {**_VALUES, "max_parts": -1}, *names)
    yield from _without_each(
        "get_partitions_ps_with_auth", {**_VALUES, "max_parts": -1, **_AUTH}, *names
    )
    yield from _without_each("get_partitions_by_names", {**_OF_T, "names": ["ds=1/hr=1"]}, *names)
    for method in ("get_partitions_by_filter", "get_part_specs_by_filter"):
        yield from _without_each(
            method, {**_OF_T, "filter": 'ds = "1"', "max_parts": -1}, *names, "filter"
        )
    yield from _without_each(
        "get_num_partitions_by_filter", {**_OF_T, "filter": 'ds = "1"'}, *names, "filter"
    )
    for count in (0, 1, 3):
        values = {**_OF_T, "part_vals": ["1", "1", "1"][:count]}
        label = f"{count} values of 2"
        yield OddCall(label, "get_partition", values)
        yield OddCall(label, "get_partition_with_auth", {**values, **_AUTH})
        for method in ("get_partitions_ps", "get_partition_names_ps"):
            yield OddCall(label, method, {**values, "max_parts": -1})
        yield OddCall(label, "get_partitions_ps_with_auth", {**values, "max_parts": -1, **_AUTH})
    for name in ("nope", VIEW, PLAIN):
        of = {"db_name": DATABASE, "tbl_name": name}
        for method in ("get_partitions", "get_partition_names", "get_partitions_pspec"):
            yield OddCall(f"of {name}", method, {**of, "max_parts": -1})
        yield OddCall(f"of {name}", "get_partitions_with_auth", {**of, "max_parts": -1, **_AUTH})
        yield OddCall(
            f"of {name}", "get_partitions_ps", {**of, "part_vals": ["1"], "max_parts": -1}
        )
        yield OddCall(
            f"of {name}", "get_partition_names_ps", {**of, "part_vals": ["1"], "max_parts": -1}
        )
        yield OddCall(
            f"of {name}",
            "get_partitions_ps_with_auth",
            {**of, "part_vals": ["1"], "max_parts": -1, **_AUTH},
        )
        yield OddCall(f"of {name}", "get_partitions_by_names", {**of, "names": ["ds=1/hr=1"]})
        yield OddCall(
            f"of {name}", "get_partitions_by_filter", {**of, "filter": 'ds = "1"', "max_parts": -1}
        )
        yield OddCall(f"of {name}", "get_num_partitions_by_filter", {**of, "filter": 'ds = "1"'})
        yield OddCall(f"of {name}", "get_partition", {**of, "part_vals": ["1", "1"]})
        yield OddCall(f"of {name}", "get_partition_by_name", {**of, "part_name": "ds=1/hr=1"})
    for method in ("partition_name_to_vals", "partition_name_to_spec"):
        for label, text in (
            ("no", _UNSET),
            ("empty", ""),
            ("no key in the", "1"),
            ("key alone as", "ds="),
        ):
            yield OddCall(f"{label} name", method, _set({"part_name": text}))


def _requests() -> Iterator[OddCall]:
    of_t = {"catName": "hive", "dbName": DATABASE, "tblName": TABLE}
    names = ("catName", "dbName", "tblName")
    yield from _of_request("get_table_req", "req", "GetTableRequest", of_t, *names)
    yield from _of_request(
        "get_table_objects_by_name_req",
        "req",
        "GetTablesRequest",
        {"catName": "hive", "dbName": DATABASE, "tblNames": [TABLE]},
        "catName",
        "dbName",
    )
    yield from _of_request(
        "get_partition_req", "req", "GetPartitionRequest", {**of_t, "partVals": ["1", "1"]}, *names
    )
    yield from _of_request(
        "get_partitions_req", "req", "PartitionsRequest", {**of_t, "maxParts": -1}, *names
    )
    yield from _of_request(
        "get_partitions_by_names_req",
        "req",
        "GetPartitionsByNamesRequest",
        {"db_name": DATABASE, "tbl_name": TABLE, "names": ["ds=1/hr=1"]},
        "db_name",
        "tbl_name",
    )
    yield from _of_request(
        "get_partitions_ps_with_auth_req",
        "req",
        "GetPartitionsPsWithAuthRequest",
        {**of_t, "partVals": ["1", "1"], "maxParts": -1, "userName": "u", "groupNames": ["g"]},
        *names,
    )
    yield from _of_request(
        "get_partition_names_ps_req",
        "req",
        "GetPartitionNamesPsRequest",
        {**of_t, "partValues": ["1", "1"], "maxParts": -1},
        *names,
    )
    for method in ("get_fields_req", "get_schema_req"):
        struct = "GetFieldsRequest" if "fields" in method else "GetSchemaRequest"
        yield from _of_request(method, "req", struct, of_t, *names)
    yield from _of_request(
        "get_database_req",
        "request",
        "GetDatabaseRequest",
        {"name": DATABASE, "catalogName": "hive"},
        "name",
    )
    for name in ("nope", VIEW, PLAIN):
        of = {"catName": "hive", "dbName": DATABASE, "tblName": name}
        for method, struct, more in (
            ("get_partitions_req", "PartitionsRequest", {"maxParts": -1}),
            ("fetch_partition_names_req", "PartitionsRequest", {"maxParts": -1}),
            ("get_partition_req", "GetPartitionRequest", {"partVals": ["1", "1"]}),
            (
                "get_partitions_ps_with_auth_req",
                "GetPartitionsPsWithAuthRequest",
                {"partVals": ["1"]},
            ),
            ("get_partition_names_ps_req", "GetPartitionNamesPsRequest", {"partValues": ["1"]}),
        ):
            argument = "partitionReq" if method.startswith("fetch") else "req"
            request = getattr(hive, struct)(**of, **more)
            yield OddCall(f"of {name}", method, {argument: request})
    for count in (0, 1, 3):
        of = {"catName": "hive", "dbName": DATABASE, "tblName": TABLE}
        values = ["1", "1", "1"][:count]
        for method, struct, more in (
            ("get_partition_req", "GetPartitionRequest", {"partVals": values}),
            (
                "get_partitions_ps_with_auth_req",
                "GetPartitionsPsWithAuthRequest",
                {"partVals": values},
            ),
            ("get_partition_names_ps_req", "GetPartitionNamesPsRequest", {"partValues": values}),
        ):
            request = getattr(hive, struct)(**of, **more)
            yield OddCall(f"{count} values of 2", method, {"req": request})
    for projected in ([], ["dbName", "tableName"], ["sd.location"], ["nope"], [""]):
        spec = hive.GetProjectionsSpec(fieldList=projected)
        request = hive.GetTablesRequest(dbName=DATABASE, tblNames=[TABLE], projectionSpec=spec)
        yield OddCall(f"fields {projected}", "get_table_objects_by_name_req", {"req": request})


def _odd_tables() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """A label, fields of a table, fields of its storage."""
    for name in ("dbName", "tableName"):
        yield f"no {name}", {name: _UNSET}, {}
        for value in ("", INVALID, "nope", "a b", "a.b", "a-b"):
            yield f"{name} {value!r}", {name: value}, {}
    yield "no sd", {"sd": _UNSET}, {}
    for name in (
        "cols",
        "serdeInfo",
        "location",
        "inputFormat",
        "bucketCols",
        "sortCols",
        "parameters",
    ):
        yield f"no sd.{name}", {}, {name: None}
    yield "empty serdeInfo", {}, {"serdeInfo": hive.SerDeInfo()}
    yield "empty location", {}, {"location": ""}
    for label, column in (
        ("no name", hive.FieldSchema(type="int")),
        ("no type", hive.FieldSchema(name="c")),
        ("type xyz", hive.FieldSchema(name="c", type="xyz")),
        ("empty name", hive.FieldSchema(name="", type="int")),
        ("empty type", hive.FieldSchema(name="c", type="")),
        ("an odd name", hive.FieldSchema(name=INVALID, type="int")),
    ):
        yield f"column of {label}", {}, {"cols": [column]}
        yield f"key of {label}", {"partitionKeys": [column]}, {}
    yield "no columns", {}, {"cols": []}
    for name in ("partitionKeys", "parameters", "tableType", "owner"):
        yield f"no {name}", {name: _UNSET}, {}
    yield "type nope", {"tableType": "nope"}, {}
    yield "catalog nope", {"catName": "nope"}, {}
    yield "catalog inv", {"catName": INVALID}, {}


def _odd_table(
    name: str, fields: dict[str, Any], of_sd: dict[str, Any], place: str | None = None
) -> Struct:
    sd = hive.StorageDescriptor(**{**vars(storage(place)), **of_sd})
    return table(name, **{"sd": sd, **fields})


def _tables() -> Iterator[OddCall]:
    for number, (label, fields, of_sd) in enumerate(_odd_tables()):
        struct = _odd_table(f"c{number}", fields, of_sd)
        yield OddCall(label, "create_table", {"tbl": struct})
        request = hive.CreateTableRequest(table=_odd_table(f"r{number}", fields, of_sd))
        yield OddCall(label, "create_table_req", {"request": request})
    yield OddCall("no tbl", "create_table", {})


def _alterations(folder: str) -> Iterator[OddCall]:
    for number, (label, fields, of_sd) in enumerate(_odd_tables()):
        for form in ("plain", "req"):
            name = f"a{number}_{form}"
            place = f"{folder}/{name}"
            before = (("create_table", {"tbl": table(name, sd=storage(place))}),)
            struct = _odd_table(name, fields, of_sd, place)
            if form == "plain":
                given = {"dbname": DATABASE, "tbl_name": name, "new_tbl": struct}
                yield OddCall(label, "alter_table", given, before)
            else:
                request = hive.AlterTableRequest(
                    catName="hive", dbName=DATABASE, tableName=name, table=struct
                )
                yield OddCall(label, "alter_table_req", {"req": request}, before)
    given = {"dbname": DATABASE, "tbl_name": TABLE, "new_tbl": table(TABLE, "ds", "hr")}
    yield from _without_each("alter_table", given, "dbname", "tbl_name")
    for method in ("alter_table_with_cascade", "alter_table_with_environment_context"):
        yield from _without_each(method, given)
    of_request = {
        "catName": "hive",
        "dbName": DATABASE,
        "tableName": "nope",
        "table": table("nope"),
    }
    yield from _of_request(
        "alter_table_req", "req", "AlterTableRequest", of_request, "dbName", "tableName"
    )


def _odd_partitions() -> Iterator[tuple[str, dict[str, Any]]]:
    """A label, and fields of a partition; of its storage below ``sd``."""
    for name in ("dbName", "tableName", "values", "sd", "parameters"):
        yield f"no {name}", {name: _UNSET}
    for name in ("dbName", "tableName"):
        yield f"empty {name}", {name: ""}
        yield f"{name} nope", {name: "nope"}
    for name in ("cols", "serdeInfo", "location", "parameters", "bucketCols"):
        yield f"no sd.{name}", {"sd": {name: None}}
    yield "empty serdeInfo", {"sd": {"serdeInfo": hive.SerDeInfo()}}
    yield "empty location", {"sd": {"location": ""}}
    yield "column of no type", {"sd": {"cols": [hive.FieldSchema(name="c")]}}
    yield "column of no name", {"sd": {"cols": [hive.FieldSchema(type="int")]}}
    yield "column of type xyz", {"sd": {"cols": [hive.FieldSchema(name="c", type="xyz")]}}
    yield "catalog nope", {"catName": "nope"}
    for values in ([], [""], ["", ""], ["9"], ["9", ""], ["9", "9", "9"]):
        yield f"values {values}", {"values": values}
    yield "a view's", {"tableName": VIEW, "values": ["1"]}
    yield "a plain table's", {"tableName": PLAIN}


def _odd_partition(number: int, fields: dict[str, Any], place: str | None = None) -> Struct:
    own = {"values": [str(number), "1"], "sd": {}, **fields}
    if isinstance(own["sd"], dict):
        own["sd"] = hive.StorageDescriptor(**{**vars(storage(place)), **own["sd"]})
    return partition(**own)


def _additions() -> Iterator[OddCall]:
    for number, (label, fields) in enumerate(_odd_partitions()):
        yield OddCall(label, "add_partition", {"new_part": _odd_partition(100 + number, fields)})
        yield OddCall(
            label, "add_partitions", {"new_parts": [_odd_partition(200 + number, fields)]}
        )
        named = {"dbName": DATABASE, "tblName": fields.get("tableName", TABLE)}
        if named["tblName"] in (_UNSET, "", "nope"):
            named["tblName"] = TABLE
        request = hive.AddPartitionsRequest(
            **named, parts=[_odd_partition(300 + number, fields)], ifNotExists=False
        )
        yield OddCall(label, "add_partitions_req", {"request": request})
        spec = hive.PartitionSpec(
            dbName=named["dbName"],
            tableName=named["tblName"],
            rootPath="",
            catName="hive",
            partitionList=hive.PartitionListComposingSpec(
                partitions=[_odd_partition(400 + number, fields)]
            ),
        )
        yield OddCall(label, "add_partitions_pspec", {"new_parts": [spec]})
    yield OddCall("no part", "add_partition", {})
    yield OddCall("no parts", "add_partitions", {})
    yield OddCall("empty parts", "add_partitions", {"new_parts": []})
    yield OddCall("no parts", "add_partitions_pspec", {})
    yield OddCall("empty parts", "add_partitions_pspec", {"new_parts": []})
    twice = [partition("900", "1"), partition("900", "1")]
    yield OddCall("one twice", "add_partitions", {"new_parts": twice})
    two = [partition("901", "1"), partition("901", of=PLAIN)]
    yield OddCall("of two tables", "add_partitions", {"new_parts": two})


def _appended() -> Iterator[OddCall]:
    yield from _without_each(
        "append_partition", {**_OF_T, "part_vals": ["500", "1"]}, "db_name", "tbl_name"
    )
    yield from _without_each(
        "append_partition_by_name",
        {**_OF_T, "part_name": "ds=501/hr=1"},
        "db_name",
        "tbl_name",
        "part_name",
    )
    for values in ([], [""], ["", ""], ["9"], ["502", ""], ["9", "9", "9"]):
        yield OddCall(f"values {values}", "append_partition", {**_OF_T, "part_vals": values})
    for name in (VIEW, PLAIN, "nope"):
        yield OddCall(
            f"of {name}",
            "append_partition",
            {"db_name": DATABASE, "tbl_name": name, "part_vals": ["1"]},
        )
        yield OddCall(
            f"of {name}",
            "append_partition_by_name",
            {"db_name": DATABASE, "tbl_name": name, "part_name": "ds=1"},
        )
    of_t = {"catalogName": "hive", "dbName": DATABASE, "tableName": TABLE}
    yield from _of_request(
        "append_partition_req",
        "appendPartitionsReq",
        "AppendPartitionsRequest",
        {**of_t, "name": "ds=504/hr=1"},
        "dbName",
        "tableName",
        "catalogName",
        "name",
    )
    yield from _of_request(
        "append_partition_req",
        "appendPartitionsReq",
        "AppendPartitionsRequest",
        {**of_t, "partVals": ["505", "1"]},
        "dbName",
        "tableName",
        "catalogName",
    )
    for values in ([], [""], ["9"], ["506", ""], ["9", "9", "9"]):
        request = hive.AppendPartitionsRequest(**of_t, partVals=values)
        yield OddCall(f"values {values}", "append_partition_req", {"appendPartitionsReq": request})
    request = hive.AppendPartitionsRequest(**{**of_t, "tableName": VIEW}, partVals=["1"])
    yield OddCall(f"of {VIEW}", "append_partition_req", {"appendPartitionsReq": request})
    for text in (
        "1",
        "ds=503",
        "hr=1/ds=503",
        "ds=",
        "ds=503/hr=",
        "nope=1",
        "ds=503/hr=1/x=1",
        "ds=503/nope=1",
    ):
        yield OddCall(f"name {text}", "append_partition_by_name", {**_OF_T, "part_name": text})


def _changes(folder: str) -> Iterator[OddCall]:
    methods = ("alter_partition", "alter_partitions", "rename_partition", "alter_partitions_req",
               "rename_partition_req")  # fmt: skip
    for number, (label, fields) in enumerate(_odd_partitions()):
        for first, method in enumerate(methods):
            values = [str(1000 * (first + 1) + number), "1"]
            place = f"{folder}/{values[0]}"
            struct = _odd_partition(int(values[0]), fields, place)
            before = (("add_partition", {"new_part": partition(*values, sd=storage(place))}),)
            yield OddCall(label, method, _change(method, values, struct), before)
    part = partition("1", "1")
    yield from _without_each("alter_partition", {**_OF_T, "new_part": part}, "db_name", "tbl_name")
    yield from _without_each(
        "alter_partitions", {**_OF_T, "new_parts": [part]}, "db_name", "tbl_name"
    )
    yield from _without_each(
        "rename_partition", {**_VALUES, "new_part": partition("1", "2")}, "db_name", "tbl_name"
    )
    for values in ([], ["1"], ["9", "9"], ["1", "1", "1"]):
        given = {**_OF_T, "part_vals": values, "new_part": partition("1", "3")}
        yield OddCall(f"old values {values}", "rename_partition", given)
    yield OddCall("none", "alter_partitions", {**_OF_T, "new_parts": []})
    yield OddCall("missing", "alter_partition", {**_OF_T, "new_part": partition("nope", "1")})
    for name in ("nope", VIEW, PLAIN):
        yield OddCall(
            f"of {name}",
            "alter_partition",
            {"db_name": DATABASE, "tbl_name": name, "new_part": partition("1", of=name)},
        )
        yield OddCall(
            f"of {name}",
            "rename_partition",
            {
                "db_name": DATABASE,
                "tbl_name": name,
                "part_vals": ["1"],
                "new_part": partition("2", of=name),
            },
        )


def _change(method: str, values: list[str], struct: Struct) -> dict[str, Any]:
    of_t = {"catName": "hive", "dbName": DATABASE, "tableName": TABLE}
    match method:
        case "alter_partition":
            return {**_OF_T, "new_part": struct}
        case "alter_partitions":
            return {**_OF_T, "new_parts": [struct]}
        case "rename_partition":
            return {**_OF_T, "part_vals": values, "new_part": struct}
        case "alter_partitions_req":
            return {"req": hive.AlterPartitionsRequest(**of_t, partitions=[struct])}
    return {"req": hive.RenamePartitionRequest(**of_t, partVals=values, newPart=struct)}


def _drops() -> Iterator[OddCall]:
    yield from _without_each(
        "drop_partition", {**_VALUES, "deleteData": False}, "db_name", "tbl_name"
    )
    yield from _without_each(
        "drop_partition_by_name",
        {**_NAMED, "deleteData": False},
        "db_name",
        "tbl_name",
        "part_name",
    )
    for values in ([], [""], ["1"], ["9", "9"], ["1", "1", "1"]):
        yield OddCall(
            f"values {values}",
            "drop_partition",
            {**_OF_T, "part_vals": values, "deleteData": False},
        )
    for text in ("1", "ds=1", "nope=1", "ds=9/hr=9", "ds=1/hr=1/x=1"):
        yield OddCall(
            f"name {text}",
            "drop_partition_by_name",
            {**_OF_T, "part_name": text, "deleteData": False},
        )
    for name in ("nope", VIEW, PLAIN):
        yield OddCall(
            f"of {name}",
            "drop_partition",
            {"db_name": DATABASE, "tbl_name": name, "part_vals": ["1"], "deleteData": False},
        )
    yield from _without_each(
        "drop_table", {"dbname": DATABASE, "name": "nope", "deleteData": False}, "dbname", "name"
    )
    yield from _without_each(
        "truncate_table",
        {"dbName": DATABASE, "tableName": "nope", "partNames": []},
        "dbName",
        "tableName",
    )
    yield from _of_request(
        "drop_database_req",
        "req",
        "DropDatabaseRequest",
        {
            "name": "nope",
            "catalogName": "hive",
            "deleteData": False,
            "cascade": False,
            "ignoreUnknownDb": False,
        },
        "name",
        "catalogName",
    )
    yield from _of_request(
        "drop_table_req",
        "dropTableReq",
        "DropTableRequest",
        {"catalogName": "hive", "dbName": DATABASE, "tableName": "nope", "deleteData": False},
        "dbName",
        "tableName",
        "catalogName",
    )
    yield from _of_request(
        "truncate_table_req",
        "req",
        "TruncateTableRequest",
        {"dbName": DATABASE, "tableName": "nope", "partNames": []},
        "dbName",
        "tableName",
    )
    of_partition = {"catName": "hive", "dbName": DATABASE, "tblName": TABLE, "deleteData": False}
    yield from _of_request(
        "drop_partition_req",
        "dropPartitionReq",
        "DropPartitionRequest",
        {**of_partition, "partName": "ds=9/hr=9"},
        "dbName",
        "tblName",
        "catName",
        "partName",
    )
    yield from _of_request(
        "drop_partition_req",
        "dropPartitionReq",
        "DropPartitionRequest",
        {**of_partition, "partVals": ["9", "9"]},
        "dbName",
        "tblName",
        "catName",
    )
    parts = hive.RequestPartsSpec(names=["ds=9/hr=9"])
    yield from _of_request(
        "drop_partitions_req",
        "req",
        "DropPartitionsRequest",
        {
            "catName": "hive",
            "dbName": DATABASE,
            "tblName": TABLE,
            "parts": parts,
            "ifExists": False,
        },
        "dbName",
        "tblName",
        "catName",
    )
    yield from _without_each(
        "drop_database", {"name": "nope", "deleteData": False, "cascade": False}, "name"
    )


def _others() -> Iterator[OddCall]:
    for label, fields in (
        ("no name", {}),
        ("empty name", {"name": ""}),
        (INVALID, {"name": INVALID}),
        ("no such catalog", {"name": "d1", "catalogName": "nope"}),
        ("a dot", {"name": "a.b"}),
        ("a dash", {"name": "a-b"}),
    ):
        yield OddCall(label, "create_database", {"database": hive.Database(**fields)})
        made = {
            "databaseName": f"{fields['name']}_r" if fields.get("name") else fields.get("name"),
            "catalogName": fields.get("catalogName"),
        }
        request = hive.CreateDatabaseRequest(**{k: v for k, v in made.items() if v is not None})
        yield OddCall(label, "create_database_req", {"createDatabaseRequest": request})
        catalog = hive.Catalog(name=fields.get("name"), locationUri="file:/nowhere")
        request = hive.CreateCatalogRequest(catalog=catalog)
        if "catalogName" not in fields and fields.get("name") != "a-b":
            yield OddCall(label, "create_catalog", {"catalog": request})
    yield OddCall("no database", "create_database", {})
    for label, fields in (
        ("no name", {}),
        ("empty name", {"name": ""}),
        ("another name", {"name": "other"}),
    ):
        yield OddCall(
            label,
            "alter_database",
            {"dbname": DATABASE, "db": hive.Database(parameters={}, **fields)},
        )
        request = hive.AlterDatabaseRequest(
            oldDbName=DATABASE, newDb=hive.Database(parameters={}, **fields)
        )
        yield OddCall(label, "alter_database_req", {"alterDbReq": request})
    yield from _without_each(
        "alter_database", {"dbname": "nope", "db": hive.Database(name="nope")}, "dbname"
    )
    function = {
        "functionName": "f",
        "dbName": DATABASE,
        "className": "C",
        "ownerName": "u",
        "ownerType": 1,
        "functionType": 1,
        "resourceUris": [],
    }
    for name in function:
        made = {**function, "functionName": f"f_{name}".lower()}
        yield OddCall(
            f"no {name}",
            "create_function",
            {"func": hive.Function(**{k: v for k, v in made.items() if k != name})},
        )
    for name, value in (
        ("functionName", ""),
        ("functionName", INVALID),
        ("dbName", "nope"),
        ("dbName", ""),
        ("className", ""),
    ):
        made = {**function, "functionName": f"g_{name}{value}".lower(), name: value}
        yield OddCall(f"{name} {value!r}", "create_function", {"func": hive.Function(**made)})
    yield OddCall("no func", "create_function", {})
    for method in ("drop_function", "get_function"):
        yield from _without_each(
            method, {"dbName": DATABASE, "funcName": "nope"}, "dbName", "funcName"
        )
    yield from _without_each(
        "get_functions", {"dbName": DATABASE, "pattern": "*"}, "dbName", "pattern"
    )
    given = {
        "partitionSpecs": {"ds": "1"},
        "source_db": DATABASE,
        "source_table_name": "nope",
        "dest_db": DATABASE,
        "dest_table_name": TABLE,
    }
    for method in ("exchange_partition", "exchange_partitions"):
        yield from _without_each(method, given, "source_db", "dest_db", "dest_table_name")
        yield OddCall(
            "no specs", method, {**given, "source_table_name": TABLE, "partitionSpecs": {}}
        )
