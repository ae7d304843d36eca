"""Hive and hms-bridge as two metastores on one PostgreSQL database and one warehouse."""

from __future__ import annotations

from hms_bridge.config.settings import Settings
from integration.referees import java_metastore
from integration.referees.hive42 import Hive42
from integration.referees.java_metastore import JavaMetastore
from integration.referees.ours import OurProgram, OurServer
from integration.referees.postgresql import Database
from integration.referees.processes import Workplace

# What the other cases switch off for speed; here it is as Hive ships it.
DEFAULTS = {"hive.stats.autogather": "true"}


class Beside:
    """`hive` has the metastore inside; `ours` is our server on the same database; `on_ours` is a
    Hive session whose metastore is our server.
    """

    def __init__(self, workplace: Workplace, store: Database) -> None:
        self._workplace = workplace
        self.store = store
        self.hive = Hive42(workplace, store, name="hive-4.2.0-beside", settings=DEFAULTS)
        OurProgram(workplace, store.sqlalchemy_url).run("schema", "init")
        self.ours = OurServer(
            workplace,
            store.sqlalchemy_url,
            store=store,
            warehouse=self.hive.warehouse,
            settings={"hive.repl.cmrootdir": f"file://{self.hive.change_manager_root}"},
        )
        self.on_ours = self.hive.session_at(self.ours.uri)

    @property
    def settings(self) -> Settings:
        """What hms-bridge as a library is told of this warehouse."""
        return Settings(
            warehouse=f"file://{self.hive.warehouse}",
            external_warehouse=f"file://{self.hive.external_warehouse}",
        )

    def metastore_server(self) -> JavaMetastore:
        """Hive's metastore server on the same database and warehouse; the caller stops it."""
        return JavaMetastore(
            self._workplace,
            java_metastore.flavour_42(),
            database=self.store,
            warehouse=self.hive.warehouse,
            external_warehouse=self.hive.external_warehouse,
        )

    def daemons(self) -> OurServer:
        """A second server of ours, with worker, initiator and cleaner; the caller stops it."""
        return OurServer(
            self._workplace,
            self.store.sqlalchemy_url,
            warehouse=self.hive.warehouse,
            settings={
                "hive.repl.cmrootdir": f"file://{self.hive.change_manager_root}",
                "hive.compactor.check.interval": "3s",
                "hive.compactor.cleaner.run.interval": "2s",
                "hive.compactor.delta.num.threshold": "4",
            },
            arguments=("--worker", "--initiator", "--cleaner"),
        )

    def count(self, table: str) -> int:
        """Rows of one table of the metastore's database."""
        return int(self.store.query(f'select count(*) as n from "{table}"')[0]["n"])

    def stop(self) -> None:
        self.ours.stop()
        self.hive.stop()
