"""An own PostgreSQL cluster on loopback, with a database for whoever asks."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from psycopg.rows import dict_row

from integration.referees import debian
from integration.referees.errors import RefereeError
from integration.referees.jdbc import USER
from integration.referees.processes import Server, Workplace, free_port, unprivileged_user

# A Hive process opens several pools of connections; the default of 100 is used up by two of them.
CONNECTIONS_MAX = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Database:
    """One database of the cluster."""

    name: str
    port: int
    jdbc_driver: ClassVar = "org.postgresql.Driver"
    jdbc_jars: ClassVar[tuple[Path, ...]] = ()
    db_type: ClassVar = "postgres"

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.name}"

    @property
    def sqlalchemy_url(self) -> str:
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{self.name}"

    def query(self, text: str, *arguments: object) -> list[dict[str, Any]]:
        """Rows of one SELECT, by column name."""
        with self._connect() as connection:
            return list(connection.cursor(row_factory=dict_row).execute(text.encode(), arguments))

    def execute(self, text: str) -> None:
        """Run statements that give no rows."""
        with self._connect() as connection:
            connection.execute(text.encode())

    def beside(self, name: str) -> Database:
        """Another database of the same cluster."""
        return replace(self, name=name)

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, dbname=self.name, autocommit=True
        )


class PostgreSql:
    """A running cluster; `database(name)` makes a database, from a template if one is given.

    `is_durable`: commits wait for the disk, as where times are compared; tests do not need it.
    """

    def __init__(self, workplace: Workplace, *, is_durable: bool = False) -> None:
        self._workplace = workplace
        self._is_durable = is_durable
        self._programs = debian.ensure(debian.POSTGRESQL).parent
        self._user = unprivileged_user()
        self.port = free_port()
        self._folder = workplace.folder("postgresql", owner=self._user)
        self._data = self._folder / "data"
        self._initialise()
        self._server = self._start()
        self._count = 0

    @property
    def version(self) -> str:
        return str(self._admin.query("show server_version")[0]["server_version"])

    def database(self, name: str, *, template: Database | None = None) -> Database:
        """A new database with a name of its own that starts with `name`."""
        self._count += 1
        database = Database(name=f"{name}_{self._count}", port=self.port)
        source = f' template "{template.name}"' if template else ""
        self._admin.execute(f'create database "{database.name}"{source}')
        return database

    def run_script(self, database: Database, script: Path) -> None:
        """Run a script of psql, as Hive's schema files are, from its own folder."""
        self._workplace.run(
            f"psql-{script.stem}",
            [self._programs / "psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
             "-p", str(self.port), "-U", USER, "-d", database.name, "-f", script.name],
            cwd=script.parent,
        )  # fmt: skip

    def scripts_per_second(
        self,
        database: Database,
        script: Path,
        *,
        clients: int,
        seconds: float,
        variables: Mapping[str, str] | None = None,
    ) -> float:
        """How often clients run a script together, by PostgreSQL's own measure (pgbench). It stops
        at the first statement that fails, and RefereeError is raised."""
        threads = min(clients, os.cpu_count() or 1)
        given = [
            word for key, value in (variables or {}).items() for word in ("-D", f"{key}={value}")
        ]
        text = self._workplace.run(
            f"pgbench-{clients}",
            [self._programs / "pgbench", "-n", "-M", "prepared", "-f", script,
             "-c", str(clients), "-j", str(threads), "-T", str(max(1, round(seconds))), *given,
             "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, database.name],
            cwd=script.parent,
        )  # fmt: skip
        found = re.search(r"tps = ([\d.]+)", text)
        if found is None:
            raise RefereeError(f"pgbench told no rate: {text}")
        return float(found[1])

    @property
    def is_running(self) -> bool:
        return self._server.is_running

    def stop(self) -> None:
        self._server.stop()

    def drop_clients(self) -> None:
        """Stop as a service manager does: whoever is connected is cut off where it is."""
        self._server.process.send_signal(signal.SIGINT)
        self._server.process.wait(60)
        self._server.stop()

    def start_again(self, environment: Mapping[str, str] | None = None) -> None:
        """After a stop, on the same port with the same data."""
        self._server = self._start(environment)

    @property
    def _admin(self) -> Database:
        return Database(name="postgres", port=self.port)

    def _initialise(self) -> None:
        self._workplace.run(
            "initdb",
            [
                self._programs / "initdb",
                "-D",
                self._data,
                "-U",
                USER,
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
            ],
            user=self._user,
        )

    def _start(self, environment: Mapping[str, str] | None = None) -> Server:
        settings = {
            "listen_addresses": "127.0.0.1",
            "max_connections": str(CONNECTIONS_MAX),
        }
        if not self._is_durable:
            settings |= {"fsync": "off", "synchronous_commit": "off"}
        server = self._workplace.start(
            "postgresql",
            # Once it has its user, who is to own what libfaketime shares.
            ["env", *(f"{key}={value}" for key, value in (environment or {}).items()),
             self._programs / "postgres", "-D", self._data, "-p", str(self.port),
             "-k", self._folder,
             *(word for key, value in settings.items() for word in ("-c", f"{key}={value}"))],
            user=self._user,
        )  # fmt: skip
        server.wait_until(self._is_ready)
        return server

    def _is_ready(self) -> bool:
        try:
            self._admin.query("select 1")
        except psycopg.OperationalError:
            return False
        return True
