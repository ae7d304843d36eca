"""ConstraintStore over thrift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hms_bridge.client.caller import Client, UnknownMethodError
from hms_bridge.errors import InvalidObjectError, NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.wire.convert_constraint import (
    METHODS,
    TableConstraints,
    constraint_from_struct,
    constraints_to_structs,
)
from hms_bridge.wire.structs import Struct, hive


class ConstraintClient(Client):
    """What a remote metastore's tables have."""

    def get_constraints(
        self, database: str, table: str, catalog: str = DEFAULT_CATALOG
    ) -> tuple[ColumnConstraint, ...]:
        """Of one call from Hive 4 on, of one for each kind before; a kind that the metastore does
        not know it does not have."""
        request = hive.AllTableConstraintsRequest(dbName=database, tblName=table, catName=catalog)
        try:
            response = self._caller.repeat("get_all_table_constraints", request=request)
        except UnknownMethodError:
            answers = tuple(self._each_kind(database, table, catalog))
        except NoSuchObjectError:
            return ()
        else:
            answers = tuple((kind, response.allTableConstraints) for kind in ConstraintKind)
        constraints = (
            constraint_from_struct(kind, struct)
            for kind, answer in answers
            for struct in getattr(answer, METHODS[kind].field, None) or ()
        )
        return tuple(sorted(constraints, key=lambda one: (one.name, one.position)))

    def _each_kind(
        self, database: str, table: str, catalog: str
    ) -> Iterator[tuple[ConstraintKind, Struct]]:
        for kind, described in METHODS.items():
            if kind is ConstraintKind.FOREIGN_KEY:
                request = hive.ForeignKeysRequest(
                    foreign_db_name=database, foreign_tbl_name=table, catName=catalog
                )
            else:
                request = getattr(hive, described.get_request)(
                    catName=catalog, db_name=database, tbl_name=table
                )
            try:
                answer = self._caller.repeat(described.get_method, request=request)
            except (UnknownMethodError, NoSuchObjectError):
                continue
            yield kind, answer

    def add_constraints(
        self,
        database: str,
        table: str,
        wanted: Sequence[ColumnConstraint],
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        """In one call: thrift has one for each kind."""
        kinds = {constraint.kind for constraint in wanted}
        if len(kinds) != 1:
            raise InvalidObjectError(
                f"{database}.{table}: constraints of one kind are added at a time; send others "
                "apart"
            )
        added = TableConstraints(
            kind=kinds.pop(),
            database_name=database,
            table_name=table,
            catalog_name=catalog,
            constraints=tuple(wanted),
        )
        described = METHODS[added.kind]
        request = getattr(hive, described.add_request)(
            **{described.add_field: constraints_to_structs(added)}
        )
        self._caller.call(described.add_method, req=request)

    def drop_constraint(
        self, database: str, table: str, name: str, catalog: str = DEFAULT_CATALOG
    ) -> None:
        """Hive answers an unknown one by no class of its own."""
        request = hive.DropConstraintRequest(
            dbname=database, tablename=table, constraintname=name, catName=catalog
        )
        self._caller.call("drop_constraint", req=request)
