"""What an administrator can ask of dumps and loads, by option and by Hive's settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.cli.repl_requests import wait_rules
from hms_bridge.config.settings import Settings
from hms_bridge.model.catalog import Column, SerDe, Storage, Table, TableType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import OpenTxnsRequest
from hms_bridge.repl.dump import repl_dump
from tests.support.busy_metastore import copy_golden, opened
from tests.support.program import Program, run_here

BASE = "hive.repl.replica.external.table.base.dir"
WITH_DATA = "hive.repl.dump.metadata.only.for.external.table=false"


class Sides:
    """A source with one ACID table, and an empty replica."""

    def __init__(self, program: Program) -> None:
        self.program = program
        directory = copy_golden(
            "g01_insert/01-three-inserts", program.warehouse / "s.db" / "orders"
        )
        program.ok("table", "adopt", str(directory), "--name", "s.orders")
        self.folder = program.folder / "dr"
        self.folder.mkdir()
        self.url = f"sqlite:///{self.folder}/metastore.db"

    @property
    def replica(self) -> tuple[str, ...]:
        return (
            "--metastore", self.url,
            "--set", f"hive.metastore.warehouse.dir={self.folder}/warehouse",
            "--set", f"hive.repl.cmrootdir={self.folder}/cmroot",
        )  # fmt: skip

    def dump(self, *words: str) -> Path:
        made = self.program.ok("repl", "dump", "s", "--format", "json", *words).json
        return Path(made["dump_dir"].removeprefix("file:"))

    def load(self, *words: str) -> None:
        self.program.ok("repl", "load", "s", *self.replica, *words)

    def event(self, name: str) -> None:
        """Something for the next dump."""
        with opened(self.program) as store:
            store.metastore.create_table(
                Table(
                    database_name="s", name=name, storage=_text_storage(None),
                    parameters={"transactional": "false"},
                )
            )  # fmt: skip

    def external_table(self) -> Path:
        directory = self.program.folder / "landing" / "log"
        directory.mkdir(parents=True)
        (directory / "first").write_text("1\n")
        with opened(self.program) as store:
            store.metastore.create_table(
                Table(
                    database_name="s", name="log", type=TableType.EXTERNAL_TABLE.value,
                    storage=_text_storage(f"file:{directory}"), parameters={"EXTERNAL": "TRUE"},
                )
            )  # fmt: skip
        return directory

    def open_writer(self) -> TxnId:
        with opened(self.program) as store:
            (txn_id,) = store.metastore.open_txns(OpenTxnsRequest(user="ann", host="here"))
            component = LockComponent(
                type=LockType.SHARED_WRITE, level=LockLevel.TABLE,
                scope=Scope("s", "orders"), operation=DataOperation.INSERT, is_transactional=True,
            )  # fmt: skip
            store.metastore.lock(
                LockRequest(components=(component,), txn_id=txn_id, user="ann", host="here")
            )
        return txn_id

    def state_of(self, txn_id: TxnId) -> str | None:
        rows = self.program.ok("txns", "--format", "json").json
        return {row["txnid"]: row["state"] for row in rows}.get(txn_id)


def _text_storage(location: str | None) -> Storage:
    return Storage(
        columns=(Column(name="line", type="string"),),
        location=location,
        input_format="org.apache.hadoop.mapred.TextInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serde=SerDe(library="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )


@pytest.fixture
def sides(program: Program) -> Sides:
    return Sides(program)


def test_data_of_external_tables_goes_along(sides: Sides) -> None:
    directory, base = sides.external_table(), sides.folder / "external"
    copied = Path(f"{base}{directory}")
    sides.dump("--external-base", str(base))
    refused = sides.program.run("repl", "load", "s", *sides.replica)
    assert refused.exit_code == 1
    assert BASE in refused.err
    sides.load("--external-base", str(base))
    assert [one.name for one in copied.iterdir()] == ["first"]

    (directory / "second").write_text("2\n")
    sides.event("more")
    by_setting = ("--set", f"{BASE}={base}")
    sides.dump(*by_setting, "--set", WITH_DATA)
    sides.load(*by_setting)
    assert sorted(one.name for one in copied.iterdir()) == ["first", "second"]


def test_without_being_asked_a_dump_leaves_external_data_alone(sides: Sides) -> None:
    directory, base = sides.external_table(), sides.folder / "external"
    dump = sides.dump("--set", f"{BASE}={base}")
    assert not (dump / "hive" / "_file_list_external").exists()
    sides.load("--set", f"{BASE}={base}")
    assert not list(Path(f"{base}{directory}").iterdir())


def test_a_load_of_an_external_table_without_a_place_says_what_to_type(sides: Sides) -> None:
    """`repl run` has no such option: a policy failed with it, cycle after cycle."""
    sides.external_table()
    sides.dump()
    refused = sides.program.run("repl", "load", "s", *sides.replica)
    assert refused.exit_code == 1
    for text in ("s.log is external", "--external-base DIR", f"--replace --target-set {BASE}=DIR"):
        assert text in refused.err
    sides.load("--external-base", str(sides.folder / "external"))


def test_external_data_without_a_place_is_refused_before_the_dump(sides: Sides) -> None:
    refused = sides.program.run("repl", "dump", "s", "--set", WITH_DATA)
    assert refused.exit_code == 1
    assert BASE in refused.err
    assert not sides.program.dumps.exists()


@pytest.mark.parametrize(
    ("words", "is_kept"),
    [((), False), (("--keep-previous",), True),
     (("--set", "hive.repl.retain.prev.dump.dir=true"), True)],
)  # fmt: skip
def test_older_dumps_go_or_stay(sides: Sides, words: tuple[str, ...], is_kept: bool) -> None:
    first = sides.dump()
    sides.load()
    sides.event("more")
    second = sides.dump(*words)
    assert second != first
    assert first.exists() is is_kept


@pytest.mark.parametrize(
    ("words", "has_checksums"),
    [((), True), (("--no-checksums",), False),
     (("--set", "hms.bridge.repl.dump.checksums=false"), False)],
)  # fmt: skip
def test_file_references_have_checksums_or_not(
    sides: Sides, words: tuple[str, ...], has_checksums: bool
) -> None:
    dump = sides.dump(*words)
    lines = [line for path in dump.rglob("_files") for line in path.read_text().split()]
    assert lines
    for line in lines:
        _, checksum, cmroot, directory = line.split("#")
        assert directory.startswith("delta_")
        assert bool(checksum) is bool(cmroot) is has_checksums
    sides.load()


@pytest.mark.parametrize(
    ("words", "is_batched"), [((), True), (("hive.repl.batch.incremental.events=false",), False)]
)
def test_events_are_batched_or_not(sides: Sides, words: tuple[str, ...], is_batched: bool) -> None:
    sides.dump()
    sides.load()
    sides.event("more")
    dump = sides.dump(*(part for word in words for part in ("--set", word)))
    names = [one.name for one in (dump / "hive").iterdir() if one.is_dir()]
    assert any("batch" in name for name in names) is is_batched
    sides.load()


ABORT = "hive.repl.bootstrap.dump.abort.write.txn.after.timeout=true"
NO_WAIT = "hive.repl.bootstrap.dump.open.txn.timeout=0"


@pytest.mark.parametrize("no_wait", [("--wait", "0s"), ("--set", NO_WAIT)])
@pytest.mark.parametrize("abort", [("--abort-writers",), ("--set", ABORT)])
def test_open_writers_are_waited_for_or_aborted(
    sides: Sides, no_wait: tuple[str, ...], abort: tuple[str, ...]
) -> None:
    writer = sides.open_writer()
    refused = sides.program.run("repl", "dump", "s", *no_wait)
    assert refused.exit_code == 1
    assert f"transactions {writer} hold locks" in refused.err
    assert sides.state_of(writer) == "OPEN"
    sides.dump(*no_wait, *abort)
    assert sides.state_of(writer) == "ABORTED"


def test_files_of_a_dump_come_from_allowed_places_only(sides: Sides) -> None:
    dump = sides.dump()
    elsewhere = (*sides.replica, "--set", "hms.bridge.repl.load.roots=/nowhere")
    refused = sides.program.run("repl", "load", "s", *elsewhere)
    assert refused.exit_code == 1
    assert "outside of /nowhere" in refused.err + refused.out
    # A look goes by more than that, but by nothing that the dump alone names.
    looked = sides.program.run("repl", "verify", str(dump), *elsewhere)
    assert looked.exit_code == 3
    assert "0 at source, 0 in CM, 0 missing, 3 not looked for" in looked.err
    assert "/nowhere, " in looked.err
    refused = sides.program.run(
        "repl", "load", "s", *sides.replica, "--set", "hms.bridge.repl.load.schemes=hdfs"
    )
    assert "which dumps may not name here" in refused.err
    allowed = f"hms.bridge.repl.load.roots={sides.program.warehouse}, {sides.program.cmroot}"
    sides.load("--set", allowed)


FORGOTTEN = "did you forget --metastore of the replica?"


def test_a_spark_that_nothing_asks_for_is_refused(sides: Sides) -> None:
    sides.dump()
    words = ("repl", "load", "s", *sides.replica, "--master", "local[2]")
    answer = sides.program.run(*words)
    assert answer.exit_code == 1
    assert "are for --copy-with spark" in answer.err
    small = sides.program.ok(*words, "--set", "hms.bridge.repl.copy.with=spark", "--format", "json")
    assert small.json["files by Spark"] == 0, "small files need no Spark, and none was started"


def test_a_dump_is_not_loaded_into_its_own_source(sides: Sides) -> None:
    """The replica's --metastore was forgotten: nobody must be told to drop the source."""
    sides.dump()
    for words in ((), ("--dry-run",)):
        refused = sides.program.run("repl", "load", "s", *words)
        assert refused.exit_code == 1
        assert FORGOTTEN in refused.err
        assert "drop" not in refused.err
    sides.load()
    after = sides.program.run("repl", "load", "s")
    assert after.exit_code == 1
    assert FORGOTTEN in after.err
    assert "make another dump" not in after.err
    sides.event("more")
    sides.dump()
    incremental = sides.program.run("repl", "load", "s")
    assert incremental.exit_code == 1
    assert FORGOTTEN in incremental.err


