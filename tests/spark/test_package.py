"""What `spark package` writes runs by itself: with a bare Python, and nothing of this checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from hms_bridge.errors import ConfigError
from hms_bridge.spark.executor_probe import digest, look
from hms_bridge.spark.needs import MODULES, PACKAGES
from hms_bridge.spark.package import build_package
from hms_bridge.spark.request import read_properties

LOOK = """
import json, runpy, sys
probe = runpy.run_path(sys.argv[1])
print(json.dumps(probe["look"](json.loads(sys.argv[2]), json.loads(sys.argv[3]))))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    build_package(folder, is_with_environment=True)
    return folder


def probe(python: Path | str, folder: Path, path: str) -> dict[str, object]:
    source = Path(__file__).parents[2] / "hms_bridge" / "spark" / "executor_probe.py"
    copy = folder / "probe.py"
    copy.write_text(source.read_text())
    run = subprocess.run(
        [python, "-c", LOOK, copy, json.dumps(dict(MODULES)), json.dumps(PACKAGES)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path}, cwd=folder,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, object] = json.loads(run.stdout)
    return found


def test_the_archive_has_all_that_tasks_import(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / "environment.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # not in 3.11.2
        archive.extractall(tmp_path / "environment")
    python = tmp_path / "environment" / "bin" / "python"
    found = probe(python, tmp_path, str(built / "hms_bridge.zip"))
    here = look(MODULES, PACKAGES)
    assert found["errors"] == {}
    for name in ("python", "versions", "digests"):
        assert found[name] == here[name]


def test_a_bare_python_lacks_it(tmp_path: Path) -> None:
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    found = probe(base, tmp_path, "")
    assert set(found["digests"].values()) == {None}  # type: ignore[attr-defined]
    assert "pyarrow" in found["errors"]  # type: ignore[operator]


def test_the_same_sources_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    build_package(tmp_path, is_with_environment=False)
    assert (tmp_path / "hms_bridge.zip").read_bytes() == (built / "hms_bridge.zip").read_bytes()
    assert read_properties(tmp_path / "spark.properties") == {
        "spark.submit.pyFiles": str(tmp_path.resolve() / "hms_bridge.zip"),
        "spark.jars": str(tmp_path.resolve() / "hms-bridge-spark.jar"),
    }


def test_another_source_is_another_digest(built: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.zip"
    with (
        zipfile.ZipFile(built / "hms_bridge.zip") as before,
        zipfile.ZipFile(changed, "w") as after,
    ):
        for name in before.namelist():
            more = b"#" if name == "cleaner/remover.py" or name.endswith("cleaner/cli.py") else b""
            after.writestr(name, before.read(name) + more)
    found = probe(sys.executable, tmp_path, str(changed))
    digests: dict[str, str] = found["digests"]  # type: ignore[assignment]
    assert digests["hms_bridge"] == digest("hms_bridge")
    assert digests["cleaner"] != digest("cleaner")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot write to"):
        build_package(tmp_path / "file" / "below", is_with_environment=False)
