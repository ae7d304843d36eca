"""Where a load reads files: below the directories that an administrator named, whatever a dump
says. Whoever writes a dump would else have any file of the loading machine copied."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.repl.format.manifest import DumpManifest, FinishMark, text_digest
from tests.cli.test_repl_options import Sides
from tests.support.policy_program import Replication
from tests.support.program import Program

DELTA = "delta_0000001_0000001_0000"
SETTING = "hms.bridge.repl.load.roots"


@pytest.fixture
def sides(program: Program) -> Sides:
    """Nothing names places that files may come from."""
    return Sides(Program(program.folder, settings={SETTING: ""}))


def forged(dump: Path, *lines: str) -> Path:
    """What whoever may write the dump can make of it: a dump as Hive's, of other files."""
    hive = dump / "hive"
    for text in hive.rglob("_hms_bridge_*"):
        text.unlink()
    (hive / "_finished_dump").write_text("")
    (named,) = hive.rglob("_files")
    named.write_text("".join(f"{line}\n" for line in lines))
    return named


def as_replica(sides: Sides, *words: str) -> Any:
    return sides.program.run("repl", "load", "s", *sides.replica, *words)


def named(sides: Sides) -> tuple[str, ...]:
    program = sides.program
    return "--files-from", str(program.warehouse), "--files-from", str(program.cmroot)


def copies(sides: Sides, name: str) -> list[Path]:
    return list(sides.folder.rglob(name))


def typed(answer: Any, ending: str) -> list[str]:
    """The command that a refusal says to type, in quotes."""
    commands = [shlex.split(one) for one in re.findall(r"'(hms-bridge [^']*)'", answer.err)]
    (found,) = [words[1:] for words in commands if ending in words]
    return found


def test_a_first_load_shows_the_places_and_asks(sides: Sides) -> None:
    sides.dump()
    refused = as_replica(sides)
    assert refused.exit_code == 1
    assert "nobody has named the places" in refused.err
    for place in (sides.program.warehouse / "s.db", sides.program.cmroot):
        assert f"file:{place}" in refused.err
    sides.program.ok(*typed(refused, "--trust-origin"))
    sides.event("later")
    sides.dump()
    assert as_replica(sides).exit_code == 0, "the replica has noted them"


def test_the_command_that_names_places_can_be_typed_as_it_stands(sides: Sides) -> None:
    sides.dump()
    sides.program.ok(*typed(as_replica(sides), "--files-from"))


def test_places_may_be_of_the_current_directory(sides: Sides) -> None:
    sides.dump()
    answer = as_replica(sides, "--files-from", "dr/../warehouse", "--files-from", "cmroot")
    assert answer.exit_code == 0, answer.err


def test_a_dump_that_names_any_file_copies_none(sides: Sides) -> None:
    shadow = sides.program.folder / "etc" / "shadow"
    shadow.parent.mkdir()
    shadow.write_text("root:$6$")
    shadow.chmod(0o600)
    forged(sides.dump(), f"file:{shadow}###{DELTA}")
    for words in ((), ("--from-hive",), ("--from-hive", *named(sides))):
        refused = as_replica(sides, *words)
        assert refused.exit_code == 1, words
        assert not copies(sides, "shadow")
    assert f"file:{shadow.parent} is outside of" in refused.err
    assert f"file:{shadow.parent}" in shlex.join(typed(refused, "--files-from"))


def test_a_directory_of_another_tenant_is_not_read(sides: Sides) -> None:
    other = sides.program.folder / "tenant"
    other.mkdir(mode=0o700)
    (other / "secret").write_text("theirs")
    forged(sides.dump(), f"file:{other}/secret###{DELTA}")
    assert as_replica(sides, "--from-hive", *named(sides)).exit_code == 1
    assert not copies(sides, "secret")


def test_a_link_within_the_places_does_not_lead_out(sides: Sides) -> None:
    other = sides.program.folder / "tenant"
    other.mkdir()
    (other / "secret").write_text("theirs")
    table = sides.program.warehouse / "s.db" / "orders"
    dump = sides.dump()
    (table / "delta_0000009_0000009_0000").symlink_to(other)
    forged(dump, f"file:{table}/delta_0000009_0000009_0000/secret###{DELTA}")
    refused = as_replica(sides, "--from-hive", "--set", f"{SETTING}={sides.program.warehouse}")
    assert refused.exit_code == 1
    assert f"file:{other}, to which" in refused.err
    assert not copies(sides, "secret")


def test_a_dump_does_not_name_its_own_archive(sides: Sides) -> None:
    elsewhere = sides.program.folder / "elsewhere"
    elsewhere.mkdir()
    checksum = "0" * 55 + "1"
    (elsewhere / f"gone_{checksum}").write_text("x")
    table = f"file:{sides.program.warehouse}/s.db/orders/{DELTA}"
    forged(sides.dump(), f"{table}/gone#{checksum}#file:{elsewhere}#{DELTA}")
    refused = as_replica(sides, "--from-hive", *named(sides))
    assert refused.exit_code == 1
    assert f"the archive: file:{elsewhere} is outside of" in refused.err


