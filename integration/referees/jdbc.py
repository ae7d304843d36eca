"""How Hive's own programs reach a database: by JDBC."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol


class JdbcDatabase(Protocol):
    """A database of either server."""

    @property
    def port(self) -> int: ...

    @property
    def jdbc_url(self) -> str: ...

    @property
    def sqlalchemy_url(self) -> str: ...

    @property
    def jdbc_driver(self) -> str:
        """The name of the driver's class."""

    @property
    def jdbc_jars(self) -> tuple[Path, ...]:
        """What Hive's own jars lack for it."""

    @property
    def db_type(self) -> str:
        """What schematool calls its kind."""

    def query(self, text: str, *arguments: object) -> list[dict[str, Any]]: ...


USER = PASSWORD = "hive"


def database_settings(database: JdbcDatabase) -> dict[str, str]:
    """How a metastore reaches its database."""
    return {
        "javax.jdo.option.ConnectionURL": database.jdbc_url,
        "javax.jdo.option.ConnectionDriverName": database.jdbc_driver,
        "javax.jdo.option.ConnectionUserName": USER,
        "javax.jdo.option.ConnectionPassword": PASSWORD,
        # A process opens several pools; ten connections each would use up the server.
        "datanucleus.connectionPool.maxPoolSize": "4",
    }


def class_path(conf: Path, jars: tuple[str, ...], database: JdbcDatabase) -> str:
    """The folder of the configuration first, the database's driver last."""
    return ":".join([str(conf), *jars, *map(str, database.jdbc_jars)])
