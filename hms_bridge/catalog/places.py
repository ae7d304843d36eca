"""Who lies where: asked before a directory is deleted, emptied or moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import starmap
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    bindparam,
    func,
    not_,
    or_,
    select,
    update,
)

from changemanager.errors import LocationError
from changemanager.location import is_below, is_inside, parse_uri, spellings
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.catalog_tables import DBS, PARTITIONS, SDS, TBLS
from hms_bridge.backend.text_keyed_sql import TextKeyedSql
from hms_bridge.catalog.patterns import ESCAPE
from hms_bridge.model.catalog import DEFAULT_CATALOG, Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenant:
    """Something of the catalog that has a place."""

    name: str
    place: str
    is_database: bool = False
    table_id: int | None = None
    partition: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """For whom directories are deleted, emptied or moved: a stored table with all that is in it,
    or those of its ``partitions``."""

    table: Table
    partitions: frozenset[str] | None = None

    def has(self, tenant: Tenant, place: str) -> bool:
        """Whether a tenant is no stranger in a directory. A table is one where its partition lies
        at its directory or above that: the other partitions would go too."""
        if tenant.table_id != self.table.id:
            return False
        if self.partitions is None:
            return True
        if tenant.partition is None:
            return not is_below(tenant.place, place)
        return tenant.partition in self.partitions


_DATABASE_PLACES = (DBS.c.DB_LOCATION_URI, DBS.c.DB_MANAGED_LOCATION_URI)


def _at_or_below(column: ColumnElement[str], count: int) -> ColumnElement[bool]:
    """Whether it is at or below a place that has so many spellings: see :func:`_texts_below`."""
    return or_(
        *(
            or_(
                column == bindparam(f"at{number}", type_=String),
                column.like(bindparam(f"below{number}", type_=String), escape=ESCAPE),
            )
            for number in range(count)
        )
    )


def _texts_below(place: str) -> tuple[int, dict[str, str]]:
    """How many spellings a place has, and the values of :func:`_at_or_below`."""
    texts = [text.rstrip("/") for text in spellings(place)]
    values = {f"at{number}": text for number, text in enumerate(texts)}
    return len(texts), values | {
        f"below{number}": f"{_escaped(text)}{ESCAPE}{ESCAPE}%" for number, text in enumerate(texts)
    }


def _escaped(text: str) -> str:
    for character in (ESCAPE, "%", "_"):
        text = text.replace(character, ESCAPE + character)
    return text


def _at_or_below_text(column: ColumnElement[str], place: str) -> ColumnElement[bool]:
    place = place.rstrip("/")
    below = column.like(f"{_escaped(place)}{ESCAPE}{ESCAPE}%", escape=ESCAPE)
    return or_(column == place, below)


def user_of(connection: Connection, place: str) -> str | None:
    """The name of a database, table or partition that lies at a place or below it."""
    tenant = next(_tenants(_ask_below(connection, place, None)), None)
    return None if tenant is None else tenant.name


def strangers(connection: Connection, wanted: Sequence[str], owner: Owner | None) -> dict[str, str]:
    """Of the places those that are not the owner's alone, and why: someone else lies there, below
    or above, in any database or catalog. Databases may lie above: they hold tables."""
    (reasons,) = strangers_of_each(connection, [(wanted, owner)])
    return reasons


Asked = tuple[Sequence[str], Owner | None]
"""Places, and whose they are."""


def strangers_of_each(connection: Connection, asked: Sequence[Asked]) -> list[dict[str, str]]:
    """As :func:`strangers`, for several owners at once."""
    below = [
        [_ask_below(connection, place, owner) for place in _looked(wanted, owner)]
        for wanted, owner in asked
    ]
    texts = [_texts_above(wanted) for wanted, _ in asked]
    above: dict[str, list[Tenant]] = {}
    for tenant in _at(connection, sorted(set().union(*texts))):
        above.setdefault(tenant.place, []).append(tenant)
    strange = []
    for place_answers, own_texts, (wanted, owner) in zip(below, texts, asked, strict=True):
        tenants = [tenant for answers in place_answers for tenant in _tenants(answers)]
        tenants += [tenant for text in own_texts for tenant in above.get(text, ())]
        tenants = _others(tenants, wanted, owner)
        reasons = {place: _stranger_at(place, tenants, owner) for place in wanted}
        strange.append({place: reason for place, reason in reasons.items() if reason is not None})
    return strange


def _inside(wanted: Sequence[str], owner: Owner | None) -> set[str]:
    home = owner.table.storage.location if owner else None
    return {place for place in wanted if home and is_inside(place, home)}


def _looked(wanted: Sequence[str], owner: Owner | None) -> list[str]:
    """Below which tenants are looked for. Those inside of the owner are asked for once, by the
    owner's own place: there may be thousands of them."""
    inside = _inside(wanted, owner)
    home = owner.table.storage.location if owner else None
    return sorted({home, *wanted} - inside if home and inside else set(wanted))


