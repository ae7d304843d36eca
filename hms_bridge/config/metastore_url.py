"""What the URL of a metastore names: a server, or a database."""

from __future__ import annotations

SERVER = "thrift://"
SQLITE = "sqlite:///"


def names_server(url: str) -> bool:
    """Whether a server has the metastore, ours or Hive's: its database is out of reach."""
    return url.startswith(SERVER)


def sqlite_file(url: str) -> str | None:
    """The path of SQLite's file, as it is written; None for memory, for a URI of SQLite's own
    (``file:``) and for what is no SQLite."""
    path = url.removeprefix(SQLITE)
    is_file = url.startswith(SQLITE) and bool(path) and not path.startswith((":", "file:"))
    return path if is_file else None