def test_a_dump_without_manifest_is_of_hive_only_if_somebody_says_so(sides: Sides) -> None:
    dump = sides.dump()
    forged(dump, *next(dump.rglob("_files")).read_text().splitlines())
    refused = as_replica(sides, *named(sides))
    assert refused.exit_code == 1
    assert "--from-hive" in refused.err
    assert as_replica(sides, *named(sides), "--from-hive").exit_code == 0


def test_a_link_for_a_tables_directory_does_not_lose_the_table(sides: Sides) -> None:
    dump = sides.dump()
    forged(dump, *next(dump.rglob("_files")).read_text().splitlines())
    table = dump / "hive" / "metadata" / "s" / "orders"
    shutil.move(table, dump / "aside")
    table.symlink_to(dump / "aside")
    refused = as_replica(sides, *named(sides), "--from-hive")
    assert refused.exit_code == 1
    assert f"{table} is a symbolic link" in refused.err


def test_the_sources_metastore_says_where_its_tables_are(sides: Sides) -> None:
    sides.dump()
    cmroot = ("--set", f"hive.repl.cmrootdir={sides.program.cmroot}")
    answer = as_replica(sides, *cmroot, "--source", sides.program.url)
    assert answer.exit_code == 0, answer.err


def test_no_host_that_only_a_dump_names_is_connected_to(sides: Sides) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        port = listening.getsockname()[1]
        for scheme in ("hdfs", "webhdfs"):
            forged(sides.dump(), f"{scheme}://127.0.0.1:{port}/warehouse/t/x###{DELTA}")
            refused = as_replica(sides, "--from-hive", *named(sides))
            assert refused.exit_code == 1
            assert f"{scheme}://127.0.0.1:{port}/warehouse/t is outside of" in refused.err
            sides.program.ok("repl", "dump", "s", "--discard")
        with pytest.raises(TimeoutError):
            listening.accept()


def test_a_forged_manifest_widens_nothing(sides: Sides) -> None:
    dump = sides.dump()
    secret = sides.program.folder / "secret"
    secret.write_text("theirs")
    hive = dump / "hive"
    next(hive.rglob("_files")).write_text(f"file:{secret}###{DELTA}\n")
    marks = ("_finished_dump", "_hms_bridge_manifest")
    texts = [path for path in hive.rglob("*") if path.is_file() and path.name not in marks]
    manifest = DumpManifest(
        digests={str(path.relative_to(hive)): text_digest(path.read_text()) for path in texts},
        reference_count=1,
    ).format()
    (hive / "_hms_bridge_manifest").write_text(manifest)
    mark = FinishMark(manifest_digest=text_digest(manifest), time_ms=1)
    (hive / "_finished_dump").write_text(mark.format())
    assert as_replica(sides).exit_code == 1
    refused = as_replica(sides, *named(sides))
    assert f"file:{secret.parent} is outside of" in refused.err
    assert not list((sides.folder / "warehouse").rglob("secret"))


@pytest.fixture
def asking(replication: Replication) -> Replication:
    """A policy that names no places: its source is asked."""
    replication.ok("policy", "remove", "sales")
    assert replication.add("--target-set", f"{SETTING}=").exit_code == 0
    replication.end_writers()
    return replication


def test_a_policy_asks_the_metastore_of_its_source(asking: Replication) -> None:
    asking.ok("run", "sales")


def test_a_policy_believes_no_dump_either(asking: Replication) -> None:
    folder = asking.program.folder
    secret = folder / "tenant" / "secret"
    secret.parent.mkdir()
    secret.write_text("theirs")
    hive = asking.busy.dump / "hive"
    for text in hive.rglob("_hms_bridge_*"):
        text.unlink()
    (hive / "_finished_dump").write_text("")
    for lists in hive.rglob("_files"):
        lists.write_text(f"file:{secret}###{DELTA}\n")
    from_hive = ("--target-set", "hms.bridge.repl.load.from.hive=true")
    asking.ok("policy", "add", "sales", "--replace", *from_hive)
    refused = asking.run("run", "sales")
    assert refused.exit_code == 1
    assert f"file:{secret.parent} is outside of" in refused.err
    assert not list((folder / "dr" / "warehouse").rglob("secret"))
    (words,) = (
        shlex.split(one) for one in re.findall(r"'(hms-bridge repl policy [^']*)'", refused.err)
    )
    asking.program.ok(*words[1:])
    assert str(secret.parent) in asking.ok("policy", "show", "sales", "--format", "json").out


def test_a_drill_and_a_repair_keep_to_the_same(asking: Replication) -> None:
    asking.ok("run", "sales")
    asking.ok("drill", "sales")
    asking.ok("repair", "sales", "--dry-run")
