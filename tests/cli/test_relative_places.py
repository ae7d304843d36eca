"""Relative places are of the metastore's folder, wherever a verb is typed (I4, I5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hms_bridge.connect import connected_locally
from tests.cli.test_bad_input import FAILED, refused
from tests.support.program import Answer, Program, run_here, serving
from tests.support.world import World


@dataclass(frozen=True)
class Folders:
    """``home`` has a metastore, whose table waits for the cleaner; somebody is ``elsewhere``."""

    home: Path
    elsewhere: Path
    world: World

    @property
    def metastore(self) -> tuple[str, str]:
        return "--metastore", f"sqlite:///{self.home}/metastore.db"

    def run(self, *words: str) -> Answer:
        return run_here(*words, *self.metastore)

    def ok(self, *words: str) -> Answer:
        answer = self.run(*words)
        assert answer.exit_code == 0, (words, answer.out, answer.err)
        return answer


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_new: bool) -> Folders:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    url = f"sqlite:///{home}/metastore.db"
    monkeypatch.chdir(elsewhere)
    assert run_here("schema", "init", "--metastore", url).exit_code == 0
    if not is_new:
        with sqlite3.connect(home / "metastore.db") as database:
            database.execute("DELETE FROM METASTORE_DB_PROPERTIES")
        database.close()
    world = World(
        home, warehouse="warehouse", url=url, database="sales",
        parameters={"repl.source.for": "p"},
    )  # fmt: skip
    world.create_table()
    for row in range(3):
        world.insert("t", (row, "v"))
    world.compact()
    return Folders(home, elsewhere, world)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """A metastore that was made by this version."""
    found = made(tmp_path, monkeypatch, is_new=True)
    yield found
    found.world.close()


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """One whose database says nothing of a folder."""
    found = made(tmp_path, monkeypatch, is_new=False)
    yield found
    found.world.close()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_cleaner_typed_elsewhere_archives_where_a_load_looks(folders: Folders) -> None:
    folders.ok("repl", "dump", "sales", "--root", str(folders.home / "dumps"))
    folders.ok("cleaner", "run")
    assert names(folders.elsewhere) == set()
    assert len([name for name in names(folders.home / "cmroot") if "bucket" in name]) == 3
    assert len(folders.ok("cm", "ls", "--format", "jsonl").json_lines) == 4
    loaded = run_here(
        "repl", "load", "sales", "--root", str(folders.home / "dumps"), "--trust-origin",
        "--metastore", f"sqlite:///{folders.elsewhere}/replica.db",
    )  # fmt: skip
    assert loaded.exit_code == 0, loaded.err
    assert names(folders.elsewhere) == {"replica.db", "warehouse"}
    assert list((folders.elsewhere / "warehouse" / "sales.db" / "t").rglob("bucket_*"))


@pytest.mark.parametrize("is_in_file", [False, True])
def test_a_load_reads_the_archive_of_the_source_that_is_named(
    folders: Folders, *, is_in_file: bool
) -> None:
    """It took the replica's own folder for that of the source's archive, and no URL of a file."""
    root = ("--root", str(folders.home / "dumps"))
    folders.ok("repl", "dump", "sales", *root)
    folders.ok("cleaner", "run")
    source = folders.metastore[1]
    if is_in_file:
        (folders.home / "url").write_text(source)
        source = f"@{folders.home}/url"
    loaded = run_here(
        "repl", "load", "sales", *root, "--source", source,
        "--metastore", f"sqlite:///{folders.elsewhere}/replica.db",
    )  # fmt: skip
    assert loaded.exit_code == 0, loaded.err
    assert list((folders.elsewhere / "warehouse" / "sales.db" / "t").rglob("bucket_*"))


def test_a_new_database_lies_in_the_metastores_warehouse(folders: Folders) -> None:
    folders.ok("sql", "-e", "CREATE DATABASE more")
    location = folders.world.metastore.get_database("more").location
    assert location == f"file:{folders.home}/warehouse/more.db"


def test_what_is_typed_is_of_the_folder_where_it_is_typed(folders: Folders) -> None:
    folders.ok("cleaner", "run", "--set", "hive.repl.cmrootdir=mine")
    assert names(folders.elsewhere) == {"mine"}


def test_an_archive_that_is_named_in_full_is_taken(folders: Folders, tmp_path: Path) -> None:
    """As after an admin has moved it."""
    folders.ok("cleaner", "run", "--set", f"hive.repl.cmrootdir={tmp_path}/moved")
    assert "moved" in names(tmp_path)
    assert names(folders.elsewhere) == set()


def test_an_older_database_learns_its_folder_from_its_server(older: Folders) -> None:
    program = Program(older.home)
    with serving(program, "--port", "0", is_plain=True) as server:
        server.wait_until_ready()
        server.stop()
    older.ok("cleaner", "run")
    assert names(older.elsewhere) == set()
    assert "cmroot" in names(older.home)


def test_an_older_database_that_no_server_opened_is_as_it_was(older: Folders) -> None:
    """Nobody knows its folder: it may never have been that of its file."""
    older.ok("cleaner", "run")
    assert names(older.elsewhere) == {"cmroot"}


def test_an_older_databases_archive_is_not_mistaken(older: Folders) -> None:
    """What it has archived says where; both places are named, and what to type."""
    older.ok("cleaner", "run", "--set", f"hive.repl.cmrootdir={older.home}/cmroot")
    dump = ("repl", "dump", "sales", "--root", str(older.home / "dumps"))
    listing = (("cm", "ls"), ("cm", "purge", "--dry-run"), ("cm", "fsck"))
    for verb in (*listing, ("cleaner", "run"), dump):
        answer = older.run(*verb)
        refused(answer, FAILED, f"{older.home}/cmroot", f"{older.elsewhere}/cmroot", "--set")
    assert names(older.elsewhere) == set()


def test_the_library_goes_by_the_same_folder(folders: Folders) -> None:
    with connected_locally(folders.metastore[1], is_created=False) as store:
        assert store.archive().cmroot.uri == f"file:{folders.home}/cmroot"


@pytest.mark.parametrize("place", ["{}/m.db", "m.db"])
def test_a_uri_of_sqlites_own_is_opened_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Taken for a path, it became a file with the name `file:m.db`, beside an empty `m.db`."""
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///file:{place.format(tmp_path)}?uri=true"
    made = run_here("schema", "init", "--metastore", url)
    assert made.exit_code == 0, made.err
    assert run_here("txns", "--metastore", url).exit_code == 0
    assert [name.name for name in tmp_path.iterdir()] == ["m.db"]