def test_a_source_is_known_by_its_files_too(sides: Sides) -> None:
    """Without the mark of a source, the tables lie where the dump says."""
    sides.dump()
    _set_database(sides, {})
    refused = sides.program.run("repl", "load", "s")
    assert refused.exit_code == 1
    assert "looks like the one that" in refused.err
    assert FORGOTTEN in refused.err


def test_a_replica_that_is_a_source_itself_refuses_its_own_dumps(sides: Sides) -> None:
    """Its own events have other numbers than those of its source."""
    sides.dump()
    _set_database(sides, {"repl.source.for": "next", "repl.last.id": "1"})
    refused = sides.program.run("repl", "load", "s")
    assert refused.exit_code == 1
    assert "looks like the one that" in refused.err
    assert "drop" not in refused.err
    sides.load()
    sides.event("more")
    last = sides.dump("--format", "json") / "hive" / "_dumpmetadata"
    assert last.read_text().startswith("INCREMENTAL")
    refused = sides.program.run("repl", "load", "s")
    assert refused.exit_code == 1
    assert "looks like the one that" in refused.err


def test_a_database_with_tables_of_its_own_is_not_to_be_dropped(sides: Sides) -> None:
    sides.dump()
    other = copy_golden("g01_insert/01-three-inserts", sides.folder / "warehouse" / "s.db" / "x")
    sides.program.ok("table", "adopt", str(other), "--name", "s.x", *sides.replica)
    refused = sides.program.run("repl", "load", "s", *sides.replica)
    assert refused.exit_code == 1
    assert "has 1 table that no dump brought" in refused.err
    assert "drop" not in refused.err
    sides.load("--into", "s2")


