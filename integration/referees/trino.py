"""Trino 476 on one node, with a catalog for each metastore that it is shown."""

from __future__ import annotations

from typing import Any

from integration.referees import install
from integration.referees.outside import OutsideClients
from integration.referees.processes import Workplace, free_port

READY = "SERVER STARTED"


class Trino:
    """A running server; `sql` asks it through its own client."""

    def __init__(self, workplace: Workplace, clients: OutsideClients) -> None:
        self._clients = clients
        self._port = free_port()
        home = install.ensure(install.TRINO)
        java = install.java_25()
        folder = workplace.folder("trino")
        etc = folder / "etc"
        etc.mkdir()
        (etc / "config.properties").write_text(
            "coordinator=true\nnode-scheduler.include-coordinator=true\n"
            f"http-server.http.port={self._port}\ndiscovery.uri=http://127.0.0.1:{self._port}\n"
            "catalog.management=dynamic\ncatalog.store=memory\nquery.max-memory-per-node=256MB\n"
        )
        for name in ("lib", "plugin"):
            (folder / name).symlink_to(home / name)
        self._server = workplace.start(
            "trino",
            [java, "-Xmx1536m", *workplace.java,
             "-Dconfig=etc/config.properties", "-Dnode.environment=referee", "-Dnode.id=referee",
             "-Dnode.internal-address=127.0.0.1", f"-Dnode.data-dir={folder}/data",
             "-cp", "lib/*", "io.trino.server.TrinoServer"],
            cwd=folder,
        )  # fmt: skip
        self._server.wait_until(lambda: self._server.log_contains(READY), timeout_seconds=180)

    def add_catalog(self, name: str, metastore_uri: str) -> None:
        """Show it a metastore, whose tables are then `name.database.table`."""
        self.sql(
            f"create catalog {name} using hive with "
            f"(\"hive.metastore.uri\" = '{metastore_uri}', \"fs.hadoop.enabled\" = 'true')"
        )

    def sql(self, statement: str) -> list[list[Any]]:
        """Rows of one statement; StatementError carries Trino's message."""
        rows: list[list[Any]] = self._clients.ask(client="trino", port=self._port, sql=statement)
        return rows

    def stop(self) -> None:
        self._server.stop()
