from __future__ import annotations

import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from hms_bridge.connect import how_to_make
from tests.support.program import Program


def test_a_schema_is_made_upgraded_and_validated(program: Program, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metastore.db"
    program.ok("schema", "init", "--database", url)
    planned = program.ok(
        "schema", "upgrade", "--to", "4.2.0", "--dry-run", "--database", url, "--format", "json"
    )
    assert {"step": "table VERSION: 4.2.0"} in json.loads(planned.out)
    assert "nothing was changed" in planned.err
    assert program.ok("schema", "info", "--database", url, "--format", "json").json["version"] == (
        "4.0.0"
    )
    done = program.ok("schema", "upgrade", "--to", "4.2.0", "--database", url, "--format", "json")
    assert done.out == planned.out
    assert "tables of ours (HMSB_…) are left as they are" in done.err
    assert "nothing is wrong" in program.ok("schema", "validate", "--database", url).err


def test_what_is_wrong_ends_with_one(program: Program, tmp_path: Path) -> None:
    import sqlite3

    url = f"sqlite:///{tmp_path}/metastore.db"
    program.ok("schema", "init", "--schema-version", "4.2.0", "--database", url)
    with sqlite3.connect(tmp_path / "metastore.db") as connection:
        connection.execute('DROP TABLE "CATALOG_PARAMS"')
    answer = program.run("schema", "validate", "--database", url, "--format", "json")
    assert answer.exit_code == 1
    assert json.loads(answer.out) == [
        {
            "problem": "table CATALOG_PARAMS: make",
            "remedy": "hms-bridge schema upgrade --to 4.2.0",
        }
    ]
    program.ok("schema", "upgrade", "--to", "4.2.0", "--database", url)
    program.ok("schema", "validate", "--database", url)


def test_an_installation_can_be_looked_at_before(program: Program, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metastore.db"
    program.ok("schema", "init", "--database", url)
    answer = program.ok("schema", "init", "--dry-run", "--database", url)
    assert "0 tables would be made; nothing was changed" in answer.err
    assert "indices" not in answer.err
    with sqlite3.connect(tmp_path / "metastore.db") as database:
        database.execute("DROP INDEX HMSB_TXN_STATE")
    answer = program.ok("schema", "init", "--dry-run", "--database", url)
    assert "indices would be added to Hive's tables: HMSB_TXN_STATE of TXNS\n" in answer.err


def test_another_version_is_made_by_an_upgrade(program: Program, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metastore.db"
    program.ok("schema", "init", "--database", url)
    answer = program.run("schema", "init", "--schema-version", "4.2.0", "--database", url)
    assert answer.exit_code != 0
    assert "run 'hms-bridge schema upgrade --to 4.2.0'" in answer.err


def test_one_for_hive_3_1_is_made_and_not_served(program: Program, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metastore.db"
    words = ("--database", url)
    planned = program.ok("schema", "init", "--schema-version", "3.1.0", "--dry-run", *words)
    assert "schema 3.1.0: 74 tables would be made" in planned.err
    assert not (tmp_path / "metastore.db").exists()
    made = program.ok("schema", "init", "--schema-version", "3.1.0", *words)
    assert "for a Hive 3.1" in made.err
    program.ok("schema", "validate", *words)
    assert program.run("schema", "info", *words).exit_code == 1
    for verb in (
        ("serve", "--port", "0", *words),
        ("sql", "--metastore", url, "-e", "show tables"),
        ("schema", "init", *words),
    ):
        refused = program.run(*verb)
        assert refused.exit_code == 1, verb
        assert "run 'hms-bridge schema upgrade --to 4.0.0'" in refused.err
    program.ok("schema", "upgrade", "--to", "4.0.0", *words)
    program.ok("schema", "init", *words)
    program.ok("schema", "info", *words)


@pytest.mark.parametrize("verb", ["validate", "info"])
def test_what_only_looks_takes_dry_run(program: Program, tmp_path: Path, verb: str) -> None:
    words = ("--database", f"sqlite:///{tmp_path}/metastore.db")
    program.ok("schema", "init", *words)
    looked = program.ok("schema", verb, *words)
    assert program.ok("schema", verb, "--dry-run", *words).out == looked.out
    assert "It changes nothing." in " ".join(program.ok("schema", verb, "--help").out.split())


def test_an_empty_database_has_none(program: Program, tmp_path: Path) -> None:
    """In a line: names of a hundred missing tables say nothing to who begins."""
    (tmp_path / "new folder").mkdir()
    (tmp_path / "new folder" / "empty.db").touch()
    url = f"sqlite:///{tmp_path}/new folder/empty.db"
    answer = program.run("schema", "info", "--database", url)
    command = f"hms-bridge schema init --database '{url}'"
    assert (answer.exit_code, answer.out) == (1, "")
    assert answer.err == f"there is no metastore schema; run: {command}\n"

    answer = program.run("schema", "info", "--database", url, "--format", "json")
    assert (answer.exit_code, answer.json["version"]) == (1, None)
    assert answer.json["next step"] == f"there is no metastore schema; run: {command}"
    assert "TBLS" in answer.json["missing tables"]

    program.ok(*shlex.split(command)[1:])
    assert "4.0.0" in program.ok("schema", "info", "--database", url).out


def test_its_password_is_not_shown() -> None:
    """Nor a mask, which would be tried as the password: the settings, or PGPASSWORD, have it."""
    assert how_to_make("postgresql://hive:secret@db/metastore") == (
        "hms-bridge schema init --database postgresql://hive@db/metastore"
    )


def test_what_a_hives_database_lacks_is_made_by_the_command_that_is_shown(
    program: Program, tmp_path: Path
) -> None:
    """It named no database, and made a new file in the folder where it was typed."""
    url = f"sqlite:///{tmp_path}/metastore.db"
    program.ok("schema", "init", "--database", url)
    with sqlite3.connect(tmp_path / "metastore.db") as store:
        store.execute('DROP TABLE "HMSB_TIME_GAP"')
    step = program.run("schema", "info", "--database", url, "--format", "json").json["next step"]
    command = re.match(r"run '(hms-bridge schema init .*?)': it adds", step)
    assert command is not None, step
    program.ok(*shlex.split(command[1])[1:])
    program.ok("schema", "info", "--database", url)
