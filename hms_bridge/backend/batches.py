"""Long lists in pieces that a statement can carry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    ScalarSelect,
    String,
    Subquery,
    Table,
    TableValuedAlias,
    any_,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import UserDefinedType

T = TypeVar("T")

BATCH_MAX = 1000
"""How many values one IN list holds (Hive's metastore.jdbc.max.batch.size)."""


def batches(values: Sequence[T], size: int = BATCH_MAX) -> Iterator[Sequence[T]]:
    """The values in order, ``size`` at a time; nothing for no values."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def batches_of_names(names: Collection[str]) -> Iterator[Sequence[str]]:
    """Each name once, sorted: who locks their rows takes them in one order."""
    return batches(sorted(set(names)))


def insert_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows with the same columns, if there are any."""
    if rows:
        connection.execute(insert(table), rows)


class _Keys(UserDefinedType[str]):
    """A text of :func:`keys_text`, which PostgreSQL takes for an array as it comes. To cast a text
    would be work for each row that is compared with it."""

    cache_ok = True
    render_bind_cast = True

    def get_col_spec(self, **_: Any) -> str:
        """What PostgreSQL calls it."""
        return "BIGINT[]"


class _Texts(UserDefinedType[str]):
    """A text of :func:`texts_text`: see :class:`_Keys`."""

    cache_ok = True
    render_bind_cast = True

    def get_col_spec(self, **_: Any) -> str:
        """What PostgreSQL calls it."""
        return "VARCHAR[]"


def is_among(key: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """Whether a key is one of those in a parameter that is a text of :func:`keys_text`: one text of
    a statement for any number of them, on PostgreSQL only."""
    return key == any_(type_coerce(bindparam(name, type_=_Keys()), ARRAY(BigInteger)))


def is_among_texts(key: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """As :func:`is_among`, of keys that are texts, in a text of :func:`texts_text`."""
    return key == any_(type_coerce(bindparam(name, type_=_Texts()), ARRAY(String)))


def is_among_few(key: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """As :func:`is_among`, of one plan for any number of keys: see :func:`given_keys`."""
    return key == any_(cast(_uncounted(name), ARRAY(BigInteger)))


def is_among_many(key: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """As :func:`is_among`, for hundreds: PostgreSQL goes through an array for each row that it
    compares with it, but looks rows up by their hashes."""
    keys = func.unnest(bindparam(name, type_=_Keys()), type_=BigInteger)
    return key.in_(select(keys))


def given_keys(name: str) -> Subquery:
    """The keys in a parameter that is a text of :func:`keys_text`, ascending; on PostgreSQL."""
    keys = func.unnest(_uncounted(name), type_=BigInteger).label("key")
    return select(keys).order_by(keys).subquery("keys")


def _uncounted(name: str) -> ScalarSelect[str]:
    """PostgreSQL does not count keys in a statement within. A plan for as many as there are looks
    cheaper than one for any number, and would be made anew each time."""
    return select(bindparam(name, type_=_Keys())).scalar_subquery()


def given_pairs(first: str, second: str) -> TableValuedAlias:
    """Pairs of texts in two parameters that are texts of :func:`texts_text`, in columns of these
    names; on PostgreSQL."""
    texts = [bindparam(name, type_=_Texts()) for name in (first, second)]
    columns = [column(name, String) for name in (first, second)]
    return func.unnest(*texts).table_valued(*columns).render_derived("given")


def keys_text(keys: Collection[int]) -> str:
    """Keys as PostgreSQL writes an array of them."""
    return "{" + ",".join(map(str, keys)) + "}"


def texts_text(keys: Collection[str]) -> str:
    """Texts as PostgreSQL writes an array of them."""
    quoted = (key.replace("\\", "\\\\").replace('"', '\\"') for key in keys)
    return "{" + ",".join(f'"{key}"' for key in quoted) + "}"
