"""An own MariaDB server on loopback, with a database for whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pymysql
import pymysql.cursors

from integration.referees import debian, install
from integration.referees.jdbc import PASSWORD, USER
from integration.referees.processes import Server, Workplace, free_port, unprivileged_user


@dataclass(frozen=True, kw_only=True, slots=True)
class Database:
    """One database of the server."""

    name: str
    port: int
    jdbc_driver: ClassVar = "com.mysql.cj.jdbc.Driver"
    db_type: ClassVar = "mysql"

    @property
    def jdbc_jars(self) -> tuple[Path, ...]:
        return tuple(install.ensure(install.MYSQL_DRIVER).glob("*.jar"))

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:mysql://127.0.0.1:{self.port}/{self.name}"

    @property
    def sqlalchemy_url(self) -> str:
        return f"mysql+pymysql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{self.name}"

    def query(self, text: str, *arguments: object) -> list[dict[str, Any]]:
        """Rows of one statement, by column name; names may be quoted as in standard SQL."""
        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, database=self.name,
            autocommit=True, cursorclass=pymysql.cursors.DictCursor,
            init_command="set sql_mode = concat(@@sql_mode, ',ANSI_QUOTES')",
        )  # fmt: skip
        with connection, connection.cursor() as cursor:
            cursor.execute(text, arguments)
            return list(cursor.fetchall())


class MariaDb:
    """A running server; `database(name)` makes a database.

    `is_durable`: commits wait for the disk, as where times are compared; tests do not need it.
    """

    def __init__(self, workplace: Workplace, *, is_durable: bool = False) -> None:
        self._workplace = workplace
        self._flush = f"--innodb-flush-log-at-trx-commit={int(is_durable)}"
        self._program = debian.ensure(debian.MARIADB)
        self._user = unprivileged_user()
        self.port = free_port()
        self._folder = workplace.folder("mariadb", owner=self._user)
        self._data = self._folder / "data"
        self._initialise()
        self._server = self._start()
        self._count = 0

    @property
    def version(self) -> str:
        return str(self._admin.query("select version() as v")[0]["v"])

    def database(self, name: str) -> Database:
        """A new database with a name of its own that starts with `name`."""
        self._count += 1
        database = Database(name=f"{name}_{self._count}", port=self.port)
        self._admin.query(f"create database {database.name}")
        return database

    def run_script(self, database: Database, script: Path) -> None:
        """Run a script of Hive's, as its schema files are for MySQL, by the server's own client."""
        with script.open("rb") as stream:
            self._workplace.run(
                f"mariadb-{script.stem}",
                ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(self.port), "-u", USER,
                 f"-p{PASSWORD}", database.name],
                cwd=script.parent,
                stdin=stream,
            )  # fmt: skip

    def deadlocks(self) -> int:
        """How many there were since the server started."""
        return int(self._admin.query("show global status like 'Innodb_deadlocks'")[0]["Value"])

    @property
    def is_running(self) -> bool:
        return self._server.is_running

    def stop(self) -> None:
        self._server.stop()

    def drop_clients(self) -> None:
        """Stop as a service manager does: whoever is connected is cut off where it is."""
        self._server.stop(timeout_seconds=60)

    def start_again(self) -> None:
        """After a stop, on the same port with the same data."""
        self._server = self._start()

    @property
    def _admin(self) -> Database:
        return Database(name="mysql", port=self.port)

    def _initialise(self) -> None:
        self._workplace.run(
            "mariadb-install-db",
            ["mariadb-install-db", "--no-defaults", f"--datadir={self._data}",
             "--auth-root-authentication-method=normal", "--skip-test-db"],
            cwd=self._folder,
            user=self._user,
        )  # fmt: skip
        first = self._folder / "first.sql"
        first.write_text(
            f"create user if not exists '{USER}'@'127.0.0.1' identified by '{PASSWORD}';\n"
            f"grant all on *.* to '{USER}'@'127.0.0.1';\n"
        )
        first.chmod(0o644)

    def _start(self) -> Server:
        server = self._workplace.start(
            "mariadb",
            [self._program, "--no-defaults", f"--datadir={self._data}", f"--port={self.port}",
             "--bind-address=127.0.0.1", f"--socket={self._folder}/server.sock",
             f"--init-file={self._folder}/first.sql",
             f"--pid-file={self._folder}/server.pid", self._flush,
             "--skip-name-resolve", "--max-connections=300"],
            cwd=self._folder,
            user=self._user,
        )  # fmt: skip
        server.wait_until(self._is_ready)
        return server

    def _is_ready(self) -> bool:
        try:
            self._admin.query("select 1")
        except pymysql.err.OperationalError:
            return False
        return True
