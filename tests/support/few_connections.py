"""A user of the server's database who may have a few connections only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from sqlalchemy import URL, Connection, create_engine, make_url, text

from tests.support.databases import SERVER_URL, fresh_database

# A role without a limit is none that PostgreSQL limits if it is a superuser.
_POSTGRESQL = (
    "CREATE ROLE {name} LOGIN PASSWORD 'few' CONNECTION LIMIT {limit}",
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}",
    "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}",
)
_POSTGRESQL_END = ("DROP OWNED BY {name}", "DROP ROLE {name}")
# As the user of the tests may grant nothing.
_MARIADB = (
    "INSERT INTO mysql.global_priv SELECT Host, '{name}', "
    "JSON_SET(Priv, '$.max_user_connections', {limit}) "
    "FROM mysql.global_priv WHERE CONCAT(User, '@', Host) = CURRENT_USER()",
    "FLUSH PRIVILEGES",
)
_MARIADB_END = ("DELETE FROM mysql.global_priv WHERE User = '{name}'", "FLUSH PRIVILEGES")


@contextmanager
def few_connections(limit: int) -> Iterator[str]:
    """The URL by which such a user opens the tests' database, which is empty."""
    assert SERVER_URL is not None
    url = make_url(SERVER_URL)
    name = f"few_{uuid4().hex[:12]}"
    is_postgresql = url.get_backend_name() == "postgresql"
    begin, end = (_POSTGRESQL, _POSTGRESQL_END) if is_postgresql else (_MARIADB, _MARIADB_END)
    with fresh_database():
        pass
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as admin:
        _run(admin, begin, name, limit)
        try:
            yield _url_of(url, name, "few" if is_postgresql else url.password)
        finally:
            _run(admin, end, name, limit)
    engine.dispose()


def _run(admin: Connection, statements: tuple[str, ...], name: str, limit: int) -> None:
    for statement in statements:
        admin.execute(text(statement.format(name=name, limit=limit).replace(":", r"\:")))


def _url_of(url: URL, name: str, password: str | None) -> str:
    return url.set(username=name, password=password).render_as_string(hide_password=False)
