"""Hive's own schema in PostgreSQL, made once a version by Hive's own scripts and then copied."""

from __future__ import annotations

from pathlib import Path

from integration.referees import install
from integration.referees.postgresql import Database, PostgreSql

# The 3.1.3 distribution has no 2.3 script, but every step from 1.2 to it.
UPGRADES_TO_23 = (
    "upgrade-1.2.0-to-2.0.0.postgres.sql",
    "upgrade-2.0.0-to-2.1.0.postgres.sql",
    "upgrade-2.1.0-to-2.2.0.postgres.sql",
    "upgrade-2.2.0-to-2.3.0.postgres.sql",
)


class HiveSchemas:
    """Databases with the schema of a Hive version; the second one of a version is a copy of the
    first's template.
    """

    def __init__(self, postgresql: PostgreSql) -> None:
        self._postgresql = postgresql
        self._templates: dict[str, Database] = {}

    def database(self, version: str, name: str) -> Database:
        """A new database with the empty schema of `version`: 2.3.10, 3.1.3, 4.0.1 or 4.2.0."""
        if version not in self._templates:
            template = self._postgresql.database(f"template_{version.replace('.', '_')}")
            for script in scripts_of(version, template.db_type):
                self._postgresql.run_script(template, script)
            self._templates[version] = template
        return self._postgresql.database(name, template=self._templates[version])


def scripts_of(version: str, db_type: str) -> list[Path]:
    """The scripts that make the schema, in order; `db_type` is postgres or mysql."""
    old, new = _shipped(install.HIVE_313, db_type), _shipped(install.HIVE_401, db_type)
    names = {
        "2.3.10": [
            old / "hive-schema-1.2.0.postgres.sql",
            *(old / name for name in UPGRADES_TO_23),
        ],
        "3.1.3": [old / f"hive-schema-3.1.0.{db_type}.sql"],
        "4.0.1": [new / f"hive-schema-4.0.0.{db_type}.sql"],
        "4.2.0": [
            new / f"hive-schema-4.0.0.{db_type}.sql",
            install.RECIPES / f"hive-4.2.0-schema.{db_type}.sql",
        ],
    }
    return names[version]


def upgrade_scripts() -> list[Path]:
    """What makes 4.0.0 of 3.1.0 on MySQL."""
    folder = _shipped(install.HIVE_401, "mysql")
    steps = (folder / "upgrade.order.mysql").read_text().split()
    later = steps[steps.index("3.1.0-to-3.2.0") :]
    return [folder / f"upgrade-{step}.mysql.sql" for step in later]


def _shipped(part: install.Part, db_type: str) -> Path:
    return install.ensure(part) / "scripts" / "metastore" / "upgrade" / db_type
