"""What people type wrongly: a line that says what, where and what to do; never a traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.busy_metastore import BusyMetastore, copy_golden
from tests.support.program import Answer, Program, run_here
from tests.support.what_changed import checksums

DEFAULT_URL = "sqlite:///metastore.db"
FAILED, USAGE = 1, 2
NO_UTF_8 = "s\udce9"
"""As Python has a byte of a command line that is not of the locale's encoding."""


def refused(answer: Answer, exit_code: int, *texts: str) -> None:
    assert answer.exit_code == exit_code, (answer.out, answer.err)
    for text in texts:
        assert text in answer.err
    assert "Traceback" not in answer.err
    assert "unexpected" not in answer.err
    if exit_code == FAILED:
        assert answer.err.splitlines()[-1].startswith("error: ")


USAGE_ERRORS = {
    "unknown verb": (("nonsense",), "No such command 'nonsense'"),
    "unknown option": (("txns", "--frmat", "json"), "--format"),
    "unknown format": (("txns", "--format", "xml"), "'xml' is not one of"),
    "no verb of a group": (("table",), "adopt"),
    "no name": (("table", "adopt", "."), "--name"),
    "three-part name": (("compact", "a.b.c", "major"), "'a.b.c' is no table name"),
    "no table name": (("locks", "--table", "a."), "'a.' is no table name"),
    "unknown kind": (("compact", "a.b", "mega"), "'mega' is not one of 'minor', 'major'"),
    "unknown state": (("compactions", "--state", "lost"), "ready for cleaning"),
    "no number": (("txns", "abort", "x"), "'x' is not a valid int"),
    "no transaction": (("txns", "abort"), "Missing argument"),
    "transaction 0": (("txns", "abort", "0"), "0 is not in the range"),
    "no dump named": (("repl", "dump", "s", "--discard", ""), "names no dump"),
    "no directory named": (("table", "adopt", "", "--name", "a.b"), "names no directory"),
    **{
        f"no replica of {verb}": (("repl", *verb.split(), "s", "--into", name), "names no database")
        for verb in ("load", "status", "compare", "repair", "verify", "policy add")
        for name in ("", " ")
    },
    "a hold of ages": (
        ("cm", "hold", "a", "s", "--for", "999999999999d"), "1000 years at most",
    ),
    "no assignment": (("txns", "--set", "novalue"), "--set takes KEY=VALUE, not 'novalue'"),
    "partition type": (
        ("table", "adopt", ".", "--name", "a.b", "--partition-type", "p"), "takes COLUMN=TYPE",
    ),
    "half of a clustering": (
        ("table", "adopt", ".", "--name", "a.b", "--clustered-by", "id"), "go together",
    ),
    "columns": (
        ("table", "adopt", ".", "--name", "a.b", "--columns", "id"), "--columns takes names",
    ),
    "type of a column": (
        ("table", "adopt", ".", "--name", "a.b", "--columns", "id itn"), "'itn' is no Hive type",
    ),
    "no statement": (("sql", "-e", "  "), "there is no statement"),
    "no file of statements": (("sql", "-f", "absent.sql"), "'absent.sql' does not exist"),
    "a directory as settings": (("txns", "--config", "."), "is a directory"),
    "port": (("serve", "--port", "70000"), "70000 is not in the range"),
}  # fmt: skip


@pytest.mark.parametrize("name", USAGE_ERRORS)
def test_usage(program: Program, name: str) -> None:
    words, text = USAGE_ERRORS[name]
    refused(program.run(*words), USAGE, text)


