"""Hive's own schematool on a PostgreSQL database, of 4.0.1 as shipped and of 4.2.0."""

from __future__ import annotations

from pathlib import Path

from integration.referees import install
from integration.referees.hive_schema import scripts_of
from integration.referees.java_metastore import (
    LOG_SELECTOR,
    OPENS,
    Flavour,
    database_settings,
    flavour_42,
    flavour_401,
    write_log_conf,
)
from integration.referees.postgresql import Database
from integration.referees.processes import Workplace
from integration.referees.site import write_site

SCHEMA_TOOL = "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool"
VALID = "Done with metastore validation: [SUCCESS]"


class SchemaTool:
    """One version of the tool; `run` gives what it prints."""

    def __init__(self, workplace: Workplace, version: str) -> None:
        """`version`: 4.0.1 or 4.2.0."""
        self._workplace = workplace
        self._flavour: Flavour = flavour_401() if version == "4.0.1" else flavour_42()
        shipped = install.ensure(install.HIVE_401)
        self._home = shipped if version == "4.0.1" else self._home_of_42(workplace, shipped)

    def run(self, database: Database, *words: str) -> str:
        """-validate, -upgradeSchema, -info …; RefereeError when the tool fails."""
        flavour = self._flavour
        conf = self._workplace.folder("schematool")
        write_site(conf / flavour.site_name, database_settings(database))
        write_log_conf(conf)
        return self._workplace.run(
            f"schematool-{flavour.version}",
            [flavour.java, "-Xmx512m", *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENS),
             LOG_SELECTOR, "-cp", ":".join([str(conf), *flavour.class_path]), SCHEMA_TOOL,
             "-dbType", "postgres", *words],
            env={"METASTORE_HOME": str(self._home), "HIVE_HOME": str(self._home)},
            cwd=conf,
        )  # fmt: skip

    @staticmethod
    def _home_of_42(workplace: Workplace, shipped: Path) -> Path:
        """No distribution of 4.2 is in the registries: its script is put together as the template's
        is, for the names of its tables."""
        home = workplace.folder("schematool-4.2.0-home")
        folder = home / "scripts" / "metastore" / "upgrade" / "postgres"
        folder.mkdir(parents=True)
        text = "\n".join(script.read_text() for script in scripts_of("4.2.0"))
        (folder / "hive-schema-4.2.0.postgres.sql").write_text(text)
        order = (
            shipped / "scripts" / "metastore" / "upgrade" / "postgres" / "upgrade.order.postgres"
        )
        later = "4.0.0-to-4.1.0\n4.1.0-to-4.2.0\n"
        (folder / order.name).write_text(order.read_text().rstrip("\n") + "\n" + later)
        return home