def test_a_replica_is_opened_closed_and_ended(sides: Sides) -> None:
    sides.dump()
    sides.load()
    write = ("sql", "-e", "CREATE TABLE s.own (id INT)", *sides.replica)
    refused = sides.program.run(*write)
    assert refused.exit_code == 1
    assert "'repl open s --definitions'" in refused.err
    assert sides.program.run("repl", "open", "s", *sides.replica).exit_code == 2
    opened_ = sides.program.ok("repl", "open", "s", "--definitions", *sides.replica)
    assert "others may define what s holds" in opened_.err
    sides.program.ok(*write)
    sides.program.ok("repl", "open", "s", "--close", *sides.replica)
    drop = ("sql", "-e", "DROP TABLE s.own", *sides.replica)
    assert sides.program.run(*drop).exit_code == 1
    planned = sides.program.ok("repl", "end", "s", "--dry-run", "--format", "json", *sides.replica)
    assert "repl.target.for" in planned.json["properties removed"]
    assert sides.program.run(*drop).exit_code == 1
    sides.program.ok("repl", "end", "s", *sides.replica)
    sides.program.ok(*drop)
    again = sides.program.run("repl", "end", "s", *sides.replica)
    assert again.exit_code == 1
    assert "neither a source nor a replica" in again.err