@pytest.mark.parametrize(
    "words",
    [
        ("repl", "status", NO_UTF_8),
        ("repl", "dump", f"{NO_UTF_8}.'t.*'"),
        ("repl", "load", "sales", "--into", NO_UTF_8),
        ("repl", "verify", "sales", "--root", f"/{NO_UTF_8}"),
        ("repl", "policy", "add", NO_UTF_8, "--source", "sqlite:///a.db"),
        ("compact", f"sales.{NO_UTF_8}", "major"),
        ("locks", "--table", NO_UTF_8),
        ("cm", "hold", NO_UTF_8, "sales"),
        ("sql", "-e", f"CREATE DATABASE `{NO_UTF_8}`"),
        ("txns", "--metastore", f"sqlite:///{NO_UTF_8}.db"),
        ("txns", "--set", f"hive.txn.timeout={NO_UTF_8}"),
        (NO_UTF_8,),
    ],
    ids=lambda words: " ".join(words[:2]).encode("ascii", "replace").decode(),
)
def test_what_is_no_text(program: Program, words: tuple[str, ...]) -> None:
    """Typed in Latin-1 where everything is UTF-8: no name is so, and none can be kept."""
    before = (program.folder / "metastore.db").read_bytes()
    refused(program.run(*words), USAGE, r"s\xe9", "is no UTF-8")
    assert (program.folder / "metastore.db").read_bytes() == before


def test_policies_that_are_no_text(program: Program) -> None:
    (program.folder / "policies.toml").write_bytes(b"[policy.s\xe9]")
    answer = program.run("repl", "policy", "import", "policies.toml")
    refused(answer, FAILED, "cannot read policies.toml", "write the policies in UTF-8")


def test_nothing_on_standard_input(program: Program) -> None:
    refused(program.run("sql", stdin=""), USAGE, "there is no statement")


URLS = {
    "no URL": ("metastore.db", "'metastore.db' is no database"),
    "nothing": ("", "'' is no database"),
    "host and port": ("127.0.0.1:19083", "write thrift://127.0.0.1:19083 for a server"),
    "host of IPv6": ("[::1]:9083", "write thrift://[::1]:9083 for a server"),
    "no such folder": ("sqlite:////no/such/folder/x.db", "/no/such/folder"),
    "unknown database": ("oracle://hive@db/metastore", "is no database URL; write sqlite:///FILE"),
    "http": ("http://127.0.0.1:9083", "is no database URL"),
    "password": ("foo://ann:secret@db/x", "foo://ann:***@db/x"),
    "@ in a password": (
        "postgresql://ann:x@secret@db/x",
        "'postgresql://ann:***@db/x' is no database URL",
    ),
    "Java's": (
        "jdbc:postgresql://db/x?user=ann&password=secret",
        "is a URL for Java: leave it in the hive-site.xml of --config",
    ),
    "no host": ("thrift://", "'thrift://' is no metastore address; write thrift://host:port"),
    "no port": ("thrift://db:port", "'thrift://db:port' has no usable port"),
    "large port": ("thrift://db:99999", "has no usable port"),
    "second address": ("thrift://db:9083,nowhere:0", "'nowhere:0' has no usable port"),
    "nobody there": ("thrift://127.0.0.1:1", "no metastore answers at thrift://127.0.0.1:1"),
}


@pytest.mark.parametrize("name", URLS)
def test_metastore_urls(program: Program, name: str) -> None:
    url, text = URLS[name]
    answer = program.run("txns", "--metastore", url)
    refused(answer, FAILED, text)
    assert "secret" not in answer.err


@pytest.mark.parametrize("verb", [("cm", "ls"), ("cleaner", "plan"), ("schema", "info")])
def test_some_verbs_need_the_database_itself(program: Program, verb: tuple[str, ...]) -> None:
    answer = program.run(*verb, "--metastore", "thrift://127.0.0.1:9083")
    refused(answer, FAILED, "is no database", "sqlite:///metastore.db")


def test_databases_that_are_something_else(program: Program) -> None:
    (program.folder / "text.db").write_text("what somebody wrote " * 100)
    (program.folder / "empty.db").touch()
    refused(program.run("txns", "--database", "sqlite:///text.db"), FAILED, "not a database")
    refused(
        program.run("txns", "--database", "sqlite:///empty.db"),
        FAILED, "holds no metastore schema", "hms-bridge schema init",
    )  # fmt: skip
    refused(program.run("txns", "--database", f"sqlite:///{program.folder}"), FAILED, "no database")
    answer = program.run("schema", "info", "--database", "sqlite:///empty.db", "--format", "json")
    assert (answer.exit_code, answer.json["usable"]) == (FAILED, False)


