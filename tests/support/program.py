"""The program `hms-bridge`, run in this process or as one of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from hms_bridge.cli.main import cli
from tests.support.golden import CHECKOUT
from tests.support.quick_jvm import prefer_quick_start, shell_environment


@dataclass(frozen=True)
class Answer:
    """What a run gave."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def table(self) -> list[list[str]]:
        """A printed table's lines, cut at two blanks; the first is the header."""
        return [line.split("  ") for line in self.out.splitlines()]


@dataclass(frozen=True)
class Program:
    """The program with a folder of its own: database, warehouse, archive and dumps are in it."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/metastore.db"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def cmroot(self) -> Path:
        return self.folder / "cmroot"

    @property
    def dumps(self) -> Path:
        return self.folder / "dumps"

    @property
    def environment(self) -> dict[str, str]:
        """What makes the program use the folder: a hive-site.xml and the database's URL."""
        site = self.folder / "hive-site.xml"
        values = {
            "hive.metastore.warehouse.dir": str(self.warehouse),
            "hive.repl.cmrootdir": str(self.cmroot),
            "hive.repl.rootdir": str(self.dumps),
            "hms.bridge.repl.load.roots": str(self.folder),
            **self.settings,
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in values.items()
        )
        # A program that runs meanwhile reads it whole: the old one or the new one.
        written = self.folder / f"hive-site-{threading.get_ident()}.xml"
        written.write_text(f"<configuration>{properties}</configuration>")
        written.replace(site)
        return {"HMS_BRIDGE_CONFIG": str(site), "HMS_BRIDGE_METASTORE": self.url}

    def run(self, *words: str, stdin: str | None = None) -> Answer:
        """Run in this process."""
        return run_here(*words, stdin=stdin, environment=self.environment)

    def ok(self, *words: str, stdin: str | None = None) -> Answer:
        """Run in this process; it must succeed."""
        answer = self.run(*words, stdin=stdin)
        assert answer.exit_code == 0, (words, answer.out, answer.err)
        return answer

    def start(self, *words: str, stdin: str | None = None, seconds: float = 120) -> Answer:
        """Run as a process of its own, to its end."""
        done = subprocess.run(
            [*command(), *words], cwd=self.folder, env=process_environment(self.environment),
            input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True, text=True, check=False, timeout=seconds,
        )  # fmt: skip
        return Answer(done.returncode, done.stdout, done.stderr)


def run_here(
    *words: str, stdin: str | None = None, environment: Mapping[str, str] | None = None
) -> Answer:
    """Run in this process, through click's own runner."""
    given = {"HMS_BRIDGE_CONFIG": None, "HMS_BRIDGE_METASTORE": None, **(environment or {})}
    result = CliRunner().invoke(cli, list(words), input=stdin, env=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)


def command() -> list[str]:
    """How a process of its own is started: this checkout's code, whatever is installed."""
    return [sys.executable, "-m", "hms_bridge.cli.main"]


def process_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    environment = {**shell_environment(), "PYTHONPATH": str(CHECKOUT), **(more or {})}
    prefer_quick_start(environment)
    return environment


class Server:
    """A running `hms-bridge serve`, and what it said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if "serving thrift" in line:
                self._ready.set()
        self._ready.set()

    def wait_until_ready(self, seconds: float = 120) -> str:
        """The address that the ready line tells."""
        assert self._ready.wait(seconds), self.lines
        ready = [line for line in self.lines if "serving thrift" in line]
        assert ready, self.lines
        return ready[0].partition("serving ")[2].split()[0]

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        return code


@contextmanager
def serving(program: Program, *words: str, is_plain: bool = False) -> Iterator[Server]:
    """`hms-bridge serve` as a process; killed at the end if it is still there.

    ``is_plain``: with the program's own defaults in its folder, as a person starts it.
    """
    process = subprocess.Popen(
        [*command(), "serve", *words], cwd=program.folder,
        env=process_environment({} if is_plain else program.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    server = Server(process)
    try:
        yield server
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stderr is not None
        server._reader.join(10)
        process.stderr.close()
