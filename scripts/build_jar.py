"""Compiles jvm/src to the jar that Spark loads, unless the jar there is of these very sources.

One source serves Spark 3.5 and 4: Java 8's language and classes, and of Spark what both have. It is
compiled against the PySpark that is installed (integration runs it on both).
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "jvm/src"
JAR = ROOT / "hms_bridge/spark/jars/hms-bridge-spark.jar"
VERSION = "hmsbridge/version.properties"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def main() -> int:
    """0, or 1 with what to install."""
    if is_current():
        return 0
    javac = find_javac()
    if javac is None:
        sys.stderr.write(
            "no Java compiler: install one (Debian, Ubuntu: apt-get install "
            "openjdk-17-jdk-headless) or set JAVA_HOME, then run make setup again\n"
        )
        return 1
    with tempfile.TemporaryDirectory() as folder:
        compiled = subprocess.run(
            [javac, "-J-Xmx400m", "--release", "8", "-Xlint:-options", "-XDsuppressNotes",
             "-nowarn", "-cp", f"{spark_jars()}/*", "-d", folder, *map(str, sources())],
            check=False,
        )  # fmt: skip
        if compiled.returncode:
            return 1
        write_jar(Path(folder))
    return 0


def sources() -> list[Path]:
    """All of them, by name."""
    return sorted(SOURCES.rglob("*.java"))


def version() -> str:
    """The program's, and which sources: what a jar says of itself (the plan service compares)."""
    content = hashlib.sha256()
    for path in sources():
        content.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return f"{project['project']['version']}+{content.hexdigest()[:12]}"


def is_current() -> bool:
    """Whether the jar is made of the sources that are there."""
    try:
        with zipfile.ZipFile(JAR) as jar:
            return jar.read(VERSION).decode() == f"version={version()}\n"
    except (OSError, KeyError, zipfile.BadZipFile):
        return False


def find_javac() -> str | None:
    """The compiler of the Java that Spark runs on, else the PATH's."""
    from hms_bridge.errors import ConfigError
    from hms_bridge.spark.java import find_java_home

    try:
        program = find_java_home() / "bin/javac"
    except ConfigError:
        return shutil.which("javac")
    return str(program) if program.is_file() else shutil.which("javac")


def spark_jars() -> Path:
    """Of the installed PySpark."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SystemExit("PySpark is not installed here; run make setup")
    return Path(found.origin).parent / "jars"


def write_jar(classes: Path) -> None:
    """The same bytes for the same classes; never half a jar."""
    JAR.parent.mkdir(exist_ok=True)
    made = JAR.with_suffix(".new")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as jar:
        _add(jar, "META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\n\r\n")
        _add(jar, VERSION, f"version={version()}\n".encode())
        for path in sorted(classes.rglob("*.class")):
            _add(jar, path.relative_to(classes).as_posix(), path.read_bytes())
    made.replace(JAR)


def _add(jar: zipfile.ZipFile, name: str, data: bytes) -> None:
    jar.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    sys.exit(main())
