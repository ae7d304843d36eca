"""Who keeps what in the archive, and how an administrator, or a purge, lets it go."""

from __future__ import annotations

import re
import shutil
import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.busy_metastore import BusyMetastore, opened
from tests.support.what_changed import checksums, database_rows

OLD = ("--set", "hive.repl.cm.retain=1ms")


def listed(busy: BusyMetastore) -> dict[str, Any]:
    rows = busy.program.ok("cm", "pins", "--format", "json").json
    return {row["holder"]: row for row in rows}


@pytest.fixture
def dump_holder(busy: BusyMetastore) -> str:
    return f"dump:sales:file:{busy.dump}"


def test_pins_tell_who_holds_how_much_since_when(busy: BusyMetastore, dump_holder: str) -> None:
    pins = listed(busy)
    assert set(pins) == {dump_holder, busy.policy_pin}
    dump, policy = pins[dump_holder], pins[busy.policy_pin]
    archived = busy.program.ok("cm", "ls", "--format", "json").json
    sizes = {row["name"]: row["size"] for row in archived}
    assert (dump["kind"], dump["database"], dump["state"]) == ("dump", "sales", "waiting")
    assert (policy["kind"], policy["database"], policy["state"]) == ("policy", "sales", None)
    assert policy["files"] == len(sizes)
    assert policy["bytes"] == sum(sizes.values())
    assert 0 < dump["files"] < dump["named"]
    assert dump["since"]
    assert policy["archived since"]
    assert "waiting" in busy.program.ok("cm", "pins").out


def test_pins_tell_until_when_they_keep(busy: BusyMetastore, dump_holder: str) -> None:
    """What the source knows while its replica is out of reach: the first budget that ends."""
    kept = ("hive.repl.cm.retain=1h", "hive.repl.event.db.listener.timetolive=1h")
    words = ["cm", "pins", "--format", "json", "--set", kept[0], "--set", kept[1]]
    for events, files, first in (("2d", "9d", 2), ("9d", "3d", 3)):
        rows = busy.program.ok(
            *words,
            "--set", f"hms.bridge.repl.events.budget={events}",
            "--set", f"hms.bridge.repl.archive.budget={files}",
        ).json  # fmt: skip
        found = {row["holder"]: row for row in rows}
        policy, dump = found[busy.policy_pin], found[dump_holder]
        left = timedelta(days=first)
        since = datetime.fromisoformat(policy["archived since"])
        assert timedelta(0) <= datetime.fromisoformat(policy["kept until"]) - since - left
        assert datetime.fromisoformat(policy["kept until"]) - since - left < timedelta(hours=1)
        assert datetime.fromisoformat(dump["kept until"]) - since > left - timedelta(hours=1)


def test_where_nothing_happened_since_the_last_dump_no_time_runs_out(busy: BusyMetastore) -> None:
    """The log's clock begins with the first event that no dump has, not with the dump."""
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    time.sleep(1.1)  # the log knows whole seconds
    busy.program.ok("repl", "dump", "sales")
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("cm", "pins")
    assert listed(busy)[busy.policy_pin]["kept until"] is None
    time.sleep(1.1)
    busy.program.ok("sql", "-e", "CREATE TABLE sales.later (a INT)")
    policy = listed(busy)[busy.policy_pin]
    kept = datetime.fromisoformat(policy["kept until"])
    assert kept - datetime.fromisoformat(policy["archived since"]) > timedelta(days=30)


def test_a_release_lets_the_purge_delete(busy: BusyMetastore, dump_holder: str) -> None:
    assert {row["what"] for row in purge_plan(busy)} == {"pinned"}
    answer = busy.program.ok("cm", "release", dump_holder, busy.policy_pin, "--format", "json")
    assert [row["what"] for row in answer.json] == ["released", "released"]
    assert f"file:{busy.dump} is not loaded" in answer.err
    assert listed(busy) == {}
    assert {row["what"] for row in purge_plan(busy)} == {"delete"}


def purge_plan(busy: BusyMetastore) -> Any:
    return busy.program.ok("cm", "purge", *OLD, "--dry-run", "--format", "json").json


@pytest.mark.parametrize("more", [(), ("--loaded",), ("--gone",)])
def test_a_dry_run_releases_nothing(
    busy: BusyMetastore, dump_holder: str, more: tuple[str, ...]
) -> None:
    folder = busy.program.folder
    words = ("cm", "release", dump_holder, *more, "--dry-run", "--format", "json")
    busy.program.ok(*words)
    files, rows = checksums(folder), database_rows(folder / "metastore.db")
    assert [row["what"] for row in busy.program.ok(*words).json] == ["would be released"]
    assert database_rows(folder / "metastore.db") == rows
    assert checksums(folder) == files