def _set_database(sides: Sides, parameters: dict[str, str]) -> None:
    with opened(sides.program) as store:
        database = store.metastore.get_database("s")
        store.metastore.alter_database("s", replace(database, parameters=parameters))


def test_a_replica_is_dropped_with_its_source_only_if_that_is_asked_for(sides: Sides) -> None:
    sides.dump()
    sides.load()
    sides.program.ok("repl", "end", "s")
    sides.program.ok("sql", "-e", "DROP DATABASE s CASCADE")
    assert sides.program.ok("repl", "dump", "s", "--dry-run", "--format", "json").json["kind"] == (
        "drop"
    )
    sides.dump()
    refused = sides.program.run("repl", "load", "s", *sides.replica)
    assert refused.exit_code == 1
    assert "--allow-drop-database" in refused.err
    allowed = ("--allow-drop-database", "--format", "json")
    plan = sides.program.ok("repl", "load", "s", *sides.replica, *allowed, "--dry-run").json
    assert (plan["kind"], plan["events"]) == ("drop", {"EVENT_DROP_DATABASE": 1})
    done = sides.program.ok("repl", "load", "s", *sides.replica, *allowed).json
    assert done["kind"] == "drop"
    shown = sides.program.ok("sql", "-e", "SHOW DATABASES", *sides.replica).out
    assert "default" in shown
    assert "s\n" not in shown.replace("default", "").replace("database", "")
    wrong = sides.program.run("repl", "dump", "nowhere")
    assert (wrong.exit_code, "there is no database nowhere" in wrong.err) == (1, True)


def test_a_dump_has_a_limit_by_option_and_by_setting(sides: Sides) -> None:
    sides.dump()
    sides.load()
    for name in ("a", "b", "c"):
        sides.event(name)
    plan = sides.program.ok("repl", "dump", "s", "--limit", "2", "--dry-run", "--format", "json")
    assert (plan.json["until event"] - plan.json["after event"], plan.json["events left"]) == (2, 1)
    made = sides.program.ok("repl", "dump", "s", "--limit", "2")
    assert "1 event of the log left for the next dump" in made.err
    sides.load()
    sides.event("d")
    setting = ("--set", "hms.bridge.repl.dump.events.max=1")
    answer = sides.program.ok("repl", "dump", "s", "--format", "json", *setting).json
    assert answer["events left"] == 1
    sides.load()
    assert sides.program.run("repl", "dump", "s", "--limit", "0").exit_code == 2


def test_old_dumps_go_by_a_verb_that_shows_them_first(sides: Sides) -> None:
    old = sides.dump()
    sides.load()
    new = sides.dump("--bootstrap", "--keep-previous")
    sides.program.ok("sql", "-e", "DROP DATABASE s CASCADE", *sides.replica)
    sides.load()
    assert "0 dumps gone" in sides.program.ok("repl", "expire", "s").err
    refused = sides.program.run("repl", "expire", "s", "--ttl", "-1s")
    assert refused.exit_code == 1
    assert "--ttl is '-1s'; no dump is younger than 0d" in refused.err
    expire = ("repl", "expire", "s", "--ttl", "0s", "--format", "jsonl")
    shown = sides.program.ok(*expire, "--dry-run")
    assert "1 dump would go" in shown.err
    assert [(row["dump"], row["what"]) for row in shown.json_lines] == [
        (f"file:{new}", "kept"),
        (f"file:{old}", "removed"),
    ]
    assert old.exists()
    assert "1 dump gone" in sides.program.ok(*expire).err
    assert (old.exists(), new.exists()) == (False, True)


