"""``table adopt`` as a person types it: dry runs tell the truth, and what else happens is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conformance.objects import open_txn, write_id
from tests.support.busy_metastore import BusyMetastore, copy_golden, opened
from tests.support.program import Program
from tests.support.what_changed import checksums

PLAIN = "g01_insert/01-three-inserts"
ABORTS = "g10_aborts/01-open-and-aborts"
ABORTED = "s.t:11:9223372036854775807::2,4,5,7,8,10,11"


def left(program: Program, stage: str = PLAIN) -> Path:
    return copy_golden(stage, program.folder / "left" / "t")


def adopt(directory: Path, name: str, *words: str) -> tuple[str, ...]:
    return ("table", "adopt", str(directory), "--name", name, *words)


@pytest.mark.parametrize(
    ("place", "name", "text"),
    [
        ("warehouse/sales.db/orders", "sales.more", "belongs to sales.orders"),
        ("left/t", "sales.orders", "is there already"),
        ("left/t", "a/b.c", "is not a valid database name"),
        ("left/t", f"s.{'t' * 257}", "its name"),
        ("left/t", "s.t:1", "no table can have that name"),
    ],
)
def test_a_dry_run_refuses_what_the_real_run_refuses(
    busy: BusyMetastore, place: str, name: str, text: str
) -> None:
    left(busy.program)
    words = adopt(busy.program.folder / place, name)
    dry = busy.program.run(*words, "--dry-run")
    real = busy.program.run(*words)
    assert text in dry.err
    assert dry.exit_code in (1, 2)
    assert (dry.exit_code, dry.err) == (real.exit_code, real.err)


def test_write_ids_of_another_table_are_found_by_a_dry_run(program: Program) -> None:
    directory = left(program)
    with opened(program) as store:
        write_id(store.metastore, open_txn(store.metastore), "s")
    refused = program.run(*adopt(directory, "s.t", "--dry-run"))
    assert refused.exit_code == 1
    assert "other write ids for s.t" in refused.err


@pytest.mark.parametrize("is_there", [True, False])
def test_a_database_is_made_and_said_to_be(program: Program, is_there: bool) -> None:
    directory = left(program)
    if not is_there:
        (program.folder / "metastore.db").unlink()
    dry = program.ok(*adopt(directory, "s.t", "--dry-run"))
    assert "database s would be made" in dry.err
    assert ("there is no metastore yet" in dry.err) is not is_there
    assert (program.folder / "metastore.db").exists() is is_there
    real = program.ok(*adopt(directory, "s.t"))
    assert "database s was not there; it was made" in real.err
    second = program.ok(*adopt(copy_golden(PLAIN, program.folder / "left" / "u"), "s.u"))
    assert "database" not in second.err


def test_a_compaction_is_queued_and_said_to_be(program: Program) -> None:
    words = adopt(left(program, ABORTS), "s.t", "--valid-write-ids", ABORTED)
    dry = program.ok(*words, "--dry-run", "--format", "json")
    assert "1 major compaction would be queued" in dry.err
    assert dry.json["to compact"] == ["s.t"]
    real = program.ok(*words)
    assert "1 major compaction queued" in real.err
    queued = program.ok("compactions", "--format", "json").json
    assert [(one["tabname"], one["state"]) for one in queued] == [("t", "initiated")]


def test_an_adoption_is_undone_without_losing_a_file(program: Program) -> None:
    """As the page about recovery says."""
    directory = left(program)
    before = checksums(directory)
    program.ok(*adopt(directory, "s.t"))
    aside = directory.with_name("t.aside")
    directory.rename(aside)
    program.ok("sql", "-e", "DROP TABLE s.t")
    shutil.rmtree(directory, ignore_errors=True)
    aside.rename(directory)
    assert checksums(directory) == before
    program.ok(*adopt(directory, "s.again"))
    directory.rename(aside)
    program.ok("sql", "-e", "DROP TABLE s.again")
    aside.rename(directory)
    program.ok(*adopt(directory, "s.t"))
