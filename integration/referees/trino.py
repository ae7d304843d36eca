"""Trino 476 on one node, with one catalog `hive` on a metastore given by its URI."""

from __future__ import annotations

from typing import Any

from integration.referees import install
from integration.referees.outside import OutsideClients
from integration.referees.processes import Workplace, free_port

READY = "SERVER STARTED"


class Trino:
    """A running server; `sql` asks it through its own client."""

    def __init__(self, workplace: Workplace, clients: OutsideClients, metastore_uri: str) -> None:
        self._clients = clients
        self._port = free_port()
        home = install.ensure(install.TRINO)
        java = install.java_25()
        folder = workplace.folder("trino")
        etc = folder / "etc"
        (etc / "catalog").mkdir(parents=True)
        (etc / "config.properties").write_text(
            "coordinator=true\nnode-scheduler.include-coordinator=true\n"
            f"http-server.http.port={self._port}\ndiscovery.uri=http://127.0.0.1:{self._port}\n"
            "catalog.management=static\nquery.max-memory-per-node=256MB\n"
        )
        (etc / "catalog" / "hive.properties").write_text(
            f"connector.name=hive\nhive.metastore.uri={metastore_uri}\nfs.hadoop.enabled=true\n"
        )
        for name in ("lib", "plugin"):
            (folder / name).symlink_to(home / name)
        self._server = workplace.start(
            "trino",
            [java, "-Xmx1536m", "-XX:+UseSerialGC", "--add-modules=jdk.incubator.vector",
             "-Dconfig=etc/config.properties", "-Dnode.environment=referee", "-Dnode.id=referee",
             "-Dnode.internal-address=127.0.0.1", f"-Dnode.data-dir={folder}/data",
             "-cp", "lib/*", "io.trino.server.TrinoServer"],
            cwd=folder,
        )  # fmt: skip
        self._server.wait_until(lambda: self._server.log_contains(READY), timeout_seconds=180)

    def sql(self, statement: str) -> list[list[Any]]:
        """Rows of one statement; StatementError carries Trino's message."""
        rows: list[list[Any]] = self._clients.ask(client="trino", port=self._port, sql=statement)
        return rows

    def stop(self) -> None:
        self._server.stop()
