"""hms-bridge itself, as a user runs it: the server in its own process, the verbs of the command
line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from changemanager.hadoop import HadoopConfig
from integration.drivers.hadoop_text import hadoop_to_text
from integration.referees.conversation import Conversation
from integration.referees.errors import RefereeError
from integration.referees.postgresql import Database
from integration.referees.processes import Workplace, free_port, is_listening
from integration.referees.spark import SparkDriver
from tests.support.quick_jvm import prefer_quick_start

CHECKOUT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "hms_bridge.cli.main")


@cache
def environment_of_ours() -> Mapping[str, str]:
    """What each of its processes gets besides the shell's own."""
    environment = {"PYTHONPATH": str(CHECKOUT)}
    prefer_quick_start(environment)
    return environment


class OurServer:
    """`hms-bridge serve` over a database; `uri` is what clients set as hive.metastore.uris."""

    def __init__(
        self,
        workplace: Workplace,
        database_url: str,
        *,
        store: Database | None = None,
        warehouse: Path | str | None = None,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.database_url = database_url
        self._store = store
        self.folder = workplace.folder("ours")
        place = warehouse or self.folder / "warehouse"
        if isinstance(place, Path):
            self.warehouse = place
            self.warehouse.mkdir(exist_ok=True)
            place = f"file://{place}"
            # Sessions of Hive say where their external tables are: each in a folder of its own.
            roots = ("hms.bridge.location.roots", "hms.bridge.deletion.roots")
            settings = {**dict.fromkeys(roots, str(workplace.data_folder)), **(settings or {})}
        self.port = free_port()
        chosen = [
            word for key, value in (settings or {}).items() for word in ("--set", f"{key}={value}")
        ]
        if not database_url.startswith("sqlite:"):
            place_setting = f"hive.metastore.warehouse.dir={place}"
            workplace.run(
                "ours-schema",
                [*PROGRAM, "schema", "init", "--database", database_url,
                 "--set", place_setting, *chosen],
                env={**environment_of_ours(), **(environment or {})},
                cwd=self.folder,
            )  # fmt: skip
        self._server = workplace.start(
            "ours",
            [*PROGRAM, "serve", "--port", str(self.port), "--database", database_url,
             "--warehouse", place, *chosen, *arguments],
            env={**environment_of_ours(), **(environment or {})},
            cwd=self.folder,
        )  # fmt: skip
        self._server.wait_until(lambda: is_listening(self.port))

    @property
    def store(self) -> Database:
        """The PostgreSQL database under the server, where Hive and the comparison look into it."""
        if self._store is None:
            raise RefereeError(f"{self.database_url} is not a PostgreSQL database of the run")
        return self._store

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds

    @property
    def memory_peak_mib(self) -> float:
        return self._server.memory_peak_mib

    def count_in_log(self, text: str) -> int:
        """How often the server wrote a text."""
        return self._server.count_in_log(text)

    def stop(self) -> None:
        self._server.stop()


class OurPlans:
    """`hms-bridge spark plans` on a metastore; `settings` are what it prints."""

    def __init__(
        self,
        workplace: Workplace,
        metastore: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = workplace.folder("ours-plans")
        self._server = workplace.start(
            "ours-plans",
            [*PROGRAM, "spark", "plans", "--metastore", metastore, "--format", "jsonl", *arguments],
            env={**environment_of_ours(), **(environment or {})},
            cwd=self.folder,
            is_piped=True,
        )
        self.settings: dict[str, str] = Conversation(self._server).read()
        self._server.wait_until(lambda: self._server.log_contains("serving plans at http://"))

    def says(self, text: str) -> bool:
        """Whether it wrote a text for people."""
        return self._server.log_contains(text)

    def stop(self) -> int | None:
        """Its exit code."""
        self._server.stop()
        return self._server.process.returncode


class OurProgram:
    """The verbs of `hms-bridge` on one metastore: a database URL, or thrift://… of any server."""

    def __init__(
        self,
        workplace: Workplace,
        metastore: str,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._workplace = workplace
        self.metastore = metastore
        self._environment = {**environment_of_ours(), **(environment or {})}
        self._folder = workplace.folder("ours-cli")

    def run(self, *arguments: str) -> str:
        """Run one verb on the metastore; RefereeError with its output if it fails."""
        return self.verb(*arguments, "--metastore", self.metastore)

    def verb(self, *arguments: str) -> str:
        """Run a verb that needs no metastore."""
        return self._workplace.run(
            f"hms-bridge-{arguments[0]}",
            [*PROGRAM, *arguments],
            env=self._environment,
            cwd=self._folder,
        )

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """Rows of one statement, by column name."""
        output = self.run("sql", "-e", statement, "--format", "jsonl")
        return [json.loads(line) for line in output.splitlines()]


class OurSession:
    """hms-bridge as a library in a Spark driver: a statement costs what it costs, not a start of
    Spark.
    """

    def __init__(
        self,
        driver: SparkDriver,
        metastore: str,
        hadoop: HadoopConfig | None = None,
        *,
        gate: Path | None = None,
    ) -> None:
        """``gate``: a folder of drivers/gates.py."""
        self._driver = driver
        self._place: dict[str, object] = {
            "metastore": metastore,
            "hadoop": hadoop_to_text(hadoop) if hadoop else "",
            "gate": str(gate) if gate else None,
        }

    def clean(self, database_url: str) -> list[str]:
        """One turn of our cleaner, which works on the metastore's own database."""
        done: list[str] = self._driver.call(
            "integration.drivers.our_session:clean", database=database_url
        )
        return done

    def sql(self, statement: str) -> list[tuple[str, ...]]:
        """Rows of one statement in Hive's text form; StatementError carries our message."""
        rows = self._driver.call(
            "integration.drivers.our_session:sql", statement=statement, **self._place
        )
        return [tuple(row) for row in rows]

    def work(self) -> str | None:
        """One turn of our compaction worker."""
        done: str | None = self._driver.call("integration.drivers.our_session:work", **self._place)
        return done