def test_unknown_holders_are_refused_and_nobody_is_released(busy: BusyMetastore) -> None:
    refused = busy.program.run("cm", "release", busy.policy_pin, "policy:nobody")
    assert refused.exit_code == 1
    assert "no pin is called 'policy:nobody'; 'hms-bridge cm pins' lists them" in refused.err
    near = busy.program.run("cm", "release", "policy:sales").err
    assert f"no pin is called 'policy:sales'; there is {busy.policy_pin}; 'hms-bridge" in near
    assert "removal under way" in busy.program.run("cm", "release", "intent:7").err
    assert busy.program.run("cm", "release").exit_code == 2
    assert len(listed(busy)) == 2


def test_a_purge_releases_dumps_that_are_loaded(busy: BusyMetastore, dump_holder: str) -> None:
    waiting = busy.program.ok("cm", "purge", *OLD)
    assert "is loaded" not in waiting.err
    busy.program.ok("repl", "load", "sales", *busy.replica)
    assert listed(busy)[dump_holder]["state"] == "loaded"
    assert "its pin would go" in busy.program.ok("cm", "purge", *OLD, "--dry-run").err
    assert dump_holder in listed(busy)
    assert "its pin is gone" in busy.program.ok("cm", "purge", *OLD).err
    assert set(listed(busy)) == {busy.policy_pin}


def test_a_dump_that_is_gone_keeps_its_pin_until_someone_decides(
    busy: BusyMetastore, dump_holder: str
) -> None:
    """It may have been moved to where it will be loaded."""
    shutil.rmtree(busy.dump)
    busy.program.ok("cm", "purge", *OLD)
    busy.program.ok("cm", "release", "--loaded")
    assert listed(busy)[dump_holder]["state"] == "gone"
    shutil.rmtree(busy.program.dumps)
    busy.program.ok("cm", "release", "--gone")
    assert listed(busy)[dump_holder]["state"] == "unknown"
    busy.dump.parent.mkdir(parents=True)
    assert busy.program.ok("cm", "release", "--gone", "--format", "jsonl").json_lines
    assert set(listed(busy)) == {busy.policy_pin}


def test_a_person_can_hold_what_is_archived_of_a_table(busy: BusyMetastore) -> None:
    words = ("--reason", "see ticket 17")
    told = busy.program.ok("cm", "hold", "audit", "sales.orders", "--for", "30d", *words)
    assert "hold:audit holds 11 files" in told.err
    row = listed(busy)["hold:audit"]
    assert (row["kind"], row["database"], row["table"]) == ("hold", "sales", "orders")
    assert row["reason"] == "see ticket 17"
    assert row["expires"] > row["since"]
    busy.program.ok("cm", "release", *(set(listed(busy)) - {"hold:audit"}))
    assert {row["what"] for row in purge_plan(busy)} == {"pinned"}
    busy.program.ok("cm", "hold", "audit", "sales.customers")
    assert listed(busy)["hold:audit"]["files"] == 0
    busy.program.ok("cm", "release", "hold:audit")
    assert {row["what"] for row in purge_plan(busy)} == {"delete"}


def test_a_table_that_nobody_knows_is_held_with_a_note(busy: BusyMetastore) -> None:
    """It may be mistyped, or be yet to come."""
    told = busy.program.ok("cm", "hold", "audit", "sales.nope")
    assert "nothing is archived of sales.nope, and there is no such table" in told.err
    assert listed(busy)["hold:audit"]["table"] == "nope"
    for known in ("sales.customers", "sales.orders", "sales"):
        assert "note:" not in busy.program.ok("cm", "hold", "audit", known).err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "WHAT"),
        (("sales.",), 2, "no table name"),
        (("nobody",), 1, "nobody"),
        (("sales", "--for", "soon"), 1, "no duration"),
        (("sales", "--for", "0d"), 2, "longer than 0"),
        (("sales", "--for", "30"), 2, "a number and a unit, as 30d or 12h, not '30'"),
    ],
)
def test_a_hold_needs_to_be_told_what(
    busy: BusyMetastore, words: tuple[str, ...], code: int, message: str
) -> None:
    refused = busy.program.run("cm", "hold", "audit", *words)
    assert refused.exit_code == code
    assert message in refused.err
    assert len(listed(busy)) == 2


