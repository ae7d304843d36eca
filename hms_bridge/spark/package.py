"""Builds what executors need that have none of it: our packages, and those that tasks import.

``environment.tar.gz`` is no virtual environment: its ``bin/python`` starts the host's own Python of
the driver's version with the archive's packages behind Spark's, so the archive can lie anywhere.
"""

from __future__ import annotations

import io
import shutil
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hms_bridge.errors import ConfigError
from hms_bridge.spark.jar import JAR, jar_version
from hms_bridge.spark.needs import MODULES, OPTIONAL_DISTRIBUTIONS, PACKAGES

SOURCES = "hms_bridge.zip"
ENVIRONMENT = "environment.tar.gz"
PROPERTIES = "spark.properties"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_IGNORED = ("__pycache__", ".pyc", ".jar")

_LAUNCHER = """#!/bin/sh
# Starts Python {version} of this host with the packages of this archive.
here=$(dirname -- "$0")
here=$(cd -- "$here/.." && pwd) || exit 1
for python in "$HMS_BRIDGE_PYTHON" "{base}" python{version}; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1; then
        PYTHONPATH="$PYTHONPATH:$here/packages" exec "$python" "$@"
    fi
done
echo "hms-bridge: $(hostname) has no Python {version}: no {base}, no python{version} on the PATH;" \
    "install it, or name it in spark.executorEnv.HMS_BRIDGE_PYTHON" >&2
exit 127
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SparkPackage:
    """What was written, and the settings of Spark that use it."""

    sources: Path
    jar: Path
    environment: Path | None
    properties: Path
    settings: tuple[tuple[str, str], ...]
    distributions: tuple[str, ...]


def build_package(output: Path, *, is_with_environment: bool) -> SparkPackage:
    """Write the files into a folder, which is made. Raises ConfigError for what lacks here."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        sources = output.resolve() / SOURCES
        _write_sources(sources)
        jar = output.resolve() / JAR.name
        jar_version()  # says what to do if there is none
        shutil.copyfile(JAR, jar)
        settings = [("spark.submit.pyFiles", str(sources)), ("spark.jars", str(jar))]
        environment: Path | None = None
        names: tuple[str, ...] = ()
        if is_with_environment:
            environment = output.resolve() / ENVIRONMENT
            names = _write_environment(environment)
            settings += [
                ("spark.archives", f"{environment}#environment"),
                ("spark.pyspark.python", "./environment/bin/python"),
            ]
        properties = output.resolve() / PROPERTIES
        lines = [f"{key}={value}\n" for key, value in settings]
        properties.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write to {output}: {error}") from error
    return SparkPackage(
        sources=sources,
        jar=jar,
        environment=environment,
        properties=properties,
        settings=tuple(settings),
        distributions=names,
    )


def _write_sources(target: Path) -> None:
    """The same bytes for the same sources."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as content:
        for package in PACKAGES:
            for path, entry in sorted(_walk(files(package), package)):
                info = zipfile.ZipInfo(path, _EPOCH)
                content.writestr(info, entry.read_bytes(), zipfile.ZIP_DEFLATED)


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.name.endswith(_IGNORED):
            continue
        inside = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, inside)
        else:
            yield inside, entry


def _write_environment(target: Path) -> tuple[str, ...]:
    distributions = _closure()
    with tarfile.open(target, "w:gz", compresslevel=4) as archive:
        _add_text(archive, "bin/python", _launcher(), mode=0o755)
        for packed in distributions:
            for path, source in _files_of(packed):
                archive.add(source, f"packages/{path}", recursive=False, filter=_plain)
    return tuple(f"{packed.metadata['Name']}=={packed.version}" for packed in distributions)


def _launcher() -> str:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    base = Path(sys.base_prefix) / "bin" / f"python{version}"
    return _LAUNCHER.format(version=version, base=base)


def _add_text(archive: tarfile.TarFile, name: str, text: str, *, mode: int) -> None:
    data = text.encode()
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Readable by whoever runs the executor; nobody's own."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    is_program = info.mode & stat.S_IXUSR
    info.mode = 0o755 if is_program else 0o644
    return info


def _closure() -> tuple[Distribution, ...]:
    """The distributions and all that they require here, each once, by name."""
    distributions: dict[str, Distribution] = {}
    pending = list(MODULES.values())
    pending += [name for name in OPTIONAL_DISTRIBUTIONS if _is_installed(name)]
    while pending:
        name = canonicalize_name(pending.pop())
        if name in distributions:
            continue
        try:
            distributions[name] = distribution(name)
        except PackageNotFoundError as error:
            raise ConfigError(
                f"{name} is not installed here, and executors need it; install hms-bridge with "
                "its dependencies"
            ) from error
        pending += _required(distributions[name].requires or ())
    return tuple(distributions[name] for name in sorted(distributions))


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _required(texts: Sequence[str]) -> list[str]:
    requirements = [Requirement(text) for text in texts]
    return [
        requirement.name
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]


def _files_of(package: Distribution) -> Iterator[tuple[str, Path]]:
    """Files below the folder of packages: programs beside it are not for executors."""
    if package.files is None:
        raise ConfigError(
            f"{package.metadata['Name']} has no list of its files, so it cannot be packed; "
            "install it with pip"
        )
    for file in package.files:
        path = file.as_posix()
        if not path.startswith(("..", "/")) and not path.endswith(_IGNORED):
            source = Path(str(package.locate_file(file)))
            if source.is_file() and "/tests/" not in f"/{path}":
                yield path, source
