"""The life of a metastore's schema: made, upgraded, looked at."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.backend.engine import Database
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.install import (
    SCHEMA_VERSION,
    install,
    lacking_indices,
    refuse_unknown,
    refuse_unusable,
    schema_info,
)
from hms_bridge.backend.schema.install_3_1 import install_3_1, tables_lacking_of_3_1
from hms_bridge.backend.schema.upgrade import (
    connections_of_others,
    planned_upgrade,
    upgrade_schema,
)
from hms_bridge.backend.schema.validation import validate
from hms_bridge.backend.schema.versions import LATER_TABLES, OURS, TARGETS, is_old, is_since
from hms_bridge.errors import BackendError


@dataclass(frozen=True, slots=True)
class SchemaUpgrade:
    """What an upgrade does, or did. ``others``: how many connections of others the database had;
    ``ours``: how many tables of our own it leaves as they are."""

    present: str
    wanted: str
    steps: tuple[str, ...]
    others: int
    ours: int


@dataclass(frozen=True, slots=True)
class SchemaToMake:
    """What an installation makes: the version that the database has then, tables that lack, and our
    indices that tables of Hive's lack; and columns that it lets be compared exactly."""

    version: str
    tables: tuple[str, ...]
    indices: tuple[str, ...] = ()
    loose_columns: tuple[str, ...] = ()


def is_for_others(version: str) -> bool:
    """Whether only a Hive works on the schema of that version, not hms-bridge."""
    return is_old(version)


def make_version(database: Database, version: str) -> None:
    """Make Hive's tables of a version in an empty database; nothing where they are.

    Raises BackendError for a version that is unknown, or another one than the database has.
    """
    if _version_beside(database, version) is not None:
        return
    if is_old(version):
        install_3_1(database)
    else:
        install(database)
        upgrade_schema(database, version)


def tables_to_make(database: Database, version: str | None) -> SchemaToMake:
    """What :func:`make_version` and an installation would make. Raises as they do."""
    info = schema_info(database)
    refuse_unknown(info, database.name)
    present = info.version if version is None else _version_beside(database, version)
    made = version or SCHEMA_VERSION
    if present is not None and not is_old(made):
        refuse_unusable(present, database.name)
    if is_old(made):
        return SchemaToMake(made, tables_lacking_of_3_1(database) if present is None else ())
    later = LATER_TABLES.tables.values() if present is None else ()
    tables = (*info.missing_tables, *(t.name for t in later if is_since(made, t.info["since"])))
    return SchemaToMake(
        present or made, tuple(sorted(tables)), lacking_indices(database), info.loose_columns
    )


def upgrade(database: Database, version: str, *, is_dry_run: bool) -> SchemaUpgrade:
    """Upgrade Hive's tables to a version, or only say what would be done.

    Raises BackendError for versions between which there is no way.
    """
    others = connections_of_others(database)
    plan = (planned_upgrade if is_dry_run else upgrade_schema)(database, version)
    tables = set(TABLES.tables) - set(schema_info(database).missing_tables)
    return SchemaUpgrade(
        plan.present,
        plan.wanted,
        tuple(step.what for step in plan.steps),
        others,
        sum(1 for name in tables if name.startswith(OURS)),
    )


def schema_problems(database: Database) -> tuple[dict[str, str], ...]:
    """What is wrong: rows of ``problem`` and ``remedy``."""
    return tuple(
        {"problem": problem.what, "remedy": problem.remedy} for problem in validate(database)
    )


def _version_beside(database: Database, version: str) -> str | None:
    """The version that is there, None in an empty database."""
    if version not in TARGETS:
        raise BackendError(f"'{version}' is no version to make; use {', '.join(TARGETS)}")
    present = schema_info(database).version
    if present is not None and present != version:
        way = f"run 'hms-bridge schema upgrade --to {version}'"
        raise BackendError(
            f"{database.name} holds schema {present} already; "
            f"{way if is_since(version, present) else 'there is no way back'}"
        )
    return present