@pytest.mark.parametrize("words", [(), ("--metastore", "sqlite:///typo.db")])
def test_sql_makes_no_metastore(tmp_path: Path, monkeypatch, words: tuple[str, ...]) -> None:
    """Of a mistyped place, or in whatever folder somebody is: it would look like an empty one."""
    monkeypatch.chdir(tmp_path)
    for statement in ("SHOW DATABASES", "CREATE DATABASE sales"):
        answer = run_here("sql", *words, "-e", statement)
        refused(answer, FAILED, "there is no database", f"in {tmp_path}", "schema init --database")
    assert list(tmp_path.iterdir()) == []
    run_here("schema", "init", "--database", "sqlite:///typo.db" if words else DEFAULT_URL)
    assert run_here("sql", *words, "-e", "SHOW DATABASES", "--format", "jsonl").exit_code == 0


SETTINGS = {
    "retention of 0": ("hive.repl.cm.retain=0", "hive.repl.cm.retain is '0'; it must be at least"),
    "no duration": ("hive.repl.cm.retain=soon", "write a number and a unit"),
    "misspelt": ("hive.repl.cm.retian=1d", "did you mean hive.repl.cm.retain?"),
    "not ours": ("mapred.reduce=1", "unknown setting mapred.reduce; see docs/reference/"),
    "own one": ("hms.bridge.hooks=x", "unknown setting hms.bridge.hooks; did you mean"),
    "no number": ("metastore.thrift.port=http", "write a whole number"),
    "large number": ("metastore.thrift.port=70000", "it must be at most 65535"),
    "no truth": ("hive.repl.cm.enabled=perhaps", "write true or false"),
    "message format": ("hms.bridge.event.message.format=xml", "gzip(json-2.0)"),
    "no hook": ("hms.bridge.event.hooks=nothing", "write it as module:attribute"),
    "absent hook": ("hms.bridge.event.hooks=no.such:hook", "is it on the Python path?"),
    "circle": ("hive.repl.cmrootdir=${hive.repl.cmrootdir}x", "refers to itself"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(program: Program, name: str) -> None:
    assignment, text = SETTINGS[name]
    refused(program.run("txns", "--set", assignment), FAILED, text)


PLACES = {
    "no archive": ("hive.repl.cmrootdir=", "hive.repl.cmrootdir is '', which names no directory"),
    "no warehouse": ("hive.metastore.warehouse.dir= ", "is '', which names no directory"),
    "a whole disk as archive": ("hive.repl.cmrootdir=/", "'/', a whole file system"),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_an_unset_variable_gives(program: Program, name: str) -> None:
    program.ok("schema", "init")
    assignment, text = PLACES[name]
    refused(program.run("cm", "purge", "--dry-run", "--set", assignment), FAILED, text)
    refused(program.run("cleaner", "run", "--set", assignment), FAILED, text)


def test_an_address_without_its_end(program: Program) -> None:
    answer = program.run("txns", "--database", "postgresql://u:secret@[::1/x")
    assert answer.exit_code == 1
    assert "is no database URL" in answer.err
    assert "unexpected" not in answer.err and "secret" not in answer.err


def test_a_root_of_dumps_that_an_unset_variable_gives(program: Program) -> None:
    program.ok("schema", "init")
    for verb in (("dump", "s"), ("load", "s"), ("dump", "s", "--discard")):
        answer = program.run("repl", *verb, "--root", "")
        refused(answer, FAILED, "'', which names no directory")


FILES = {
    "cut off": ("<configuration><property>", "is not XML"),
    "not XML at all": ("hive.repl.cm.retain=1d", "is not XML"),
    "another document": ("<project><name>x</name></project>", "properties in <configuration>"),
    "nameless": (
        "<configuration><property><value>1</value></property></configuration>",
        "a property without a name",
    ),
    "bad value": (
        "<configuration><property><name>hive.repl.cm.retain</name><value>0</value></property>"
        "</configuration>",
        "hive.repl.cm.retain is '0'",
    ),
    "entities": ('<!DOCTYPE a [<!ENTITY b "c">]><configuration/>', "declares XML entities"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_settings(program: Program, name: str) -> None:
    text, message = FILES[name]
    (program.folder / "my-site.xml").write_text(text)
    refused(program.run("txns", "--config", "my-site.xml"), FAILED, "my-site.xml", message)


def test_an_absent_file_of_settings(program: Program) -> None:
    refused(program.run("txns", "--config", "no.xml"), FAILED, "cannot read no.xml", "--config")


def test_settings_of_others_in_a_file_are_no_concern_of_ours(program: Program) -> None:
    (program.folder / "my-site.xml").write_text(
        "<configuration><property><name>hive.execution.engine</name><value>tez</value></property>"
        "</configuration>"
    )
    program.ok("txns", "--config", "my-site.xml")


def test_tables_and_databases_that_are_not_there(busy: BusyMetastore) -> None:
    run = busy.program.run
    refused(run("compact", "sales.ordres", "major"), FAILED, "did you mean sales.orders?")
    refused(run("compact", "seles.orders", "major"), FAILED, "did you mean sales?")
    refused(run("compact", "zzz", "minor", "--dry-run"), FAILED, "no table default.zzz", "SHOW")
    refused(run("repl", "dump", "seles"), FAILED, "did you mean sales?")
    refused(run("repl", "dump", "zzz", "--dry-run"), FAILED, "no database zzz", "SHOW DATABASES")


def test_partitions(busy: BusyMetastore) -> None:
    run = busy.program.run
    refused(run("compact", "sales.events", "major"), FAILED, "sales.events", "name the partition")
    for name in ("a=x/b=9", "nonsense", "b=1/a=x"):
        words = ("compact", "sales.events", "major", "--partition", name)
        for more in ((), ("--dry-run",), ("--run",)):
            refused(run(*words, *more), FAILED, f"has no partition {name}", "It has a=")
    words = ("compact", "sales.events", "major", "--partition", "a=X/b=1")
    refused(run(*words), FAILED, "did you mean a=x/b=1?")
    words = ("compact", "sales.orders", "major", "--partition", "a=1")
    refused(run(*words), FAILED, "sales.orders has no partitions")


def test_a_compaction_that_is_queued_already(busy: BusyMetastore) -> None:
    for name in ("a=x/b=1", "A=x/B=1"):
        words = ("compact", "sales.events", "major", "--partition", name)
        refused(busy.program.run(*words), FAILED, "sales.events", "already scheduled")


def test_transactions_that_are_not_open(busy: BusyMetastore) -> None:
    answer = busy.program.run("txns", "abort", str(busy.open_txn), "123456")
    refused(answer, FAILED, "no open transaction 123456", "hms-bridge txns lists them")
    assert f"aborted 1 transaction: {busy.open_txn}" in answer.err


@pytest.mark.parametrize("verb", [("cm", "ls"), ("cm", "purge"), ("cm", "purge", "--dry-run")])
@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_in_the_place_of_the_archive(
    program: Program, verb: tuple[str, ...], below: str
) -> None:
    place = program.folder / "somefile"
    place.write_text("x")
    answer = program.run(*verb, "--set", f"hive.repl.cmrootdir={place}{below}")
    refused(answer, FAILED, "hive.repl.cmrootdir", str(place), "is no directory")


def test_an_archive_that_takes_nothing(busy: BusyMetastore) -> None:
    """I4: what cannot be archived is not deleted."""
    place = busy.program.folder / "somefile"
    place.write_text("x")
    before = checksums(busy.program.warehouse)
    answer = busy.program.run("cleaner", "run", "--set", f"hive.repl.cmrootdir={place}/cm")
    assert answer.exit_code == FAILED
    assert str(place) in answer.err
    assert "Traceback" not in answer.err
    assert checksums(busy.program.warehouse) == before


def test_an_archive_on_an_unknown_file_system(program: Program) -> None:
    answer = program.run("cm", "ls", "--set", "hive.repl.cmrootdir=foo://bucket/cm")
    refused(answer, FAILED, "foo://bucket", "that scheme is not served")


def test_dumps_that_are_none(busy: BusyMetastore) -> None:
    run, folder = busy.program.run, busy.program.folder
    refused(run("repl", "verify", "absent"), FAILED, "absent", "there is no dump")
    refused(run("repl", "verify", str(folder / "warehouse")), FAILED, "there is no dump")
    (busy.dump / "hive" / "_finished_dump").unlink()
    refused(run("repl", "verify", str(busy.dump)), FAILED, "_finished_dump", "is not finished")
    before = checksums(folder / "dr")
    for words in (("--dry-run",), ()):
        answer = run("repl", "load", "sales", *busy.replica, *words)
        refused(answer, FAILED, "no finished dump of sales", str(busy.program.dumps))
    assert checksums(folder / "dr") == before


def test_a_dump_that_was_loaded_elsewhere(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    answer = busy.program.run("repl", "load", "sales", "--into", "other", *busy.replica)
    refused(answer, FAILED, "other", "loaded", "repl dump sales --bootstrap")


def test_a_dump_with_a_missing_file(busy: BusyMetastore) -> None:
    gone = next(iter(sorted(busy.program.cmroot.glob("bucket_*"))))
    gone.unlink()
    answer = busy.program.run("repl", "verify", str(busy.dump))
    assert answer.exit_code == FAILED
    assert "missing" in answer.out
    assert "1 missing" in answer.err
    rows = busy.program.run("repl", "verify", str(busy.dump), "--all", "--format", "json").json
    sizes = {row["place"]: row["size"] for row in rows}
    assert sizes["missing"] is None  # no list of a dump tells it: 0 would be a lie
    assert sizes["in CM"] > 0
    before = checksums(busy.program.folder / "dr")
    refused(busy.program.run("repl", "load", "sales", *busy.replica), FAILED, "bucket_")
    assert checksums(busy.program.folder / "dr") == before


def test_a_place_for_dumps_that_is_a_file(busy: BusyMetastore) -> None:
    place = busy.program.folder / "somefile"
    place.write_text("x")
    busy.program.ok("repl", "load", "sales", *busy.replica)
    refused(busy.program.run("repl", "dump", "default", "--root", str(place)), FAILED, str(place))


ADOPTIONS = {
    "absent": ((), "there is no such directory"),
    "no ACID table": ((), "no base, delta or original file below this directory"),
    "a file": ((), "there is no such directory"),
    "no ORC": ((), "this is no ORC file"),
    "write ids without numbers": (("--valid-write-ids", "s.t"), "is no write-id list"),
    "write ids of letters": (("--valid-write-ids", "s.t:a:b:c:d"), "malformed"),
    "negative write ids": (("--valid-write-ids", "s.t:-5:1::"), "is no write-id list"),
    "endless write ids": (("--valid-write-ids", "s.t:9223372036854775807:1::"), "no write-id"),
    "no write ids": (("--valid-write-ids", ""), "is no write-id list"),
    "twice a column": (("--columns", "id int,id int"), "column id is there twice"),
    "no such bucket column": (("--clustered-by", "x", "--buckets", "2"), "a bucket column"),
    "no partition column": (("--partition-type", "p=int"), "p is no partition column"),
}


@pytest.mark.parametrize("name", ADOPTIONS)
def test_adoptions(program: Program, name: str) -> None:
    options, text = ADOPTIONS[name]
    directory = program.folder / "left" / "orders"
    if name == "no ACID table":
        directory.mkdir(parents=True)
        (directory / "part-0.parquet").write_text("PAR1")
    elif name == "a file":
        directory.parent.mkdir()
        directory.write_text("x")
    elif name != "absent":
        copy_golden("g01_insert/01-three-inserts", directory)
    if name == "no ORC":
        (directory / "delta_0000003_0000003_0000" / "bucket_00000_0").write_text("no ORC at all")
    before = checksums(program.folder / "left")
    answer = program.run("table", "adopt", str(directory), "--name", "s.t", *options)
    refused(answer, FAILED, text)
    assert checksums(program.folder / "left") == before
    tables = program.run("compact", "s.t", "major", "--dry-run")
    refused(tables, FAILED, "there is no database s")


def test_a_directory_on_an_unknown_file_system(program: Program) -> None:
    answer = program.run("table", "adopt", "foo://bucket/t", "--name", "s.t")
    refused(answer, FAILED, "foo://bucket", "that scheme is not served")


def test_a_demo_does_not_clear_a_folder_of_others(program: Program) -> None:
    refused(program.run("demo", "--work", str(program.folder)), FAILED, "which no demo made")


def test_statements_in_another_encoding(program: Program) -> None:
    (program.folder / "latin.sql").write_bytes("SELECT 'ä'".encode("latin-1"))
    refused(program.run("sql", "-f", "latin.sql"), FAILED, "latin.sql", "UTF-8")


STATEMENTS = {
    "no SQL": ("SELEC 1", "cannot read the SQL at line 1, column 7: '1' after 'SELEC'"),
    "second line": ("SELECT 1;\nEXPORT orders", "supported are SELECT, INSERT INTO"),
    "open quote": ("SELECT 'tea", "cannot read the SQL"),
    "not supported": ("DROP VIEW v", "supported are DATABASE and TABLE"),
    "another statement": ("EXPLAIN SELECT 1", "supported are SELECT, INSERT INTO"),
    "no table": ("SELECT * FROM sales.ordres", "did you mean sales.orders?"),
    "no database": ("SELECT * FROM seles.orders", "did you mean sales?"),
    "no column": ("SELECT nam FROM sales.orders", "nam is no column of sales.orders; did you mean"),
    "no column to set": ("UPDATE sales.orders SET nam = 'x'", "did you mean name?"),
    "no column to insert into": (
        "INSERT INTO sales.orders (id, x) VALUES (1, 2)", "x is no column of sales.orders",
    ),
    "too many values": ("INSERT INTO sales.orders VALUES (1, 'a', 2, 3)", "4"),
    "no field of ROW__ID": ("SELECT ROW__ID.row FROM sales.orders", "it has writeid, bucketid"),
    "three parts": ("SELECT * FROM a.b.c", "names a catalog; write database.table"),
    "overwrite": ("INSERT OVERWRITE TABLE sales.orders SELECT 1", "INSERT OVERWRITE is not"),
}  # fmt: skip


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements(busy: BusyMetastore, name: str) -> None:
    """Refused before Spark starts."""
    text, message = STATEMENTS[name]
    refused(busy.program.run("sql", "-e", text), FAILED, message)


def test_the_current_database_of_sql(program: Program) -> None:
    refused(
        program.run("sql", "--in", "nowhere", "-e", "SHOW TABLES"), FAILED, "no database nowhere"
    )


def test_verbose_shows_where_an_error_came_from(program: Program) -> None:
    with pytest.raises(Exception, match="typo.db"):
        program.run("txns", "--database", "sqlite:///typo.db", "--verbose")


def test_dead_links_are_no_surprise(program: Program) -> None:
    directory = copy_golden("g01_insert/01-three-inserts", program.folder / "left" / "orders")
    (directory / "delta_0000009_0000009_0000").symlink_to(Path("nowhere"))
    answer = program.run("table", "adopt", str(directory), "--name", "s.t")
    assert answer.exit_code in (0, FAILED)
    assert "unexpected" not in answer.err
    shutil.rmtree(directory)
