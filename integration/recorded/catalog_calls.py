"""Calls about databases, data connectors, tables and their constraints."""

from __future__ import annotations

from hms_bridge.wire.structs import Struct, hive
from integration.recorded.objects import DATABASE, Asked, context


def databases(ask: Asked) -> None:
    def get(name: str) -> None:
        ask("get_database_req", request=hive.GetDatabaseRequest(name=name, catalogName="hive"))

    def create(**fields: object) -> None:
        ask("create_database_req", createDatabaseRequest=hive.CreateDatabaseRequest(**fields))

    def alter(name: str, database: Struct) -> None:
        request = hive.AlterDatabaseRequest(oldDbName=name, newDb=database)
        ask("alter_database_req", alterDbReq=request)

    whole = {
        "databaseName": "made", "description": "d", "parameters": {"k": "v"},
        "locationUri": f"file:{ask.external}/made.db", "ownerName": "ann", "ownerType": 1,
        "managedLocationUri": f"file:{ask.warehouse}/made.db", "createTime": 7,
        "catalogName": "hive", "type": 1,
    }  # fmt: skip
    create(**whole)
    get("made")
    create(**whole)
    create(databaseName="Upper_Case", ownerName="ann", ownerType=1)
    get("upper_case")
    create(databaseName="with space")
    create(databaseName="elsewhere", catalogName="nope")
    for pattern in ("*", "made|more", "no*", None):
        request = hive.GetDatabaseObjectsRequest(catalogName="hive", pattern=pattern)
        ask("get_databases_req", request=request)
    other = hive.Database(
        name="made", description="other", locationUri=f"file:{ask.external}/made.db",
        managedLocationUri=f"file:{ask.warehouse}/made.db",
        parameters={"k": "w"}, ownerName="bob", ownerType=1, catalogName="hive", type=1,
    )  # fmt: skip
    alter("made", other)
    get("made")
    alter("nope", other)
    alter("made", hive.Database(name="renamed", parameters={}))
    get("made")


def connectors(ask: Asked) -> None:
    def connector(name: str, url: str = "jdbc:mysql://x", **fields: object) -> Struct:
        return hive.DataConnector(**{
            "name": name, "type": "mysql", "url": url, "ownerName": "ann", "ownerType": 1,
            "parameters": {"k": "v"}, **fields,
        })  # fmt: skip

    def create(given: Struct) -> None:
        request = hive.CreateDataConnectorRequest(connector=given)
        ask("create_dataconnector_req", connectorReq=request)

    def get(name: str) -> None:
        ask("get_dataconnector_req", request=hive.GetDataConnectorRequest(connectorName=name))

    def alter(name: str, given: Struct) -> None:
        request = hive.AlterDataConnectorRequest(connectorName=name, newConnector=given)
        ask("alter_dataconnector_req", alterReq=request)

    def drop(name: str, **fields: bool) -> None:
        request = hive.DropDataConnectorRequest(connectorName=name, **fields)
        ask("drop_dataconnector_req", dropDcReq=request)

    create(connector("dc", description="d"))
    get("dc")
    create(connector("dc"))
    create(connector("with space"))
    ask("get_dataconnectors")
    alter("dc", connector("dc", "jdbc:mysql://y", parameters={"k": "w"}, description="e"))
    get("dc")
    alter("dc", connector("dc2", "jdbc:mysql://z"))
    ask("get_dataconnectors")
    alter("nope", connector("nope"))
    ask("alter_dataconnector", name="dc", connector=connector("dc", "jdbc:mysql://w"))
    remote = hive.CreateDatabaseRequest(
        databaseName="remote", type=2, dataConnectorName="dc", remote_dbname="r", ownerName="ann",
        ownerType=1,
    )  # fmt: skip
    ask("create_database_req", createDatabaseRequest=remote)
    drop("dc", ifNotExists=False, checkReferences=True)
    drop("nope", ifNotExists=False, checkReferences=True)
    drop("nope", ifNotExists=True, checkReferences=True)
    ask("drop_database", name="remote", deleteData=False, cascade=False)
    drop("dc", ifNotExists=False, checkReferences=True)
    ask("get_dataconnectors")


