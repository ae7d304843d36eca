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
            for script in scripts_of(version):
                self._postgresql.run_script(template, script)
            self._templates[version] = template
        return self._postgresql.database(name, template=self._templates[version])


def scripts_of(version: str) -> list[Path]:
    """The scripts that make the schema, in order."""
    old, new = _shipped(install.HIVE_313), _shipped(install.HIVE_401)
    names = {
        "2.3.10": [
            old / "hive-schema-1.2.0.postgres.sql",
            *(old / name for name in UPGRADES_TO_23),
        ],
        "3.1.3": [old / "hive-schema-3.1.0.postgres.sql"],
        "4.0.1": [new / "hive-schema-4.0.0.postgres.sql"],
        "4.2.0": [
            new / "hive-schema-4.0.0.postgres.sql",
            install.RECIPES / "hive-4.2.0-schema.postgres.sql",
        ],
    }
    return names[version]


def mysql_scripts(version: str) -> list[Path]:
    """Those for MySQL: 3.1.0, or `3.1.0-to-4.0.0`, which follows it."""
    folder = _shipped(install.HIVE_401).parent / "mysql"
    if version == "3.1.0":
        return [folder / "hive-schema-3.1.0.mysql.sql"]
    steps = (folder / "upgrade.order.mysql").read_text().split()
    later = steps[steps.index("3.1.0-to-3.2.0") :]
    return [folder / f"upgrade-{step}.mysql.sql" for step in later]


def _shipped(part: install.Part) -> Path:
    return install.ensure(part) / "scripts" / "metastore" / "upgrade" / "postgres"