def _others(tenants: list[Tenant], wanted: Sequence[str], owner: Owner | None) -> list[Tenant]:
    if owner is None or len(_inside(wanted, owner)) < len(wanted):
        return tenants
    # What all of the places lie in is the owner itself: it is none of its own strangers.
    return [
        candidate
        for candidate in tenants
        if candidate.table_id != owner.table.id or candidate.partition is not None
    ]


def _stranger_at(place: str, tenants: Sequence[Tenant], owner: Owner | None) -> str | None:
    """How the first tenant that is not the owner's is in the way."""
    for tenant in tenants:
        how = _how_in_the_way(tenant, place)
        if how is not None and (owner is None or not owner.has(tenant, place)):
            return how
    return None


def holders(connection: Connection, wanted: Sequence[str]) -> list[Tenant]:
    """The tables and partitions in whose directories one of the places lies, or whose it is."""
    tenants = _above(connection, [f"{place.rstrip('/')}/within" for place in wanted])
    return [tenant for tenant in tenants if tenant.table_id is not None]


def innermost(connection: Connection, place: str) -> Tenant | None:
    """Of :func:`holders` the innermost: of a table and its partition the partition."""
    owners = holders(connection, [place])
    return max(owners, key=lambda tenant: len(tenant.place.rstrip("/")), default=None)


