"""An HDFS whose quota is used up: a load into it says so, and goes on once there is room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.referees.hdfs import OUR_USER, Hdfs
from tests.support.databases import sqlite_file
from tests.support.program import run_here
from tests.support.world import World

pytestmark = pytest.mark.hdfs


@pytest.fixture
def source(tmp_path: Path) -> Iterator[World]:
    """Two tables on this machine's disk."""
    (tmp_path / "source").mkdir()
    made = World(
        tmp_path / "source",
        url=sqlite_file(tmp_path, "source.db"),
        database="sales",
        parameters={"repl.source.for": "sales"},
    )
    for name in ("a", "b"):
        made.create_table(name)
        made.insert(name, (1, name))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("client", "quota", "without", "words"),
    [
        ("auto", ("-setSpaceQuota", "1m"), "-clrSpaceQuota", "The DiskSpace quota of"),
        ("http", ("-setQuota", "7"), "-clrQuota", "The NameSpace quota (directories and files) of"),
    ],
    ids=["space, natively", "names, over http"],
)
def test_a_load_over_a_quota_says_so_and_goes_on(
    hdfs: Hdfs,
    source: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    quota: tuple[str, str],
    without: str,
    words: str,
) -> None:
    place = f"/full-{client}"
    hdfs.make_directory(place, owner=OUR_USER, group="hadoop", mode="775")
    for name, value in hdfs.environment().items():
        monkeypatch.setenv(name, value)
    root = f"file:{tmp_path}/dumps"
    target = (
        "--metastore", f"sqlite:///{tmp_path}/target.db",
        "--set", f"hive.metastore.warehouse.dir={hdfs.uri}{place}",
        "--set", f"hms.bridge.hdfs.client={client}",
        "--set", f"hms.bridge.repl.load.roots=file:{tmp_path}",
    )  # fmt: skip

    archive = tmp_path / "cmroot"
    archive.mkdir()
    dumped = run_here(
        "repl", "dump", "sales", "--root", root, "--metastore", f"sqlite:///{tmp_path}/source.db",
        "--set", f"hive.repl.cmrootdir=file:{archive}",
    )  # fmt: skip
    assert dumped.exit_code == 0, dumped.err
    made = run_here("schema", "init", "--database", f"sqlite:///{tmp_path}/target.db")
    assert made.exit_code == 0, made.err
    hdfs.admin(*quota, place)
    refused = run_here("repl", "load", "sales", "--root", root, *target)
    assert refused.exit_code == 1
    assert words in refused.err
    assert place in refused.err
    assert "as a quota there is used up" in refused.err
    assert "raise the quota with hdfs dfsadmin" in refused.err
    assert "bytes more. What was loaded stays: make room there, then load again" in refused.err
    hdfs.admin(without, place)
    loaded = run_here("repl", "load", "sales", "--root", root, *target)
    assert loaded.exit_code == 0, loaded.err
    for name in ("a", "b"):
        query = ("sql", "-e", f"SELECT * FROM sales.{name}", "--format", "jsonl", *target)
        assert run_here(*query).json_lines == [{"id": 1, "v": name}]