def test_patterns_of_tables_are_told_once_and_changed_when_that_is_meant(sides: Sides) -> None:
    program = sides.program
    for name in ("t1", "t2"):
        program.ok("sql", "-e", f"CREATE TABLE s.{name} (a INT)")
    planned = program.ok("repl", "dump", "s.'t.*'.'t2'", "--dry-run", "--format", "json").json
    assert (planned["scope"], planned["tables"]) == ("s.'t.*'.'t2'", ["t1"])
    program.ok("repl", "dump", "s.'t.*'.'t2'")
    sides.load()
    refused = program.run("repl", "dump", "s.'t2'")
    assert refused.exit_code == 1
    assert "the dump before is of s.'t.*'.'t2'" in refused.err
    assert "--change-scope" in refused.err
    made = program.ok("repl", "dump", "s.'t2'", "--change-scope", "--format", "json").json
    assert (made["kind"], made["scope"], made["tables"]) == ("incremental", "s.'t2'", ["t2"])
    sides.load()
    program.ok("sql", "-e", "CREATE TABLE s.t3 (a INT)")
    assert program.ok("repl", "dump", "s", "--format", "json").json["scope"] == "s.'t2'"
    sides.load()
    status = program.ok("repl", "status", "s", *sides.replica, "--format", "json").json
    assert status["tables"] == "'t2'"
    tables = program.ok("sql", "-e", "SHOW TABLES IN s", *sides.replica, "--format", "jsonl")
    assert [list(line.values()) for line in tables.json_lines] == [["t2"]]
    unclear = program.run("repl", "dump", "s.t2")
    assert unclear.exit_code == 1
    assert "write db, db.'include'" in unclear.err


def test_a_dry_run_says_what_a_dump_goes_on_with(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides.dump()
    sides.load()
    with opened(sides.program) as store:
        for _ in range(201):
            store.metastore.open_txns(OpenTxnsRequest(user="somebody", host="here"))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(repl_dump, "hold_named", interrupted)
        assert sides.program.run("repl", "dump", "s").exit_code != 0
    plan = sides.program.ok("repl", "dump", "s", "--dry-run", "--format", "json").json
    assert (plan["events written"], plan["events"]) == (200, {"EVENT_OPEN_TXN": 201})
    assert plan["goes on with"] not in plan["removed"]
    assert plan["reason"].endswith(f"goes on with {plan['goes on with']}, which was killed")
    sides.dump()
    sides.load()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("dump", "s", "--discard", "--limit", "3"), "--discard makes no dump"),
        (("dump", "s", "--discard", "--bootstrap"), "--discard makes no dump"),
        (("dump", "s.'a.*'", "--discard"), "--discard makes no dump"),
        (("lag", "sales", "--root", "/dr/dumps"), "a policy has its own root"),
        (("lag", "--all", "--root", "/dr/dumps"), "a policy has its own root"),
        (("promote", "sales", "--cancel", "--close-all"), "--cancel lifts the fence"),
        (("promote", "sales", "--cancel", "--source-is-quiet"), "--cancel lifts the fence"),
    ],
    ids=" ".join,
)
def test_what_would_be_ignored_is_refused(
    program: Program, words: tuple[str, ...], said: str
) -> None:
    answer = program.run("repl", *words)
    assert answer.exit_code == 2
    assert said in answer.err


@pytest.mark.parametrize(("wait", "seconds"), [("20s", 1.0), ("1h", 5.0), ("0s", 0.0)])
def test_a_short_wait_looks_often(wait: str, seconds: float) -> None:
    rules = wait_rules(Settings(), wait=wait, is_abort_allowed=False)
    assert rules.poll_seconds == seconds


def test_a_file_is_no_dump(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    refused = run_here("repl", "verify", str(file))
    assert refused.exit_code == 1
    assert f"there is no dump in {file}; give the dump_dir" in refused.err