@pytest.mark.parametrize("label", ["", " ", "a\nb", "x" * 201])
def test_a_hold_has_a_name_that_a_list_can_show(busy: BusyMetastore, label: str) -> None:
    refused = busy.program.run("cm", "hold", label, "sales")
    assert refused.exit_code == 2
    assert "names no hold: write a text of one line" in refused.err
    assert len(listed(busy)) == 2


def test_a_hold_in_an_archive_that_cannot_be_written_says_so(busy: BusyMetastore) -> None:
    place = "/proc/cm"  # where nobody makes a directory
    refused = busy.program.run(
        "cm", "hold", "audit", "sales", "--set", f"hive.repl.cmrootdir={place}"
    )
    assert refused.exit_code == 1
    assert (
        "hold:audit holds nothing: the archive file:/proc/cm (hive.repl.cmrootdir)" in refused.err
    )
    assert "then hold again" in refused.err
    assert len(listed(busy)) == 2


def test_a_hold_by_a_host_that_is_behind_ends_no_sooner(busy: BusyMetastore) -> None:
    """Its clock says five days less than what is known to have happened."""
    known_ms = int((time.time() + 5 * 86_400) * 1000)
    with opened(busy.program) as store:
        store.manifest.note_time(known_ms)
    busy.program.ok("cm", "hold", "audit", "sales", "--for", "2d")
    row = listed(busy)["hold:audit"]
    assert datetime.fromisoformat(row["since"]).timestamp() * 1000 >= known_ms - 1000
    ends = datetime.fromisoformat(row["expires"]) - datetime.fromisoformat(row["since"])
    assert ends == timedelta(days=2)


OVER = (*OLD, "--set", "hms.bridge.repl.archive.budget=1ms")


def test_a_budget_ends_what_dumps_and_policies_keep_and_says_so(
    busy: BusyMetastore, dump_holder: str
) -> None:
    status = (
        "repl", "status", "sales", *busy.replica, "--source", busy.program.url, "--format", "json",
    )  # fmt: skip
    before = busy.program.ok(*status).json
    assert 29 * 86_400 < before["archive_budget_ends_in_seconds"] <= 30 * 86_400
    planned = busy.program.ok("cm", "purge", *OVER, "--dry-run", "--format", "json")
    assert {row["what"] for row in planned.json} == {"delete"}
    assert f"{busy.policy_pin} would be given up: it kept files for longer than" in planned.err
    assert {pin["state"] for pin in listed(busy).values()} == {"waiting", None}
    purged = busy.program.ok("cm", "purge", *OVER)
    for holder in (dump_holder, busy.policy_pin):
        assert f"{holder} is given up: it kept files for longer than" in purged.err
        pin = listed(busy)[holder]
        assert (pin["state"], pin["files"]) == ("given up", 0)
        assert pin["reason"].startswith("it kept files for longer than")
    answer = busy.program.run(*status)
    assert answer.exit_code == 1
    assert f"{busy.policy_pin} was given up at" in answer.err
    assert f"{dump_holder} was given up at" in answer.err
    assert "'repl dump sales --bootstrap'" in answer.err
    assert "given up" in " ".join(answer.json["troubles"])
    busy.program.ok("cm", "release", dump_holder, busy.policy_pin)
    assert "given up" not in busy.program.run(*status).err


def test_a_budget_of_bytes_is_one_for_each(busy: BusyMetastore, dump_holder: str) -> None:
    over = (*OLD, "--set", "hms.bridge.repl.archive.budget.bytes=0")
    answer = busy.program.ok("cm", "purge", *over, "--dry-run")
    for holder in (dump_holder, busy.policy_pin):
        assert f"{holder} would be given up: it kept more than 0 bytes" in answer.err
    refused = busy.program.run("cm", "purge", "--set", "hms.bridge.repl.archive.budget=0")
    assert (refused.exit_code, "it must be at least 1 ms" in refused.err) == (1, True)


def test_a_monitor_is_told_before_the_budget_ends(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    answer = busy.program.run(
        "repl", "lag", "sales", *busy.replica, "--source", busy.program.url, "--format", "jsonl",
        "--set", "hms.bridge.repl.archive.budget=9h", "--set", "hive.repl.cm.retain=1h",
    )  # fmt: skip
    (found,) = answer.json_lines
    assert (answer.exit_code, found["headroom_limit"]) == (2, "archive's budget")
    ends = r"incremental is lost in 8 h \d+ min, by the archive's budget"
    assert re.match(ends, found["why"])
