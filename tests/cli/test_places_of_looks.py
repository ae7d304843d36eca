"""Where `repl verify` and `repl status` look for a dump's files: below known places only. Whoever
writes a dump would else have this machine connect to any host, in the user's name."""

from __future__ import annotations

import json
import re
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_load_origin import DELTA, SETTING, forged, named
from tests.cli.test_repl_options import Sides
from tests.support.busy_metastore import copy_golden
from tests.support.policy_program import Replication
from tests.support.program import Program

CHECKSUM = "0" * 55 + "1"
NOT_LOOKED_FOR = "not looked for"


@pytest.fixture
def sides(program: Program) -> Sides:
    """Nothing names places that files may come from."""
    made = Sides(Program(program.folder, settings={SETTING: ""}))
    made.program.ok("schema", "init", "--database", made.url)
    return made


@contextmanager
def nobody_connects() -> Iterator[int]:
    """A port of this machine to which nobody may have connected by the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        yield listening.getsockname()[1]
        with pytest.raises(TimeoutError):
            listening.accept()


def secret_of(sides: Sides) -> Path:
    secret = sides.program.folder / "tenant" / "secret"
    secret.parent.mkdir()
    secret.write_text("theirs")
    return secret


def verified(sides: Sides, dump: Path, *words: str) -> Any:
    return sides.program.run("repl", "verify", str(dump), *words)


def at_replica(sides: Sides, dump: Path, *words: str) -> Any:
    """Typed where the replica is: warehouse, archive and metastore of the source are elsewhere."""
    return verified(sides, dump, *sides.replica, *words)


def status(sides: Sides, *words: str) -> Any:
    return sides.program.run("repl", "status", "s", *sides.replica, "--format", "json", *words)


def typed(answer: Any) -> list[str]:
    """The command that a note says to type."""
    (command,) = re.findall(r"type '(hms-bridge [^\n]*)'", answer.err)
    return shlex.split(command)[1:]


def test_verify_looks_nowhere_that_only_a_dump_names(sides: Sides) -> None:
    secret = secret_of(sides)
    with nobody_connects() as port:
        host = f"hdfs://127.0.0.1:{port}"
        forged(
            sides.dump(),
            f"{host}/warehouse/t/x###{DELTA}",
            f"file:{secret}###{DELTA}",
            f"file:{sides.program.warehouse}/gone#{CHECKSUM}#{host}/cm#{DELTA}",
        )
        answer = verified(sides, next(sides.program.dumps.glob("*/*")), "--all", "--format", "json")
    assert answer.exit_code == 3
    assert [(row["place"], row["size"]) for row in answer.json] == 3 * [(NOT_LOOKED_FOR, None)]
    assert "0 missing, 3 not looked for" in answer.err
    assert f"{host}/warehouse/t/x is outside of" in answer.err
    assert f"--files-from file:{secret.parent}" in answer.err


def test_status_and_lag_look_nowhere_that_only_a_dump_names(sides: Sides) -> None:
    secret = secret_of(sides)
    with nobody_connects() as port:
        host = f"hdfs://127.0.0.1:{port}"
        forged(sides.dump(), f"{host}/t/x#{CHECKSUM}#{host}/cm#{DELTA}", f"file:{secret}###{DELTA}")
        answer = status(sides, "--source", sides.program.url)
        sides.program.run("repl", "lag", "s", *sides.replica, "--source", sides.program.url)
    assert answer.exit_code == 0, answer.err
    assert (answer.json["missing_files"], answer.json["unlooked_files"]) == (0, 2)
    assert f"{host}/t/x is outside of" in answer.err
    assert "--files-from" in typed(answer)


def test_the_side_that_made_a_dump_names_nothing(sides: Sides) -> None:
    answer = verified(sides, sides.dump())
    assert answer.exit_code == 0, answer.err
    assert "0 missing" in answer.err
    assert NOT_LOOKED_FOR not in answer.err


def test_the_metastore_says_where_a_table_is_elsewhere(sides: Sides) -> None:
    place = copy_golden("g01_insert/01-three-inserts", sides.program.folder / "disk2" / "items")
    sides.program.ok("table", "adopt", str(place), "--name", "s.items")
    dump = sides.dump()
    assert verified(sides, dump).exit_code == 0
    elsewhere = status(sides, "--source", sides.program.url)
    assert elsewhere.json["unlooked_files"] == 0, elsewhere.err


def test_a_file_that_is_lost_below_a_known_place_is_lost(sides: Sides) -> None:
    forged(sides.dump(), f"file:{sides.program.warehouse}/s.db/orders/{DELTA}/gone###{DELTA}")
    assert verified(sides, next(sides.program.dumps.glob("*/*"))).exit_code == 1
    lost = status(sides, "--source", sides.program.url)
    assert (lost.exit_code, lost.json["missing_files"]) == (1, 1)


def test_a_replica_before_its_first_load_is_not_red(sides: Sides) -> None:
    sides.dump()
    before = status(sides)
    assert before.exit_code == 0
    assert before.json["unlooked_files"] == 3
    assert "troubles" in before.json and not before.json["troubles"]
    after = sides.program.ok(*typed(before))
    assert after.json["unlooked_files"] == 0
    assert NOT_LOOKED_FOR not in after.err


def test_verify_says_the_command_that_names_the_places(sides: Sides) -> None:
    refused = at_replica(sides, sides.dump())
    assert refused.exit_code == 3
    assert "3 not looked for" in refused.err
    sides.program.ok(*typed(refused))


def test_what_the_replica_noted_is_known(sides: Sides) -> None:
    sides.dump()
    sides.load(*named(sides))
    copy_golden("g01_insert/01-three-inserts", sides.program.warehouse / "s.db" / "later")
    later = sides.program.warehouse / "s.db" / "later"
    sides.program.ok("table", "adopt", str(later), "--name", "s.later")
    dump = sides.dump("--table-anew", "later")
    assert status(sides).json["unlooked_files"] == 0
    for words in ((), ("--target", sides.url)):
        answer = at_replica(sides, dump, *words)
        assert NOT_LOOKED_FOR not in answer.err, words
    with_target = verified(
        sides, dump, "--target", sides.url, "--metastore", f"sqlite:///{sides.folder}/none.db",
        "--set", f"hive.metastore.warehouse.dir={sides.folder}/warehouse",
    )  # fmt: skip
    assert NOT_LOOKED_FOR not in with_target.err


def test_verify_goes_on_where_its_metastore_does_not_answer(sides: Sides) -> None:
    answer = at_replica(sides, sides.dump(), "--metastore", "thrift://127.0.0.1:1")
    assert answer.exit_code == 3
    assert "thrift://127.0.0.1:1" in answer.err
    assert "3 not looked for" in answer.err


def test_a_load_does_not_go_on_without_what_nobody_looked_for(sides: Sides) -> None:
    sides.dump()
    refused = sides.program.run(
        "repl", "load", "s", *sides.replica, "--files-from", str(sides.program.cmroot)
    )
    assert refused.exit_code == 1
    assert "3 of 3 files" in refused.err


def test_status_of_a_policy_knows_what_its_target_names(replication: Replication) -> None:
    answer = replication.ok("status", "sales", "--format", "json")
    assert json.loads(answer.out)["unlooked_files"] == 0
