"""What docs/not-yet.md lists is not there: each row is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from changemanager.errors import LocationError
from changemanager.filesystem.opening import open_volume
from changemanager.filesystem.s3 import s3_options
from changemanager.hadoop import HadoopConfig
from hms_bridge.backend.schema.upgrade_plan import refuse_versions
from hms_bridge.cli.main import cli
from hms_bridge.config.jdbc import JdbcConnection, database_url
from hms_bridge.config.protection import Protected, asked_protections, require_none
from hms_bridge.dml.parse import parse_statement
from hms_bridge.dml.plan import plan_write
from hms_bridge.dml.statement import Insert
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import CompactionType
from hms_bridge.plans.formats import format_of
from hms_bridge.plans.tables import spark_schema
from hms_bridge.repl.format.passed_kinds import PASSED_BY_DEFAULT
from hms_bridge.server.serve import offered_names
from hms_bridge.wire.methods import all_names
from tests.conformance.objects import acid_table, orc_storage
from tests.support.golden import CHECKOUT
from tests.support.rules import holds_for
from tests.support.world import World

PAGE = CHECKOUT / "docs" / "not-yet.md"
ROWS = re.findall(r"^\| (?!not there)([^-].*?) \|", PAGE.read_text(), re.MULTILINE)


def _insert_into(parameters: Mapping[str, str]) -> None:
    statement = parse_statement("INSERT INTO db.t VALUES (1, 'tea')")
    assert isinstance(statement, Insert)
    plan_write(statement, {statement.table: acid_table("db", parameters=parameters)})


def _ask_for(what: Protected, name: str, value: str) -> None:
    require_none(asked_protections({name: value}, "hive-site.xml", {}), what)


_serve_with = partial(_ask_for, Protected.PORT)
_KERBEROS = HadoopConfig(
    values={"hadoop.security.authentication": "kerberos"},
    is_native_allowed=False,
    web_addresses={"nn:8020": "nn:9870"},
)

REFUSALS: Mapping[str, Sequence[Callable[[], object]]] = {
    "insert-only tables in Avro, JSON, SequenceFile, RCFile as [tables of Spark](spark.md)": [
        partial(
            format_of,
            acid_table(
                "db",
                parameters={"transactional": "true", "transactional_properties": "insert_only"},
                storage=replace(orc_storage(()), input_format=input_format),
            ),
        )
        for input_format in (
            "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
            "org.apache.hadoop.mapred.SequenceFileInputFormat",
            "org.apache.hadoop.hive.ql.io.RCFileInputFormat",
            "org.apache.hadoop.mapred.TextInputFormat",
        )
    ],
    "`uniontype` in [tables of Spark](spark.md)": [
        partial(
            spark_schema,
            acid_table("db", storage=orc_storage((Column(name="u", type="uniontype<int>"),))),
            "timestamp",
        )
    ],
    "`MERGE` in `hms-bridge sql`": [
        partial(
            parse_statement,
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        )
    ],
    "`INSERT OVERWRITE` in `hms-bridge sql`": [
        partial(parse_statement, "INSERT OVERWRITE TABLE t SELECT * FROM s")
    ],
    "`ALTER TABLE`, `TRUNCATE`, `ANALYZE`, `LOAD DATA` and `MSCK` in `hms-bridge sql`": [
        partial(parse_statement, "ALTER TABLE t RENAME TO u"),
        partial(parse_statement, "TRUNCATE TABLE t"),
        partial(parse_statement, "ANALYZE TABLE t COMPUTE STATISTICS"),
        partial(parse_statement, "LOAD DATA INPATH '/x' INTO TABLE t"),
        partial(parse_statement, "MSCK REPAIR TABLE t"),
    ],
    "writes of `hms-bridge sql` to tables that are not full ACID": [
        partial(_insert_into, {}),
        partial(
            _insert_into, {"transactional": "true", "transactional_properties": "insert_only"}
        ),
    ],
    "Kerberos, passwords and tokens as proof of who a client is": [
        partial(_serve_with, "hive.metastore.sasl.enabled", "true"),
        partial(_serve_with, "metastore.authentication", "LDAP"),
        partial(_serve_with, "metastore.authentication", "JWT"),
    ],
    "TLS and HTTP on the thrift port": [
        partial(_serve_with, "hive.metastore.use.SSL", "true"),
        partial(_serve_with, "metastore.server.thrift.transport.mode", "http"),
    ],
    "authorization by the metastore": [
        partial(_serve_with, "hive.security.metastore.authorization.manager", "some.Manager"),
        partial(_serve_with, "metastore.authorization.storage.checks", "true"),
    ],
    "archives in encryption zones of HDFS": [
        partial(
            _ask_for, Protected.ARCHIVE, "hive.repl.cm.encryptionzone.rootdir", "cmroot"
        ),
    ],
    "Derby, Oracle and SQL Server as the metastore's database": [
        lambda: database_url(JdbcConnection(url="jdbc:derby:metastore_db")),
        lambda: database_url(JdbcConnection(url="jdbc:oracle:thin:@//db:1521/hive")),
        lambda: database_url(JdbcConnection(url="jdbc:sqlserver://db:1433")),
    ],
    "upgrades of schemas before 3.1": [partial(refuse_versions, "2.3.0", "4.2.0")],
    "ViewFs, Ozone and FTP as file systems": [
        partial(open_volume, scheme, "cluster") for scheme in ("viewfs", "ofs", "o3fs", "ftp")
    ],
    "S3 settings of one bucket (`fs.s3a.bucket.NAME.…`)": [
        lambda: s3_options(HadoopConfig(values={"fs.s3a.bucket.lake.endpoint": "https://s3"}))
    ],
    "Kerberos and TLS of HDFS over HTTP": [
        partial(open_volume, "hdfs", "nn:8020", _KERBEROS),
        partial(open_volume, "swebhdfs", "nn:9871"),
    ],
}  # fmt: skip
"""Calls that raise one of our errors."""


def _has_option(verb: str, option: str) -> bool:
    command: click.Command | None = cli
    for word in verb.split():
        assert isinstance(command, click.Group), verb
        command = command.get_command(click.Context(command), word)
    assert command is not None, verb
    return option in [name for one in command.params for name in one.opts]


def _answered(*methods: str) -> set[str]:
    assert set(methods) <= set(all_names())
    return offered_names() & set(methods)


PRESENCES: Mapping[str, Callable[[], object]] = {
    "thrift methods of types, indexes, schema registry, file metadata and properties": partial(
        _answered, "create_type", "get_indexes", "create_ischema", "get_file_metadata",
        "set_properties",
    ),
    "overwrites, updates, deletes and definitions in [tables of Spark](spark.md)": lambda: (
        "SupportsRowLevelOperations"
        in (CHECKOUT / "jvm/src/hmsbridge/spark/AcidTable.java").read_text()
    ),
    "column statistics on a replica": lambda: (
        {"EVENT_UPDATE_TABLE_COL_STAT", "EVENT_UPDATE_PART_COL_STAT"} - set(PASSED_BY_DEFAULT)
    ),
    "`--external-base` of `repl policy add`": partial(
        _has_option, "repl policy add", "--external-base"
    ),
    "`--dry-run` of `sql`, `repl open` and `repl policy remove`": lambda: [
        verb
        for verb in ("sql", "repl open", "repl policy remove")
        if _has_option(verb, "--dry-run")
    ],
}  # fmt: skip
"""What would be there: nothing is."""

COMPACTIONS = {
    "rebalance compactions": ("t", CompactionType.REBALANCE),
    "compactions of insert-only tables": ("appended", CompactionType.MAJOR),
}


def test_each_row_is_asked_for() -> None:
    assert {*REFUSALS, *PRESENCES, *COMPACTIONS} ^ {*ROWS} == set()


@holds_for([(row, call) for row, calls in REFUSALS.items() for call in calls])
def test_the_program_refuses_what_is_not_there(row: str, call: Callable[[], object]) -> None:
    try:
        call()
    except (HmsBridgeError, LocationError):
        return
    raise AssertionError("take the row off the page")


@holds_for(PRESENCES.items())
def test_the_program_lacks_what_is_not_there(row: str, present: Callable[[], object]) -> None:
    assert not present(), "take the row off the page"


def test_the_metastore_refuses_compactions_that_no_worker_does(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create_table("t")
    world.create_table("appended", transactional_properties="insert_only")
    for row, (table, kind) in COMPACTIONS.items():
        assert world.txns.compact(table, kind=kind).state == "refused", row
    world.close()
