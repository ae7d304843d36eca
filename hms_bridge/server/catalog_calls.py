"""Catalogs."""

from __future__ import annotations

from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_metastore import ServedCatalogs
from hms_bridge.wire.convert_catalog import catalog_from_struct, catalog_to_struct
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class CatalogCalls(Calls[ServedCatalogs]):
    """Sets of databases."""

    @answers("get_catalogs")
    def names(self, _: Struct) -> Struct:
        return hive.GetCatalogsResponse(names=list(self._store.get_catalogs()))

    @answers("get_catalog", of="catName")
    def get(self, request: Struct) -> Struct:
        catalog = self._store.get_catalog(given_name(request.name, "name"))
        return hive.GetCatalogResponse(catalog=catalog_to_struct(catalog))

    @answers("create_catalog", of="catalog")
    def create(self, request: Struct) -> None:
        self._store.create_catalog(catalog_from_struct(_received(request.catalog)))

    @answers("alter_catalog", of="rqst")
    def alter(self, request: Struct) -> None:
        struct = _received(request.newCat)
        self._store.alter_catalog(given_name(request.name, "name"), catalog_from_struct(struct))

    @answers("drop_catalog", of="catName")
    def drop(self, request: Struct) -> None:
        """An unknown one is an error unless the client does not mind."""
        try:
            self._store.drop_catalog(given_name(request.name, "name"))
        except NoSuchObjectError:
            if not request.ifExists:
                raise


def _received(struct: Struct | None) -> Struct:
    """Raises MetaError for what Hive keeps from 4.2 on, in a table that this schema has not."""
    catalog = given(struct, "the catalog")
    if catalog.parameters:
        raise MetaError(
            f"properties of catalogs are not kept (schema 4.0.0 has no place for them): leave out "
            f"{', '.join(sorted(catalog.parameters))}"
        )
    return catalog
