"""Types a page's blocks as they stand; only hosts, ports and folders of /etc are put in."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from integration.referees.hdfs import Hdfs
from integration.referees.ours import CHECKOUT, PROGRAM
from tests.support.documents import Block

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
        done = subprocess.run(
            ["sh", "-e", "-c", self.put_in(text)], cwd=self.folder, text=True,
            env=self.environment | environment, stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

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