def names_of(connection: Connection, table_id: int) -> tuple[str, str, str]:
    """The catalog, the database and the name of a table."""
    row = connection.execute(
        select(DBS.c.CTLG_NAME, DBS.c.NAME, TBLS.c.TBL_NAME)
        .join_from(TBLS, DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
        .where(TBLS.c.TBL_ID == table_id)
    ).one()
    return row.CTLG_NAME, row.NAME, row.TBL_NAME


def on_local_disks(connection: Connection) -> Iterator[Tenant]:
    """The tables and partitions whose places may lead elsewhere by links."""
    is_local = or_(SDS.c.LOCATION.like("file:%"), SDS.c.LOCATION.like("/%"))
    tenants = starmap(_tenant, connection.execute(_with_places().where(is_local)))
    return (tenant for tenant in tenants if tenant.table_id is not None)


def shown(connection: Connection, tenant: Tenant) -> str:
    """A table or partition, with its table's database and place."""
    catalog, database, table = names_of(connection, tenant.table_id or 0)
    shown_catalog = "" if catalog == DEFAULT_CATALOG else f"{catalog}."
    part = "" if tenant.partition is None else f"partition {tenant.partition} of "
    return f"{part}table {shown_catalog}{database}.{table} ({tenant.place})"


def _how_in_the_way(tenant: Tenant, place: str) -> str | None:
    if is_below(tenant.place, place):
        return f"{tenant.name} lies in it too"
    if not tenant.is_database and is_below(place, tenant.place):
        return f"it lies in the directory of {tenant.name}"
    return None


@dataclass(frozen=True, slots=True)
class _Below:
    """Answers, on their way, about who lies at a place or below it."""

    databases: Answer
    others: Answer


def _ask_below(connection: Connection, place: str, owner: Owner | None) -> _Below:
    """All at a place or below it, but for the owner's partitions that lie where their names say:
    those are never in one another."""
    count, texts = _texts_below(place)
    values: dict[str, Any] = dict(texts)
    databases = _databases_at_or_below(count).read_later(connection, **values)
    others = _others_at_or_below(
        count, has_owner=owner is not None, has_parts=bool(owner and owner.partitions is not None)
    )
    if owner is not None:
        values["owner_id"] = owner.table.id or 0
        if owner.partitions is not None:
            values["own_place"] = f"{(owner.table.storage.location or '').rstrip('/')}/"
    return _Below(databases, others.read_later(connection, **values))


def _tenants(below: _Below) -> Iterator[Tenant]:
    for name, *wheres in below.databases.rows:
        for where in wheres:
            if where is not None:
                yield Tenant(name=f"database {name}", place=where, is_database=True)
    yield from starmap(_tenant, below.others.rows)


@cache
def _databases_at_or_below(count: int) -> FixedSql:
    """Those of which a place is there, with all of their places."""
    is_there = or_(*(_at_or_below(column, count) for column in _DATABASE_PLACES))
    return FixedSql(select(DBS.c.NAME, *_DATABASE_PLACES).where(is_there))


@cache
def _others_at_or_below(count: int, *, has_owner: bool, has_parts: bool) -> FixedSql:
    query = _with_places().where(_at_or_below(SDS.c.LOCATION, count))
    if has_owner:
        is_own = PARTITIONS.c.TBL_ID == bindparam("owner_id", type_=BigInteger)
        if has_parts:
            own_place = bindparam("own_place", type_=String)
            is_own = and_(is_own, SDS.c.LOCATION == own_place + PARTITIONS.c.PART_NAME)
        query = query.where(or_(PARTITIONS.c.PART_ID.is_(None), not_(is_own)))
    return FixedSql(query)


def _above(connection: Connection, wanted: Iterable[str]) -> Iterator[Tenant]:
    """The tables and partitions in whose directories the places lie."""
    return _at(connection, _texts_above(wanted))


def _at(connection: Connection, texts: Sequence[str]) -> Iterator[Tenant]:
    return starmap(_tenant, _AT.all(connection, texts))


def _texts_above(wanted: Iterable[str]) -> list[str]:
    """Every spelling of every directory above the places, but for whole file systems."""
    directories: set[tuple[str, str]] = set()
    for place in wanted:
        try:
            parsed = parse_uri(place)
        except LocationError:
            continue
        directories.add((parsed.prefix, parsed.path.rpartition("/")[0]))
    above: set[str] = set()
    for prefix, path in directories:
        levels = path.split("/")[1:]
        above.update(f"{prefix}/{'/'.join(levels[:count])}" for count in range(1, len(levels) + 1))
    texts = {text for place in above for text in spellings(place)}
    return sorted(texts | {f"{text}/" for text in texts})


def _with_places() -> Select[Any]:
    return select(
        TBLS.c.TBL_ID,
        TBLS.c.TBL_NAME,
        PARTITIONS.c.TBL_ID.label("PART_TBL_ID"),
        PARTITIONS.c.PART_NAME,
        SDS.c.LOCATION,
    ).select_from(
        SDS.outerjoin(TBLS, TBLS.c.SD_ID == SDS.c.SD_ID).outerjoin(
            PARTITIONS, PARTITIONS.c.SD_ID == SDS.c.SD_ID
        )
    )


_AT = TextKeyedSql(SDS.c.LOCATION, lambda is_at: _with_places().where(is_at))


def _tenant(
    table_id: int | None, table: str | None, owner_id: int | None, partition: str, place: str
) -> Tenant:
    """Of a row of :func:`_with_places`."""
    if table is not None:
        return Tenant(name=f"table {table}", place=place, table_id=table_id)
    return Tenant(
        name=f"partition {partition}", place=place, table_id=owner_id, partition=partition
    )


def move_partitions(connection: Connection, table_id: int, old: str, new: str) -> None:
    """Partitions of a table that lay below its old directory now lie below the new one."""
    keys = select(PARTITIONS.c.SD_ID).where(PARTITIONS.c.TBL_ID == table_id)
    length = len(old.rstrip("/"))
    connection.execute(
        update(SDS)
        .where(SDS.c.SD_ID.in_(keys), _at_or_below_text(SDS.c.LOCATION, old))
        .values(LOCATION=new.rstrip("/") + func.substr(SDS.c.LOCATION, length + 1))
    )
