"""Who lies where, asked of a metastore that can only list tables."""

from __future__ import annotations

from changemanager.location import is_below
from hms_bridge.client.catalog_client import CatalogClient


class PlaceClient(CatalogClient):
    """PlaceStore, by means of the tables that the catalog lists."""

    def find_holder(self, location: str, database: str) -> str | None:
        for table in self.get_tables_by_names(database, self.get_tables(database)):
            place = table.storage.location
            if place and is_below(location, place):
                return f"table {table.full_name} ({place})"
        return None