def tables(ask: Asked) -> None:
    def get(name: str) -> None:
        ask("get_table_req", req=hive.GetTableRequest(dbName=DATABASE, tblName=name))

    def drop(name: str, database: str = DATABASE, **fields: object) -> None:
        request = hive.DropTableRequest(dbName=database, tableName=name, **fields)
        ask("drop_table_req", dropTableReq=request)

    ask(
        "create_table_with_environment_context",
        tbl=ask.table("made"), environment_context=context(k="v"),
    )  # fmt: skip
    get("made")
    ask("create_table_with_environment_context", tbl=ask.table("made"), environment_context=None)
    elsewhere = ask.table("made", dbName="nope")
    ask("create_table_with_environment_context", tbl=elsewhere, environment_context=None)
    odd = ask.table("odd name")
    ask("create_table_with_environment_context", tbl=odd, environment_context=None)
    ask(
        "drop_table_with_environment_context",
        dbname=DATABASE, name="made", deleteData=False, environment_context=context(k="v"),
    )  # fmt: skip
    for name in ("one", "two"):
        ask("create_table", tbl=ask.table(name))
    drop("nope", deleteData=True)
    drop("one", deleteData=True, catalogName="hive")
    get("one")
    drop("two", deleteData=False, catalogName="hive", envContext=context(ifPurge="true"))
    drop("two", deleteData=True, catalogName="hive")
    drop("t", "nope", deleteData=True, catalogName="hive")


def constraints(ask: Asked) -> None:
    def create(name: str, **given: list[Struct]) -> None:
        kinds = ("primaryKeys", "foreignKeys", "uniqueConstraints", "notNullConstraints",
                 "defaultConstraints", "checkConstraints")  # fmt: skip
        ask(
            "create_table_with_constraints",
            tbl=ask.table(name), **{kind: given.get(kind, []) for kind in kinds},
        )  # fmt: skip

    def of(name: str, column: str = "c") -> dict[str, object]:
        return {
            "catName": "hive", "table_db": DATABASE, "table_name": name, "column_name": column,
            "enable_cstr": False, "validate_cstr": False, "rely_cstr": True,
        }  # fmt: skip

    def key(name: str, column: str = "c") -> Struct:
        return hive.SQLPrimaryKey(**of(name, column), key_seq=1, pk_name=f"pk_{name}")

    def reference(name: str, parent: str) -> Struct:
        return hive.SQLForeignKey(
            catName="hive", pktable_db=DATABASE, pktable_name=parent, pkcolumn_name="c",
            fktable_db=DATABASE, fktable_name=name, fkcolumn_name="c", key_seq=1, update_rule=0,
            delete_rule=0, fk_name=f"fk_{name}", pk_name=f"pk_{parent}", enable_cstr=False,
            validate_cstr=False, rely_cstr=True,
        )  # fmt: skip

    create("parent", primaryKeys=[key("parent")])
    create(
        "child",
        foreignKeys=[reference("child", "parent")],
        uniqueConstraints=[hive.SQLUniqueConstraint(**of("child", "d"), key_seq=1, uk_name="uk")],
        notNullConstraints=[hive.SQLNotNullConstraint(**of("child"), nn_name="nn")],
        defaultConstraints=[
            hive.SQLDefaultConstraint(**of("child", "d"), default_value="'x'", dc_name="df")
        ],
        checkConstraints=[
            hive.SQLCheckConstraint(**of("child"), check_expression="c > 0", dc_name="ck")
        ],
    )
    for name in ("parent", "child"):
        ask("get_all_table_constraints", request=hive.AllTableConstraintsRequest(
            dbName=DATABASE, tblName=name, catName="hive"
        ))  # fmt: skip
    create("plain")
    create("bad1", primaryKeys=[key("bad1", "nope")])
    create("bad2", foreignKeys=[reference("bad2", "nope")])
    create("child", primaryKeys=[key("child")])
