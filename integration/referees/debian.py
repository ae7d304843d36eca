"""Programs from Debian's packages: looked for first, installed by name where they lack."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from integration.referees.errors import InstallError


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program and the packages that bring it."""

    what: str
    packages: tuple[str, ...]
    find: Callable[[], Path | None]


def newest(pattern: str) -> Callable[[], Path | None]:
    """Find the file under / that matches, the last by name when there are several."""

    def find() -> Path | None:
        found = sorted(Path("/").glob(pattern.lstrip("/")))
        return found[-1] if found else None

    return find


def on_path(name: str, *more_folders: str) -> Callable[[], Path | None]:
    """Find a command on PATH or in further folders."""

    def find() -> Path | None:
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *more_folders])
        found = shutil.which(name, path=path)
        return Path(found) if found else None

    return find


# The -core packages of MariaDB hold the server without an account, a service or a cluster of its
# own.
POSTGRESQL = Program(
    what="PostgreSQL server",
    packages=("postgresql",),
    find=newest("/usr/lib/postgresql/*/bin/postgres"),
)
MARIADB = Program(
    what="MariaDB server",
    packages=("mariadb-server-core", "mariadb-client-core"),
    find=on_path("mariadbd", "/usr/sbin"),
)
MAVEN = Program(what="Maven", packages=("maven",), find=on_path("mvn"))
JAVA_17 = Program(
    what="Java 17",
    packages=("openjdk-17-jdk-headless",),
    find=newest("/usr/lib/jvm/java-17-openjdk-*/bin/java"),
)
FAKETIME = Program(
    what="libfaketime",
    packages=("libfaketime",),
    find=newest("/usr/lib/*/faketime/libfaketime.so.1"),
)

PROGRAMS = (POSTGRESQL, MARIADB, MAVEN, JAVA_17, FAKETIME)


def other_time(shift: str) -> dict[str, str]:
    """The environment of programs whose clock is so much ahead, as ``+40d``; waits stay true."""
    return {
        "LD_PRELOAD": str(ensure(FAKETIME)),
        "FAKETIME": shift,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def ensure(program: Program) -> Path:
    """The path of the program, after `apt-get install` if it was not there; InstallError if that
    fails.
    """
    found = program.find()
    if found is not None:
        return found
    command = ["apt-get", "install", "-y", "--no-install-recommends", *program.packages]
    remedy = f"as root: apt-get update && {' '.join(command)}"
    if os.getuid() != 0:
        raise InstallError(part=program.what, why="it lacks and we are not root", remedy=remedy)
    _run(["apt-get", "update"], program, remedy)
    _run(command, program, remedy)
    found = program.find()
    if found is None:
        raise InstallError(
            part=program.what,
            why=f"{', '.join(program.packages)} is installed, but the program is not there",
            remedy="look with: dpkg -L " + " ".join(program.packages),
        )
    return found


def _run(command: list[str], program: Program, remedy: str) -> None:
    # RUNLEVEL=1 keeps package scripts from starting a service: the referees start their own.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise InstallError(
            part=program.what,
            why=f"`{' '.join(command)}` ended with {done.returncode}:\n{tail}",
            remedy=remedy,
        )
