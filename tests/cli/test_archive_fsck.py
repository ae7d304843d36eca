"""`cm fsck` as an administrator meets it; `cm purge` where the clock is not to be believed."""

from __future__ import annotations

import re
import shutil
import sqlite3

from tests.support.busy_metastore import BusyMetastore

OLD = ("--set", "hive.repl.cm.retain=1ms")


def database_of(busy: BusyMetastore) -> sqlite3.Connection:
    (path,) = busy.program.folder.glob("*.db")
    return sqlite3.connect(path, isolation_level=None)


def archived(busy: BusyMetastore) -> dict[str, dict[str, object]]:
    rows = busy.program.ok("cm", "ls", "--format", "json").json
    return {row["name"]: row for row in rows}


def test_a_sound_archive(busy: BusyMetastore) -> None:
    answer = busy.program.ok("cm", "fsck", "--content", "--format", "json")
    assert answer.json == []
    assert "0 findings" in answer.err


def test_a_manifest_that_was_lost_is_rebuilt(busy: BusyMetastore) -> None:
    before = archived(busy)
    with database_of(busy) as connection:
        for table in ("HMSB_ARCHIVE_ORIGIN", "HMSB_ARCHIVED_FILE"):
            connection.execute(f"DELETE FROM {table}")
    found = busy.program.run("cm", "fsck", "--format", "json")
    assert found.exit_code == 1
    assert {row["name"] for row in found.json} == set(before)
    assert {row["what"] for row in found.json} == {"would be repaired"}
    assert {row["finding"] for row in found.json} == {"a file without a row"}
    mended = busy.program.ok("cm", "fsck", "--repair", "--format", "json")
    assert {row["what"] for row in mended.json} == {"repaired"}
    after = archived(busy)
    for name, row in before.items():
        assert {key: after[name][key] for key in ("size", "archived", "state")} == {
            key: row[key] for key in ("size", "archived", "state")
        }
    assert busy.program.ok("cm", "fsck").exit_code == 0


def test_an_archive_that_was_moved_keeps_what_is_held(busy: BusyMetastore) -> None:
    before = archived(busy)
    folder = busy.program.folder
    shutil.move(folder / "cmroot", folder / "elsewhere")
    moved = ("--set", f"hive.repl.cmrootdir={folder / 'elsewhere'}")
    plan = busy.program.ok("cm", "purge", *OLD, *moved, "--dry-run", "--format", "json").json
    assert {row["what"] for row in plan} == {"pinned"}
    assert busy.program.run("cm", "fsck", *moved).exit_code == 1
    busy.program.ok("cm", "fsck", *moved, "--repair")
    rows = busy.program.ok("cm", "ls", *moved, "--format", "json").json
    assert {row["name"]: row["original"] for row in rows} == {
        name: row["original"] for name, row in before.items()
    }


def test_a_purge_that_doubts_the_clock_says_what_to_do(busy: BusyMetastore) -> None:
    names = archived(busy)
    busy.program.ok("cm", "release", *[pin["holder"] for pin in pins(busy)])
    year_ms = 365 * 86_400_000
    with database_of(busy) as connection:  # nothing is known to have happened for a year
        connection.execute(f"UPDATE HMSB_ARCHIVE_TIME SET SEEN_AT_MS = SEEN_AT_MS - {year_ms}")
        connection.execute(f"UPDATE TXNS SET TXN_LAST_HEARTBEAT = TXN_LAST_HEARTBEAT - {year_ms}")
        connection.execute(
            f"UPDATE NOTIFICATION_LOG SET EVENT_TIME = EVENT_TIME - {year_ms // 1000}"
        )
    dry = busy.program.ok("cm", "purge", *OLD, "--dry-run")
    refused = busy.program.run("cm", "purge", *OLD)
    assert refused.exit_code == 1
    for said in (dry.err, refused.err):
        assert re.search(r"\d+ files stay that may be expired: 364 d .* do not count", said)
        assert "if the clock is right, run 'hms-bridge cm clock --trust'" in said
    assert set(archived(busy)) == set(names)
    shown = busy.program.run("cm", "clock", "--format", "json")
    assert shown.exit_code == 1
    assert [row["length"] for row in shown.json] == ["365 d 0 h"]
    # What is written now proves nothing.
    busy.program.ok("sql", "-e", "CREATE DATABASE later")
    assert busy.program.run("cm", "clock").exit_code == 1
    trusted = busy.program.ok("cm", "clock", "--trust", "--log-level", "info")
    assert "time confirmed" in trusted.err
    assert "1 gap confirmed" in trusted.err
    assert busy.program.ok("cm", "clock", "--format", "json").json == []
    busy.program.ok("cm", "purge", *OLD)
    assert archived(busy) == {}


def pins(busy: BusyMetastore) -> list[dict[str, str]]:
    found: list[dict[str, str]] = busy.program.ok("cm", "pins", "--format", "json").json
    return found
