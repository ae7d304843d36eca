"""What verbs list: the promised columns in every format, and the same rows."""

from __future__ import annotations

import pytest

from tests.support.busy_metastore import BusyMetastore
from tests.support.program import Answer

TXNS = [
    "txnid", "state", "type", "startedtime", "lastheartbeattime", "user", "host", "agent_info",
]  # fmt: skip
LOCKS = [
    "lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type",
    "transaction_id", "last_heartbeat", "acquired_at", "user", "hostname", "agent_info",
]  # fmt: skip
COMPACTIONS = [
    "compactionid", "dbname", "tabname", "partname", "type", "state", "workerid", "enqueuetime",
    "starttime", "duration_ms", "errormessage", "poolname", "txnid", "nexttxnid", "committime",
    "highestwriteid",
]  # fmt: skip
ARCHIVE = ["name", "size", "archived", "state", "database", "table", "original", "origins"]
PURGE = ["name", "what", "why", "size", "holders"]
INITIATOR = [
    "target", "decision", "type", "reason", "deltas", "delta bytes", "base bytes", "pool",
]  # fmt: skip
PINS = [
    "holder", "kind", "database", "table", "state", "files", "bytes", "named", "since",
    "archived since", "expires", "kept until", "reason",
]  # fmt: skip
CLEANING = [
    "compactionid", "target", "type", "state", "path", "decision", "reason", "by", "bytes",
]  # fmt: skip
VERIFIED = [
    "place", "table", "partition", "event", "file", "size", "archived", "expires", "reason",
    "at_target", "at_target_reason",
]  # fmt: skip
ALMOST_NOW = ("--set", "hive.repl.cm.retain=1ms")

