"""Changes of the catalog that Hive's log has no event for: asked as events are, and heard after.

A message says which verb changed what (``verb``, ``name``), and more to decide by. Nothing that may
be a secret ever stands in one: no token, no key, no URL and no value of a parameter of a data
connector, no text of a query or a procedure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from hms_bridge.model.catalog import Catalog
from hms_bridge.model.connector import DataConnector
from hms_bridge.model.function import Function
from hms_bridge.model.hook import PointDraft, PointType
from hms_bridge.model.privilege import Grant, ObjectKind, Principal, RoleGrant, Securable
from hms_bridge.model.procedure import Package, StoredProcedure
from hms_bridge.model.resource_plan import PlanKey, ResourcePlan
from hms_bridge.model.schedule import ScheduledQuery, ScheduleKey
from hms_bridge.model.target import TableName

_ON_TABLES = frozenset({ObjectKind.TABLE, ObjectKind.PARTITION, ObjectKind.COLUMN})


def _change(
    kind: PointType,
    verb: str,
    name: str,
    *,
    database: str | None = None,
    table: str | None = None,
    **facts: Any,
) -> PointDraft:
    message = {"verb": verb, "name": name, **facts}
    return PointDraft(type=kind, message=message, database_name=database, table_name=table)


def catalog_changed(verb: str, catalog: Catalog) -> PointDraft:
    """create, alter: as it is then; drop: as it was."""
    return _change(PointType.CHANGE_CATALOG, verb, catalog.name, location=catalog.location)


def connector_changed(verb: str, connector: DataConnector) -> PointDraft:
    """create, alter: as it is then; drop: as it was."""
    return _change(
        PointType.CHANGE_CONNECTOR,
        verb,
        connector.name,
        type=connector.type,
        owner=connector.owner_name,
        parameterNames=sorted(connector.parameters),
    )


def function_altered(before: Function, after: Function) -> PointDraft:
    """alter: Hive's log has events of functions that are made and dropped."""
    return _change(
        PointType.CHANGE_FUNCTION,
        "alter",
        before.name,
        database=before.database_name,
        newDb=after.database_name,
        newName=after.name,
        className=after.class_name,
        resourceUris=[resource.uri for resource in after.resources],
    )


def view_updated(view: TableName) -> PointDraft:
    """update: what a materialized view was made of, and as of when."""
    return _change(
        PointType.CHANGE_VIEW, "update", view.table, database=view.database, table=view.table
    )


def partition_marked(table: TableName, values: Sequence[str], kind: int) -> PointDraft:
    """mark: that a partition is loaded (Hive: LOAD_PARTITION_DONE)."""
    return _change(
        PointType.CHANGE_MARK,
        "mark",
        table.table,
        database=table.database,
        table=table.table,
        partVals=list(values),
        eventType=kind,
    )


def role_changed(verb: str, name: str) -> PointDraft:
    """create, drop."""
    return _change(PointType.CHANGE_ROLE, verb, name)


def role_granted(grant: RoleGrant) -> PointDraft:
    """grant."""
    return _change(
        PointType.CHANGE_ROLE,
        "grant",
        grant.role.name,
        **_principal(grant.principal),
        grantor=grant.grantor,
        hasGrantOption=grant.has_grant_option,
    )


def role_revoked(name: str, principal: Principal, *, is_option_only: bool) -> PointDraft:
    """revoke: the role, or only the right to grant it."""
    return _change(
        PointType.CHANGE_ROLE,
        "revoke",
        name,
        **_principal(principal),
        isGrantOptionOnly=is_option_only,
    )


def privileges_changed(verb: str, grants: Sequence[Grant], **facts: Any) -> PointDraft:
    """grant, revoke: of objects, each with who has what."""
    objects = list(dict.fromkeys(grant.object for grant in grants))
    return _of_objects(verb, objects, grants, **facts)


def privileges_replaced(wanted: Securable, grants: Sequence[Grant]) -> PointDraft:
    """refresh: an object has these privileges from now on, and no others of their authorizer."""
    return _of_objects("refresh", [wanted], grants)


def _of_objects(
    verb: str, objects: Sequence[Securable], grants: Sequence[Grant], **facts: Any
) -> PointDraft:
    databases = {item.database for item in objects}
    tables = {item.name if item.kind in _ON_TABLES else None for item in objects}
    is_of_one = len(databases) == 1
    return _change(
        PointType.CHANGE_PRIVILEGES,
        verb,
        ", ".join(map(str, objects)),
        database=next(iter(databases)) if is_of_one else None,
        table=next(iter(tables)) if is_of_one and len(tables) == 1 else None,
        grants=[
            {
                "object": str(grant.object),
                "privilege": grant.privilege,
                **_principal(grant.principal),
                "grantor": grant.grantor,
                "hasGrantOption": grant.has_grant_option,
            }
            for grant in grants
        ],
        **facts,
    )


def _principal(principal: Principal) -> dict[str, str]:
    return {"principal": principal.name, "principalType": principal.type.name}


def plan_changed(verb: str, key: PlanKey, plan: ResourcePlan) -> PointDraft:
    """create, edit, alter, replace: which, and what it is then; drop: what it was."""
    return _change(
        PointType.CHANGE_RESOURCE_PLAN,
        verb,
        key.name,
        namespace=key.namespace,
        newName=plan.key.name,
        status=plan.status.name,
        pools=[pool.path for pool in plan.pools],
        triggers=[trigger.name for trigger in plan.triggers],
        mappings=[list(mapping.key) for mapping in plan.mappings],
    )


def query_changed(verb: str, query: ScheduledQuery) -> PointDraft:
    """create, alter: as it is then; drop: as it was."""
    key: ScheduleKey = query.key
    return _change(
        PointType.CHANGE_SCHEDULED_QUERY,
        verb,
        key.name,
        namespace=key.namespace,
        schedule=query.schedule,
        user=query.user,
        isEnabled=query.is_enabled,
    )


def procedure_changed(verb: str, record: StoredProcedure | Package) -> PointDraft:
    """put, drop: of a stored procedure or a package."""
    return _change(
        PointType.CHANGE_PROCEDURE,
        verb,
        record.name,
        database=record.database_name.lower(),
        catalog=record.catalog_name.lower(),
        what="package" if isinstance(record, Package) else "procedure",
        owner=record.owner_name,
    )


def token_changed(verb: str, identifier: str) -> PointDraft:
    """add, remove: of a delegation token, of which the name is a digest of its identifier."""
    return _change(
        PointType.CHANGE_TOKEN,
        verb,
        f"sha256:{hashlib.sha256(identifier.encode()).hexdigest()}",
        what="delegation token",
    )


def master_key_changed(verb: str, number: int) -> PointDraft:
    """add, update, remove: the name is the key's number."""
    return _change(PointType.CHANGE_TOKEN, verb, str(number), what="master key")
