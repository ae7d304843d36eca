"""What an executor's Python has. Sent to executors as it is, so it needs nothing but Python."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import socket
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


def look(modules: Mapping[str, str], packages: Sequence[str]) -> dict[str, Any]:
    """Python's version, versions of ``modules`` (by import name; the value is the distribution's
    name) or why one cannot be imported, and a digest of each of our ``packages``."""
    versions: dict[str, str | None] = {}
    errors: dict[str, str] = {}
    for module, distribution in modules.items():
        try:
            importlib.import_module(module)
        except Exception as error:  # a broken package can raise anything
            errors[module] = f"{type(error).__name__}: {error}"
            continue
        try:
            versions[module] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            versions[module] = None
    return {
        "host": socket.gethostname(),
        "executor": os.environ.get("SPARK_EXECUTOR_DIRS", str(os.getppid())),
        "executable": sys.executable,
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "versions": versions,
        "errors": errors,
        "digests": {package: digest(package) for package in packages},
    }


def digest(package: str) -> str | None:
    """Of the sources of a package, in a folder or a zip file; None if it is not there."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    (root, *_) = spec.submodule_search_locations
    sources = sorted(_in_folder(root) if os.path.isdir(root) else _in_zip(root))  # noqa: PTH112
    total = hashlib.sha256()
    for path, data in sources:
        total.update(f"{path}\0{len(data)}\0".encode() + data)
    return total.hexdigest()[:16]


def _in_folder(root: str) -> Iterator[tuple[str, bytes]]:
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)  # noqa: PTH118
                with open(path, "rb") as stream:  # noqa: PTH123
                    yield os.path.relpath(path, root).replace(os.sep, "/"), stream.read()


def _in_zip(root: str) -> Iterator[tuple[str, bytes]]:
    """``/…/hms_bridge.zip/hms_bridge``."""
    archive = root
    while archive and not os.path.isfile(archive):  # noqa: PTH113
        archive = os.path.dirname(archive)  # noqa: PTH120
    inside = root[len(archive) + 1 :].replace(os.sep, "/") + "/"
    with zipfile.ZipFile(archive) as content:
        for name in content.namelist():
            if name.startswith(inside) and name.endswith(".py"):
                yield name[len(inside) :], content.read(name)


class Probe:
    """A task: one look in each executor's Python that runs it."""

    def __init__(self, modules: Mapping[str, str], packages: Sequence[str]) -> None:
        self.modules = dict(modules)
        self.packages = tuple(packages)

    def __call__(self, _: Iterable[object]) -> Iterator[dict[str, Any]]:
        """The answer of this process."""
        yield look(self.modules, self.packages)