SHOWN_FIRST = {
    "txns": ("txnid",), "locks": ("lockid",), "compactions": ("id",),
    "cm": ("archived", "what", "kind"), "cleaner": ("target",),
    "initiator": ("target",),
}  # fmt: skip
POLICY_PIN = "the holder of what is kept for the next dump"
LISTINGS = {
    "txns": (("txns",), TXNS, 3),
    "locks": (("locks",), LOCKS, 2),
    "locks of a table": (("locks", "--table", "sales.customers"), LOCKS, 2),
    "locks of another": (("locks", "--table", "sales.orders"), LOCKS, 0),
    "compactions": (("compactions",), COMPACTIONS, 3),
    "compactions of a table": (("compactions", "--table", "sales.orders"), COMPACTIONS, 1),
    "compactions of a state": (
        ("compactions", "--state", "ready for cleaning"), COMPACTIONS, 1,
    ),
    "compactions of another state": (("compactions", "--state", "failed"), COMPACTIONS, 0),
    "some compactions": (("compactions", "--limit", "2"), COMPACTIONS, 2),
    "cm ls": (("cm", "ls"), ARCHIVE, 11),
    "cm purge": (("cm", "purge", "--dry-run"), PURGE, 11),
    "cm purge of the old": (("cm", "purge", "--dry-run", *ALMOST_NOW), PURGE, 11),
    "cm pins": (("cm", "pins"), PINS, 2),
    "cm release": (
        ("cm", "release", POLICY_PIN, "--dry-run"),
        ["holder", "what", "state", "files", "bytes", "reason"], 1,
    ),
    "initiator plan": (("initiator", "plan"), INITIATOR, 0),
    "cleaner plan": (("cleaner", "plan"), CLEANING, None),
    "cleaner run": (("cleaner", "run", "--dry-run"), CLEANING, None),
}  # fmt: skip
RECORDS = {
    "schema info": (
        ("schema", "info"),
        ["database", "version", "meaning of own tables", "usable", "next step", "missing tables",
         "missing columns"],
    ),
    "compact": (
        ("compact", "sales.orders", "minor", "--dry-run"), ["target", "decision", "reason"],
    ),
    "compact something": (
        ("compact", "sales.events", "major", "--partition", "a=x/b=1", "--dry-run"),
        ["target", "decision", "inputs", "outputs", "buckets", "input bytes", "highest write id"],
    ),
    "compact at once": (
        ("compact", "sales.events", "minor", "--partition", "a=日本/b=3"),
        COMPACTIONS,
    ),
    "repl status": (
        ("repl", "status", "sales", "--source", "sqlite:///metastore.db"),
        ["last_repl_id", "tables", "source_event_id", "commits_behind", "changes_behind",
         "rpo_seconds", "bytes_to_copy", "newest_dump", "newest_dump_state", "finished", "loaded",
         "last_loaded", "headroom_seconds", "headroom_limit", "events_expire_in_seconds",
         "archive_expires_in_seconds", "archive_budget_ends_in_seconds",
         "is_waiting_dump_pinned", "missing_files", "unlooked_files",
         "is_first_incremental_pending", "is_incompatible", "unfinished_load", "troubles"],
    ),
    "repl dump": (
        ("repl", "dump", "sales", "--dry-run"),
        ["kind", "reason", "scope", "after event", "until event", "tables", "events", "passed over",
         "files", "bytes", "previous dump", "goes on with", "events written", "removed",
         "waits for", "events left"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTINGS)
def test_listings_in_every_format(busy: BusyMetastore, name: str) -> None:
    given, columns, count = LISTINGS[name]
    words = [busy.policy_pin if word == POLICY_PIN else word for word in given]
    rows = busy.program.ok(*words, "--format", "json").json
    assert len(rows) == count if count is not None else len(rows) > 1
    lines = busy.program.ok(*words, "--format", "jsonl").json_lines
    assert [list(row) for row in rows] == [columns] * len(rows)
    assert [list(line) for line in lines] == [columns] * len(rows)
    is_same_at_every_moment = name not in ("cm purge", "cm purge of the old")
    assert rows == lines or not is_same_at_every_moment
    printed = busy.program.ok(*words).out.splitlines()
    assert len(printed) == 1 + len(rows)
    assert printed[0].split()[0] in SHOWN_FIRST[words[0]]


@pytest.mark.parametrize("name", RECORDS)
def test_records_in_every_format(busy: BusyMetastore, name: str) -> None:
    words, keys = RECORDS[name]
    record = busy.program.ok(*words, "--format", "json").json
    assert list(record) == keys
    if name not in ("compact at once", "repl status"):  # done once; tells the time
        assert busy.program.ok(*words, "--format", "jsonl").json_lines == [record]
        lines = busy.program.ok(*words).out.splitlines()
        shown = [key for key in keys if record[key] not in (None, "", [], {})]
        assert [line[: len(key)] for line, key in zip(lines, shown, strict=True)] == shown


def test_verify(busy: BusyMetastore) -> None:
    words = ("repl", "verify", str(busy.dump))
    rows = busy.program.ok(*words, "--format", "json").json
    assert [list(row) for row in rows] == [VERIFIED] * len(rows)
    assert {row["place"] for row in rows} == {"at source", "in CM"}
    assert busy.program.ok(*words, "--format", "jsonl").json_lines == rows
    assert busy.program.ok(*words, "--all").out.splitlines()[0].split()[0] == "place"
    quiet = busy.program.ok(*words, "--quick")
    assert quiet.out == ""
    assert f"{len(rows)} files" in quiet.err


def test_verify_finds_the_newest_dump_by_itself(busy: BusyMetastore) -> None:
    named = busy.program.ok("repl", "verify", str(busy.dump), "--format", "json").json
    assert busy.program.ok("repl", "verify", "--newest", "SALES", "--format", "json").json == named
    elsewhere = ("--root", str(busy.program.warehouse))
    answer = busy.program.run("repl", "verify", "--newest", "sales", *elsewhere)
    assert (answer.exit_code, "no finished dump of sales" in answer.err) == (1, True)
    for words in ((), ("--newest", "sales", str(busy.dump))):
        assert busy.program.run("repl", "verify", *words).exit_code == 2


def test_verify_looks_at_the_target_too(busy: BusyMetastore) -> None:
    _, url, *settings = busy.replica
    words = ("repl", "verify", str(busy.dump), "--target", url, *settings)
    waiting = busy.program.ok(*words, "--format", "json").json
    assert {row["at_target"] for row in waiting} == {"to copy"}
    busy.program.ok("repl", "load", "sales", *busy.replica)
    loaded = busy.program.ok(*words)
    assert (loaded.out, f"{len(waiting)} there" in loaded.err) == ("", True)
    lost = next((busy.program.folder / "dr").rglob("orders/*/bucket_*"))
    lost.unlink()
    answer = busy.program.run(*words)
    assert (answer.exit_code, len(answer.table)) == (2, 2)
    assert "lacking" in answer.out
    assert busy.program.run(*words[:3], "--into", "sales").exit_code == 2


def test_an_archive_of_others_has_a_retention_of_its_own(busy: BusyMetastore) -> None:
    """The dump of a real Hive names that Hive's archive."""
    words = ("repl", "verify", str(busy.dump))
    assert "without pins the archive keeps them until" in busy.program.ok(*words).err
    other = busy.program.ok(*words, "--set", "hive.repl.cmrootdir=/elsewhere/cm")
    assert "keeps them until" not in other.err
    assert str(busy.program.cmroot) in other.err
    assert "its owner's hive.repl.cm.retain tells" in other.err
    status = ("repl", "status", "sales", *busy.replica, "--format", "json")
    assert busy.program.ok(*status).json["archive_expires_in_seconds"] is None
    known = busy.program.ok(*status, "--set", f"hive.repl.cmrootdir={busy.program.cmroot}")
    assert known.json["archive_expires_in_seconds"]


def test_load(busy: BusyMetastore) -> None:
    words = ("repl", "load", "sales", *busy.replica, "--dry-run", "--format")
    plan = busy.program.ok(*words, "json").json
    assert list(plan)[:4] == ["kind", "reason", "dump_dir", "stands at event"]
    assert plan["from the archive"] == 10
    assert busy.program.ok(*words, "jsonl").json_lines == [plan]
    report = busy.program.ok("repl", "load", "sales", *busy.replica, "--format", "json").json
    assert (report["kind"], report["files from the archive"]) == ("bootstrap", 10)
    again = busy.program.ok("repl", "load", "sales", *busy.replica, "--format", "json").json
    assert (again["kind"], again["last_repl_id"]) == ("nothing", report["last_repl_id"])


def test_dump(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    report = busy.program.ok("repl", "dump", "sales", "--format", "json").json
    assert list(report) == [
        "kind", "reason", "dump_dir", "last_repl_id", "scope", "tables", "events", "passed over",
        "files", "events left",
    ]  # fmt: skip
    assert report["kind"] == "incremental"


def test_a_blocked_dump_says_what_it_waits_for(busy: BusyMetastore) -> None:
    answer = busy.program.run("repl", "dump", "sales")
    assert answer.exit_code == 1
    assert f"{answer.out}{answer.err}".count("is not loaded yet") == 1
    assert "is not loaded yet" in answer.err


def test_cleaner_run(busy: BusyMetastore) -> None:
    (row,) = busy.program.ok("cleaner", "run", "--format", "json").json
    assert list(row) == [
        "compactionid", "target", "type", "state", "directories", "archived", "deleted", "bytes",
        "message",
    ]  # fmt: skip
    assert (row["target"], row["state"]) == ("sales.customers", "cleaned")


def test_purge(busy: BusyMetastore) -> None:
    held = busy.program.ok("cm", "purge", *ALMOST_NOW, "--format", "json")
    assert held.json == []
    plan = busy.program.ok("cm", "purge", *ALMOST_NOW, "--dry-run", "--format", "json").json
    holders = sorted({holder for row in plan for holder in row["holders"] or ()})
    override = [word for holder in holders for word in ("--override", holder)]
    rows = busy.program.ok("cm", "purge", *ALMOST_NOW, *override, "--format", "json").json
    assert {(row["what"], row["why"]) for row in rows} == {("deleted", None)}
    assert len(rows) == 11
    assert [one for one in busy.program.cmroot.iterdir() if one.name[0] != "."] == []


def test_an_override_of_nobody_is_noticed(busy: BusyMetastore) -> None:
    answer = busy.program.ok("cm", "purge", "--dry-run", "--override", "dump:elsewhere")
    assert "dump:elsewhere holds nothing" in answer.err


def test_abort(busy: BusyMetastore) -> None:
    answer = busy.program.ok("txns", "abort", str(busy.open_txn), str(busy.aborted_txn))
    assert f"aborted 1 transaction: {busy.open_txn}" in answer.err
    assert f"transaction {busy.aborted_txn} is aborted already" in answer.err
    states = {row["txnid"]: row["state"] for row in _json(busy, "txns")}
    assert states[busy.open_txn] == "ABORTED"
    locks = _json(busy, "locks")
    assert [lock["transaction_id"] for lock in locks] == [busy.waiting_txn]


def test_options_of_txns_hold_for_abort_too(busy: BusyMetastore) -> None:
    elsewhere = f"sqlite:///{busy.program.folder}/dr/metastore.db"
    answer = busy.program.run("txns", "--metastore", elsewhere, "abort", str(busy.open_txn))
    assert answer.exit_code == 1
    assert f"no open transaction {busy.open_txn}" in answer.err


def test_compact_then_wait_ends_when_a_worker_is_done(busy: BusyMetastore) -> None:
    answer = busy.program.run("compact", "sales.customers", "major")
    assert answer.exit_code == 1
    assert "sales.customers" in answer.err


def test_schema(busy: BusyMetastore) -> None:
    assert busy.program.ok("schema", "info", "--format", "json").json["usable"] is True
    assert "is ready" in busy.program.ok("schema", "init").err


def test_sql_that_needs_no_spark(busy: BusyMetastore) -> None:
    """From options, a file, or standard input without a terminal."""
    shown = busy.program.ok("sql", "--in", "sales", "-e", "SHOW TABLES", "--format", "json").json
    assert shown == [{"tab_name": name} for name in ("customers", "events", "orders")]
    described = busy.program.ok("sql", "--format", "jsonl", stdin="DESCRIBE sales.orders;\n")
    assert described.json_lines[0] == {"col_name": "id", "data_type": "int", "comment": None}
    script = busy.program.folder / "changes.sql"
    script.write_text("CREATE DATABASE more; -- comment\nUSE more;\nSHOW TABLES;")
    answer = busy.program.ok("sql", "-f", str(script))
    assert answer.err.splitlines() == [
        "database more created", "the current database is more", "(none)",
    ]  # fmt: skip
    partitions = busy.program.ok("sql", "--in", "sales", "-e", "SHOW PARTITIONS events")
    assert "a=sl%2Fash/b=1" in partitions.out.splitlines()


def test_empty_lists(busy: BusyMetastore) -> None:
    elsewhere = ("--metastore", f"sqlite:///{busy.program.folder}/dr/metastore.db")
    elsewhere += ("--set", "hive.repl.cmrootdir=nothing-yet")
    for words in (("txns",), ("locks",), ("compactions",), ("cm", "ls"), ("cleaner", "plan")):
        assert busy.program.ok(*words, *elsewhere, "--format", "json").json == []
        assert busy.program.ok(*words, *elsewhere, "--format", "jsonl").out == ""
        _is_header_only(busy.program.ok(*words, *elsewhere))


def _is_header_only(answer: Answer) -> None:
    assert len(answer.out.splitlines()) == 1
    assert "(none)" in answer.err


def _json(busy: BusyMetastore, *words: str) -> list[dict[str, object]]:
    found = busy.program.ok(*words, "--format", "json").json
    assert isinstance(found, list)
    return found
