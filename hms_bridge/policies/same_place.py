"""Whether two texts name one directory, or one metastore. For refusing: what may be one, is one.

Nothing is asked of a file system or a server: links, a second name of a host, and a server that
stands before the same database nobody can tell.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from changemanager.location import spellings

_PLACE = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?)?)(.*)", re.DOTALL)
_PORTS = {"thrift": 9083, "postgresql": 5432, "mysql": 3306}
_ONE_KIND = {"mariadb": "mysql", "postgres": "postgresql"}
_THIS_HOST = frozenset({"127.0.0.1", "::1"})
_SCHEMA_PARAMETER = "options"
"""Of a PostgreSQL URL: it names the schema (search_path) in which the tables are."""


def is_same_directory(one: str, other: str) -> bool:
    """However each is spelled; a bare path may be of this machine, and of a cluster."""
    names, others = _spelled(one), _spelled(other)
    are_bare = any(place.startswith("/") for place in (one, other))
    return any(are_bare or not place.startswith("/") for place in names & others)


def _spelled(place: str) -> set[str]:
    match = _PLACE.fullmatch(place)
    prefix, path = (match[1], match[2]) if match else ("", place)
    plain = posixpath.normpath(path) if path else "/"
    return set(spellings(prefix.lower() + re.sub("^/+", "/", plain)))


def metastore_key(url: str | None, own: URL) -> tuple[str, ...]:
    """The same for one metastore. ``url`` None: the one in the database that is at ``own``.

    User, password and driver are left out: they say how it is reached.
    """
    if url is None:
        return _key(own)
    try:
        return _key(make_url(url.strip()))
    except (ArgumentError, ValueError):
        return ("", url)


def _key(url: URL) -> tuple[str, ...]:
    scheme = url.drivername.lower().partition("+")[0]
    kind = _ONE_KIND.get(scheme, scheme)
    if kind == "sqlite":
        return (kind, _sqlite_file(url.database))
    host = (url.host or "localhost").lower().strip("[]")
    port = str(url.port or _PORTS.get(kind) or "")
    schema = str(url.query.get(_SCHEMA_PARAMETER, ""))
    return kind, "localhost" if host in _THIS_HOST else host, port, url.database or "", schema


def _sqlite_file(path: str | None) -> str:
    if path is None or path.startswith(":"):
        return ":memory:"
    return str(Path(path.removeprefix("file:")).resolve())
