"""Servers as child processes: own process group, own log, stopped by the pid that was started.

Three nets so that nothing survives a run: a fixture stops its server; `atexit` stops the rest; and
the kernel ends a server whose parent died without either (`setpriv --pdeathsig`).
"""

from __future__ import annotations

import atexit
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from integration.referees.errors import RefereeError, StartError

LOG_LINES_SHOWN = 40
UNPRIVILEGED_USER = "nobody"
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=192m")
"""For programs that live for minutes, many beside each other on two cores: Java's second compiler
takes more from the others than it gives. With one compiler Java has 48 MiB for code, which a
HiveServer2 has filled after some hundred statements. Not where times are compared."""
FAST_JAVA = ("-XX:+UseSerialGC",)
"""With both compilers, as Java comes."""


def free_port() -> int:
    """A port of the loopback interface that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_listening(port: int) -> bool:
    """Whether something accepts connections on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def unprivileged_user() -> str | None:
    """The account for servers that refuse to run as root; None when we are not root ourselves."""
    return UNPRIVILEGED_USER if os.getuid() == 0 else None


class Server:
    """One started process group with its log."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log_path: Path) -> None:
        self.name = name
        self.process = process
        self.log_path = log_path

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def cpu_seconds(self) -> float:
        """What the process itself has taken of processors, without its children."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_peak_mib(self) -> float:
        """The most memory that the process itself has had at a time."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024

    def log_tail(self) -> str:
        """The end of what the server wrote."""
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])

    def log_contains(self, text: str) -> bool:
        return self.count_in_log(text) > 0

    def count_in_log(self, text: str) -> int:
        """How often the server wrote a text."""
        return self.log_path.read_text(errors="replace").count(text)

    def wait_until(self, is_ready: Callable[[], bool], *, timeout_seconds: float = 120) -> None:
        """Return once `is_ready`; StartError when the process ends first or the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while not is_ready():
            if not self.is_running:
                raise StartError(
                    f"{self.name} ended with {self.process.returncode} before it was ready; "
                    f"log: {self.log_path}\n{self.log_tail()}"
                )
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self.name} was not ready after {timeout_seconds:.0f} s; "
                    f"log: {self.log_path}\n{self.log_tail()}"
                )
            time.sleep(0.1)

    def stop(self, *, timeout_seconds: float = 20) -> None:
        """End the process group: politely, then for good. A second call does nothing."""
        if self.is_running:
            self._signal(signal.SIGTERM)
            try:
                self.process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self.process.wait()
        self._signal(signal.SIGKILL)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return


class Workplace:
    """Where one run keeps its data, its logs and its servers; `java` are options of every server in
    Java."""

    def __init__(self, log_folder: Path, java: Sequence[str] = QUICK_JAVA) -> None:
        self.java = java
        self.data_folder = Path(tempfile.mkdtemp(prefix="referees-"))
        self.data_folder.chmod(0o755)
        self.log_folder = log_folder
        self.log_folder.mkdir(parents=True, exist_ok=True)
        self._servers: list[Server] = []
        atexit.register(self.close)

    def folder(self, name: str, *, owner: str | None = None) -> Path:
        """A new folder under the data folder, owned by `owner`."""
        path = _unused(self.data_folder, name)
        path.mkdir()
        if owner is not None:
            account = pwd.getpwnam(owner)
            os.chown(path, account.pw_uid, account.pw_gid)
        return path

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: str | None = None,
        is_piped: bool = False,
    ) -> Server:
        """Start a server; its output goes to NAME.log, or standard output to a pipe if
        `is_piped`.
        """
        log_path = _unused(self.log_folder, name, ".log")
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *_identity(user), *map(str, command)],
                stdin=subprocess.PIPE if is_piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if is_piped else log,
                stderr=log if is_piped else subprocess.STDOUT,
                env=_surroundings() | dict(env or {}),
                cwd=cwd or self.data_folder,
                start_new_session=True,
            )
        server = Server(name, process, log_path)
        self._servers.append(server)
        _wait_until_bound(process)
        return server

    def run(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: str | None = None,
        stdin: IO[bytes] | None = None,
        timeout_seconds: float = 300,
    ) -> str:
        """Run a program to its end and return its standard output; RefereeError if it fails."""
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", *_identity(user), *map(str, command)],
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            env=_surroundings() | dict(env or {}),
            cwd=cwd or self.data_folder,
            timeout=timeout_seconds,
            check=False,
        )
        output = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            log_path = _unused(self.log_folder, name, ".log")
            errors = done.stderr.decode(errors="replace")
            log_path.write_text(output + errors)
            tail = "\n".join((output + errors).splitlines()[-LOG_LINES_SHOWN:])
            raise RefereeError(f"{name} ended with {done.returncode}; log: {log_path}\n{tail}")
        return output

    def close(self) -> None:
        """Stop every server, the newest first, and remove the data folder."""
        while self._servers:
            self._servers.pop().stop()
        shutil.rmtree(self.data_folder, ignore_errors=True)


@contextmanager
def temporary_workplace(java: Sequence[str] = QUICK_JAVA) -> Iterator[Workplace]:
    """One that goes, its logs with it."""
    with tempfile.TemporaryDirectory(prefix="referees-logs-") as logs:
        workplace = Workplace(Path(logs), java)
        try:
            yield workplace
        finally:
            workplace.close()


def _unused(folder: Path, name: str, suffix: str = "") -> Path:
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(path for path in (folder / f"{n}{suffix}" for n in names) if not path.exists())


def _wait_until_bound(process: subprocess.Popen[bytes]) -> None:
    """Until setpriv has become the program: before that the kernel would not end it with us."""
    words = Path(f"/proc/{process.pid}/cmdline")  # empty while a program is being loaded
    while process.poll() is None and words.read_bytes().partition(b"\0")[0] in (b"", b"setpriv"):
        time.sleep(0.005)


def _identity(user: str | None) -> list[str]:
    """What setpriv needs to be told to run something as `user`."""
    if user is None:
        return []
    return ["--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid), "--clear-groups"]


def _surroundings() -> dict[str, str]:
    """The environment of this process, less the user that our HDFS client here may have set."""
    return {name: value for name, value in os.environ.items() if name != "HADOOP_USER_NAME"}
