"""Hive's own schematool: of 3.1.3 and 4.0.1 as shipped, of 4.1.0 and 4.2.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from integration.referees import install
from integration.referees.hive_schema import scripts_of
from integration.referees.java_metastore import (
    LOG_SELECTOR,
    OPENS,
    Flavour,
    flavour_41,
    flavour_42,
    flavour_313,
    flavour_401,
    write_log_conf,
)
from integration.referees.jdbc import JdbcDatabase, class_path, database_settings
from integration.referees.processes import Workplace
from integration.referees.site import write_site

_TOOLS = "org.apache.hadoop.hive.metastore.tools"
VALID = "Done with metastore validation: [SUCCESS]"

_FLAVOURS: Mapping[str, Callable[[], Flavour]] = {
    "3.1.3": flavour_313,
    "4.0.1": flavour_401,
    "4.1.0": flavour_41,
    "4.2.0": flavour_42,
}
_SHIPPED = {"3.1.3": install.HIVE_313, "4.0.1": install.HIVE_401}
_LATER_STEPS = {"4.1.0": ("4.0.0-to-4.1.0",), "4.2.0": ("4.0.0-to-4.1.0", "4.1.0-to-4.2.0")}


class SchemaTool:
    """One version of the tool; `run` gives what it prints."""

    def __init__(self, workplace: Workplace, version: str) -> None:
        """`version`: 3.1.3, 4.0.1, 4.1.0 or 4.2.0."""
        self._workplace = workplace
        self._version = version
        self._flavour = _FLAVOURS[version]()

    def run(self, database: JdbcDatabase, *words: str) -> str:
        """-validate, -upgradeSchema, -info …; RefereeError when the tool fails."""
        flavour = self._flavour
        package = _TOOLS if self._version == "3.1.3" else f"{_TOOLS}.schematool"
        home = self._home(database.db_type)
        conf = self._workplace.folder("schematool")
        write_site(conf / flavour.site_name, database_settings(database))
        write_log_conf(conf)
        return self._workplace.run(
            f"schematool-{flavour.version}",
            [flavour.java, "-Xmx512m", *(f"--add-opens={opened}=ALL-UNNAMED" for opened in OPENS),
             LOG_SELECTOR, "-cp", class_path(conf, flavour.class_path, database),
             f"{package}.MetastoreSchemaTool", "-dbType", database.db_type, *words],
            env={"METASTORE_HOME": str(home), "HIVE_HOME": str(home)},
            cwd=conf,
        )  # fmt: skip

    def _home(self, db_type: str) -> Path:
        """No distributions of 4.1 and 4.2 are in the registries: their scripts are put together as
        the template's are, for the names of their tables. 4.1.0 has those of 4.0.0."""
        if self._version in _SHIPPED:
            return install.ensure(_SHIPPED[self._version])
        home = self._workplace.folder(f"schematool-{self._version}-home")
        folder = home / "scripts" / "metastore" / "upgrade" / db_type
        folder.mkdir(parents=True)
        made_by = scripts_of("4.2.0" if self._version == "4.2.0" else "4.0.1", db_type)
        text = "\n".join(script.read_text() for script in made_by)
        (folder / f"hive-schema-{self._version}.{db_type}.sql").write_text(text)
        shipped = install.ensure(install.HIVE_401) / "scripts" / "metastore" / "upgrade" / db_type
        order = (shipped / f"upgrade.order.{db_type}").read_text().split()
        steps = (*order, *_LATER_STEPS[self._version])
        (folder / f"upgrade.order.{db_type}").write_text("\n".join(steps) + "\n")
        return home
