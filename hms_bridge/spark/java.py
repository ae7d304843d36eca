"""Finds a Java that Spark runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hms_bridge.errors import ConfigError

VERSIONS_OF_SPARK_4 = (17, 21)
"""Least and most: Spark 4 is released for Java 17 and 21."""
VERSIONS_OF_SPARK_3 = (8, 17)
"""Spark 3.5 is released for Java 8, 11 and 17."""

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def find_java_home() -> Path:
    """The home of a Java for the installed PySpark: JAVA_HOME, the PATH, then the usual folders.

    Raises ConfigError that says what to install.
    """
    seen = []
    least, most = _supported()
    for home in _candidates():
        major = java_version(home)
        if major is not None:
            seen.append(f"{home} (Java {major})")
            if least <= major <= most:
                return home
    which = f"found only {', '.join(seen)}" if seen else "found none"
    raise ConfigError(
        f"Spark needs Java {least} to {most}: {which}; install one "
        "(Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )


def _supported() -> tuple[int, int]:
    try:
        is_spark_3 = version("pyspark").startswith("3.")
    except PackageNotFoundError:
        is_spark_3 = False
    return VERSIONS_OF_SPARK_3 if is_spark_3 else VERSIONS_OF_SPARK_4


def java_version(home: Path) -> int | None:
    """The major version of the Java in ``home``; None if there is none that runs."""
    program = home / "bin" / "java"
    if not program.is_file():
        return None
    try:
        run = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(run.stderr + run.stdout)
    if match is None:
        return None
    first = int(match.group(1))
    return int(match.group(2) or 0) if first == 1 else first


def _candidates() -> Iterable[Path]:
    if given := os.environ.get("JAVA_HOME"):
        yield Path(given)
    if program := shutil.which("java"):
        yield Path(program).resolve().parents[1]
    for folder in (Path("/usr/lib/jvm"), Path("/opt/java")):
        if folder.is_dir():
            yield from sorted(folder.iterdir())


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_java_home()}\n")
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
