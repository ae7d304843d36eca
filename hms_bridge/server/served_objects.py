"""What the server asks of a metastore about objects that only HiveServer2 uses: data connectors,
stored procedures, packages; see served_metastore.py."""

from __future__ import annotations

from typing import Protocol

from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.connector import DataConnector
from hms_bridge.model.procedure import Package, StoredProcedure


class ServedConnectors(Protocol):
    """Databases of other systems."""

    def create_connector(self, connector: DataConnector) -> None:
        """Raises AlreadyExistsError, InvalidObjectError."""

    def alter_connector(self, name: str, connector: DataConnector) -> None:
        """Replace place, parameters and owner, and a description that is given; name and kind stay.
        Raises NoSuchObjectError."""

    def drop_connector(self, name: str) -> None:
        """With what was granted on it. Raises NoSuchObjectError, InvalidOperationError while a
        database is made over it."""

    def get_connector(self, name: str) -> DataConnector:
        """One. Raises NoSuchObjectError."""

    def get_connector_names(self) -> tuple[str, ...]:
        """All, sorted."""


class ServedProcedures(Protocol):
    """Stored procedures and packages; their database must be there, else NoSuchObjectError."""

    def put_procedure(self, procedure: StoredProcedure) -> None:
        """Make it, or put it in place of that of its name."""

    def get_procedure(
        self, database: str, name: str, catalog: str = DEFAULT_CATALOG
    ) -> StoredProcedure:
        """One. Raises NoSuchObjectError."""

    def drop_procedure(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> None:
        """If it is there."""

    def get_procedure_names(self, database: str, catalog: str = DEFAULT_CATALOG) -> tuple[str, ...]:
        """Those of a database, sorted."""

    def put_package(self, package: Package) -> None:
        """Make it, or put it in place of that of its name."""

    def get_package(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> Package:
        """One. Raises NoSuchObjectError."""

    def drop_package(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> None:
        """If it is there."""

    def get_package_names(self, database: str, catalog: str = DEFAULT_CATALOG) -> tuple[str, ...]:
        """Those of a database, sorted."""
