"""Types a page's blocks as they stand; only hosts, ports and folders of /etc are put in."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from integration.referees.hdfs import Hdfs
from integration.referees.ours import CHECKOUT, PROGRAM
from tests.support.documents import Block
from tests.support.program import Answer

_SECONDS_MAX = 600
_CRON = re.compile(r"(?:\S+ ){5}(?P<user>\S+) (?P<command>.*)")


class Typist:
    """A shell with `hms-bridge` and the superuser's `hdfs`, on a host whose /etc is `folder`."""

    def __init__(self, folder: Path, hdfs: Hdfs, hosts: Mapping[str, str]) -> None:
        self.folder = folder
        self.etc = folder / "etc"
        self._hosts = {"/etc/": f"{self.etc}/", **hosts}
        self._bin = folder / "bin"
        self._bin.mkdir(parents=True)
        self._program("hms-bridge", f'exec {shlex.join(PROGRAM)} "$@"')
        self._program("hdfs", f'shift; exec {shlex.join(hdfs.shell_command)} "$@"')

    def put_in(self, text: str) -> str:
        """The text with this run's hosts."""
        for theirs, ours in self._hosts.items():
            text = text.replace(theirs, ours)
        assert ".example" not in text, text
        return text

    def types(self, text: str, **environment: str) -> str:
        """What a block prints; it must succeed to its last line."""
        return self.answer(text, environment).out

    def answer(self, text: str, environment: Mapping[str, str], exit_code: int = 0) -> Answer:
        """What a block prints, on both streams; it must end with this code."""
        done = subprocess.run(
            ["sh", "-e", "-c", self.put_in(text)], cwd=self.folder, text=True,
            env=self.environment | dict(environment), stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=_SECONDS_MAX,
        )  # fmt: skip
        assert done.returncode == exit_code, (text, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    def kills(self, text: str, environment: Mapping[str, str], is_time: Callable[[], bool]) -> None:
        """Type a block, and SIGKILL what runs as soon as it is time; it must be running then."""
        process = subprocess.Popen(
            ["sh", "-e", "-c", self.put_in(text)], cwd=self.folder,
            env=self.environment | dict(environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + _SECONDS_MAX
            while not is_time():
                assert process.poll() is None, f"ended ({process.returncode}) too early: {text}"
                assert time.monotonic() < deadline, f"the time to kill it did not come: {text}"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        assert code == -signal.SIGKILL, f"ended ({code}) before it was killed: {text}"

    def cron(self, text: str, **environment: str) -> str:
        """What the one line of a crontab prints when its time has come."""
        (line,) = text.strip().splitlines()
        found = _CRON.fullmatch(line)
        assert found, line
        assert found["user"] == "hmsbridge"
        return self.types(found["command"], **environment)

    def site(self, path: str, block: Block) -> None:
        """Write the properties of a block as a site file."""
        file = self.etc / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"<configuration>\n{self.put_in(block.text)}</configuration>\n")

    def properties(self, block: Block) -> dict[str, str]:
        """The properties of a block."""
        root = ElementTree.fromstring(f"<c>{self.put_in(block.text)}</c>")
        return {str(one.findtext("name")): str(one.findtext("value")) for one in root}

    def exec_start(self, block: Block) -> list[str]:
        """The command of a systemd unit."""
        (line,) = re.findall(r"^ExecStart=(.*)$", self.put_in(block.text), re.MULTILINE)
        return shlex.split(line)

    @property
    def environment(self) -> dict[str, str]:
        names = ("HADOOP_", "HMS_BRIDGE_", "HIVE_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
        path = f"{self._bin}:{kept['PATH']}"
        return kept | {"PATH": path, "PYTHONPATH": str(CHECKOUT)}

    def _program(self, name: str, line: str) -> None:
        file = self._bin / name
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)
