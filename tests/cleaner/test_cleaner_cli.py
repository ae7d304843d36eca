"""`hms-bridge cleaner`: what it prints, and its exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import update

from changemanager.checksum import composite_checksum
from changemanager.uri import archive_name
from cleaner.cli import cleaner
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE
from hms_bridge.cli.ending import TextEnding
from hms_bridge.errors import ConfigError, HmsBridgeError
from hms_bridge.model.txn import TxnType
from tests.support.cleaning_world import CleaningWorld, delta


@pytest.fixture
def world(tmp_path: Path) -> CleaningWorld:
    world = CleaningWorld(tmp_path)
    world.write()
    world.write()
    return world


def call(world: CleaningWorld, *arguments: str, is_json: bool = True) -> Result:
    options = [
        "--metastore", world.url,
        "--set", f"hive.repl.cmrootdir={world.folder}/cmroot",
        "--set", f"hive.metastore.warehouse.dir={world.folder}/warehouse",
    ]  # fmt: skip
    shape = ["--format", "json"] if is_json else []
    return CliRunner().invoke(cleaner, [*arguments, *options, *shape])


def test_a_run_says_what_became_of_each_entry(world: CleaningWorld) -> None:
    entry = world.compact()
    result = call(world, "run")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert row["message"] == "2 directories removed, 3 files archived"
    assert (row["compactionid"], row["target"], row["state"]) == (entry.id, "db.t", "cleaned")
    assert (row["directories"], row["archived"], row["deleted"]) == (2, 3, 4)
    assert "1 entry, " in result.stderr
    assert json.loads(call(world, "run").stdout) == []


@pytest.mark.parametrize("arguments", [["plan"], ["run", "--dry-run"]])
def test_a_plan_names_what_goes_and_what_stays(world: CleaningWorld, arguments: list[str]) -> None:
    entry = world.compact()
    (world.table / "notes.txt").write_bytes(b"")
    base = f"base_0000002_v{entry.txn_id:07d}"
    before = world.directories()
    result = call(world, *arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    head, *paths = rows
    assert (head["decision"], head["state"]) == ("clean", "ready")
    assert [(row["path"], row["decision"]) for row in paths] == [
        ("delta_0000001_0000001_0000", "archive and delete"),
        ("delta_0000002_0000002_0000", "archive and delete"),
        (base, "keep"),
        ("notes.txt", "keep"),
    ]
    assert paths[0]["by"] == base
    assert paths[0]["reason"] == "covered by a base or delta that every reader sees"
    assert paths[3]["reason"] == "not part of the ACID format"
    assert world.directories() == before
    assert world.archived() == {}


def test_a_plan_names_who_blocks(world: CleaningWorld) -> None:
    reader = world.open_reader("analyst")
    world.compact()
    result = call(world, "plan")
    head, *paths = json.loads(result.stdout)
    assert (head["decision"], head["state"]) == ("wait", "blocked by open transactions")
    assert f"{reader} (read only, analyst@some-host, open for " in head["reason"]
    assert paths[0]["decision"] == "archive and delete later"
    assert "2 would go later" in result.stderr


def test_nothing_to_do_is_said(world: CleaningWorld) -> None:
    result = call(world, "plan", is_json=False)
    assert result.exit_code == 0
    assert "(none)" in result.stderr


def test_a_pass_that_could_not_clean_everything_fails(world: CleaningWorld) -> None:
    world.compact()
    (world.folder / "cmroot").write_bytes(b"in the way")
    result = call(world, "run")
    assert isinstance(result.exception, HmsBridgeError)
    assert (
        "1 of 1 entries could not be cleaned; files that were not deleted are in their places"
        in (str(result.exception))
    )
    assert json.loads(result.stdout)[0]["state"] == "postponed"
    with pytest.raises(SystemExit) as ended:
        TextEnding(is_verbose=False).failed(str(result.exception), result.exception)
    assert ended.value.code == 1


def spoiled(world: CleaningWorld, content: bytes) -> Path:
    """The archive has other content under the name that a file would have there."""
    cmroot = world.folder / "cmroot"
    cmroot.mkdir(exist_ok=True)
    name = archive_name("bucket_00000", composite_checksum(io.BytesIO(content)))
    (cmroot / name).write_bytes(b"torn")
    return cmroot / name


def test_a_pass_that_failed_says_what_went_all_the_same(world: CleaningWorld) -> None:
    """One of three directories cannot be archived."""
    world.write()
    world.compact()
    torn = spoiled(world, f"rows of t/{delta(2)}".encode())
    before = world.directories()
    result = call(world, "run")
    (row,) = json.loads(result.stdout)
    assert (row["state"], row["directories"], row["archived"]) == ("postponed", 2, 3)
    assert (row["deleted"], row["bytes"] > 0) == (4, True)
    gone = set(before) - set(world.directories())
    assert gone == {delta(1), delta(3)}
    assert "files that were not deleted are in their places" in str(result.exception)
    assert "0 B removed" not in result.stderr
    torn.unlink()


def test_what_a_pass_passes_over_is_named(world: CleaningWorld) -> None:
    reader = world.open_reader("bob")
    entry = world.compact()
    result = call(world, "run")
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)
    assert (row["compactionid"], row["target"]) == (entry.id, "db.t")
    assert (row["state"], row["directories"]) == ("blocked by open transactions", 0)
    assert f"{reader} (read only, bob@some-host" in row["message"]
    assert f"1 waits: db.t, blocked by transaction {reader} (bob@some-host, " in result.stderr
    assert "db.t" in call(world, "run", is_json=False).stdout
    world.commit(reader, TxnType.READ_ONLY)
    assert json.loads(call(world, "run").stdout)[0]["state"] == "cleaned"
    assert "wait" not in call(world, "run").stderr


def test_an_entry_that_waits_after_a_failure_can_be_tried_now(world: CleaningWorld) -> None:
    world.compact()
    torn = spoiled(world, f"rows of t/{delta(2)}".encode())
    call(world, "run")
    result = call(world, "run")
    (row,) = json.loads(result.stdout)
    assert (row["state"], result.exit_code) == ("waiting", 0)
    assert "1 waits: db.t, waiting: tried again in " in result.stderr
    torn.unlink()
    assert json.loads(call(world, "run", "--dry-run").stdout)[0]["decision"] == "wait"
    assert json.loads(call(world, "run", "--now", "--dry-run").stdout)[0]["decision"] == "clean"
    (row,) = json.loads(call(world, "run", "--now").stdout)
    assert row["state"] == "cleaned"
    assert delta(2) not in world.directories()


def test_an_entry_that_cannot_be_read_is_named(world: CleaningWorld) -> None:
    entry = world.compact()
    world.execute(update(COMPACTION_QUEUE).values(CQ_TBLPROPERTIES="1:3:ke"))
    result = call(world, "run", "--now")
    (row,) = json.loads(result.stdout)
    assert (row["compactionid"], row["state"]) == (entry.id, "waiting")
    assert row["message"].startswith("CQ_TBLPROPERTIES '1:3:ke' is malformed: no worker or cleaner")
    assert delta(1) in world.directories()


def test_readers_are_waited_for_now_too(world: CleaningWorld) -> None:
    world.open_reader("bob")
    before = world.compact() and world.directories()
    (row,) = json.loads(call(world, "run", "--now").stdout)
    assert row["state"] == "blocked by open transactions"
    assert world.directories() == before


def test_a_server_is_no_database(world: CleaningWorld) -> None:
    result = CliRunner().invoke(cleaner, ["run", "--metastore", "thrift://127.0.0.1:9083"])
    assert isinstance(result.exception, ConfigError)


def test_help_has_an_example() -> None:
    for arguments in ([], ["run"], ["plan"]):
        result = CliRunner().invoke(cleaner, [*arguments, "--help"])
        assert result.exit_code == 0
        assert "hms-bridge cleaner" in result.stdout


def test_a_retention_of_nothing_is_refused(world: CleaningWorld) -> None:
    world.compact()
    result = CliRunner().invoke(
        cleaner, ["run", "--metastore", world.url, "--set", "hive.repl.cm.retain=0"]
    )
    assert isinstance(result.exception, ConfigError)
    assert "hive.repl.cm.retain" in str(result.exception)
