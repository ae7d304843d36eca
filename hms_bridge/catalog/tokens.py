"""DELEGATION_TOKENS and MASTER_KEYS (Hive: ObjectStore.addToken, addMasterKey and their kin;
docs/hive/metastore.md §34)."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, func, insert, select, update

from hms_bridge.backend.dialect import is_sqlite
from hms_bridge.backend.schema.token_tables import DELEGATION_TOKENS, MASTER_KEYS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.limits import check_token
from hms_bridge.errors import NoSuchObjectError

_T = DELEGATION_TOKENS.c
_KEY_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MMasterKey"


def add_token(connection: Connection, identifier: str, token: str) -> bool:
    """Keep one; False, and nothing changes, if there is one of that identifier."""
    check_token(identifier, token)
    if connection.scalar(select(exists().where(_T.TOKEN_IDENT == identifier))):
        return False
    connection.execute(insert(DELEGATION_TOKENS).values(TOKEN_IDENT=identifier, TOKEN=token))
    return True


def get_token(connection: Connection, identifier: str) -> str | None:
    """One; None if it is not there."""
    token: str | None = connection.scalar(select(_T.TOKEN).where(_T.TOKEN_IDENT == identifier))
    return token


def remove_token(connection: Connection, identifier: str) -> bool:
    """Whether it was there."""
    removed = connection.execute(delete(DELEGATION_TOKENS).where(_T.TOKEN_IDENT == identifier))
    return removed.rowcount > 0


def token_identifiers(connection: Connection) -> tuple[str, ...]:
    """All, sorted."""
    return tuple(sorted(connection.scalars(select(_T.TOKEN_IDENT))))


def add_master_key(connection: Connection, key: str) -> int:
    """The number that it gets, which no other one had."""
    check_token(key)
    values: dict[str, object] = {"MASTER_KEY": key}
    if is_sqlite(connection):
        values["KEY_ID"] = _next_number(connection)
    inserted = connection.execute(insert(MASTER_KEYS).values(values)).inserted_primary_key
    return int(inserted[0]) if inserted else 0


def _next_number(connection: Connection) -> int:
    """SQLite by itself gives that of a removed last one again."""
    highest = connection.scalar(select(func.max(MASTER_KEYS.c.KEY_ID))) or 0
    # Earlier releases added some without it.
    while (number := next_sequence_values(connection, _KEY_SEQUENCE, 1, after=highest)) <= highest:
        pass
    return number


def update_master_key(connection: Connection, number: int, key: str) -> None:
    """Replace one. Raises NoSuchObjectError."""
    check_token(key)
    here = MASTER_KEYS.c.KEY_ID == number
    if connection.execute(update(MASTER_KEYS).where(here).values(MASTER_KEY=key)).rowcount == 0:
        raise NoSuchObjectError(f"No key found with keyId: {number}")


def remove_master_key(connection: Connection, number: int) -> bool:
    """Whether it was there."""
    removed = connection.execute(delete(MASTER_KEYS).where(MASTER_KEYS.c.KEY_ID == number))
    return removed.rowcount > 0


def master_keys(connection: Connection) -> tuple[str, ...]:
    """All, the oldest first."""
    keys = connection.scalars(select(MASTER_KEYS.c.MASTER_KEY).order_by(MASTER_KEYS.c.KEY_ID))
    return tuple(key or "" for key in keys)
