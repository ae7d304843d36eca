"""`repl policy`, `repl run` and `repl history`: replication without a script of one's own."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hms_bridge.cli import output, repl_policy
from hms_bridge.cli.kept_policy import KeptPolicies
from hms_bridge.cli.repl_options import Call
from tests.support.openmetrics import read_exposition, scrape
from tests.support.policy_program import STORE, Replication
from tests.support.program import command, process_environment

CYCLES = "hms_bridge_policy_cycles_total"
ABSENT = ("absent", "--into", "other", "--source-later")
"""Its source has no such database."""


def test_the_part_of_a_database_does_not_end_under_a_policy(replication: Replication) -> None:
    replication.ok("run", "sales")
    store = ("--metastore", f"sqlite:///{replication.program.folder}/dr/metastore.db")
    for more in ((), ("--dry-run",)):
        refused = replication.program.run("repl", "end", "sales", *more, *store)
        assert refused.exit_code == 1
        assert "'repl policy remove sales'" in refused.err
    assert replication.ok("run", "sales", "--format", "jsonl").json_lines
    replication.ok("policy", "pause", "sales")
    told = replication.program.ok("repl", "end", "sales", *store)
    assert "warning: sales is a replica: no later dump" in told.err


def test_a_source_that_is_ended_says_what_will_be_lost(replication: Replication) -> None:
    replication.ok("run", "sales")
    source = ("--metastore", replication.program.url, "--format", "json")
    planned = replication.program.ok("repl", "end", "sales", "--dry-run", *source)
    assert "warning: sales is a source: what is replaced" in planned.err
    done = replication.program.ok("repl", "end", "sales", *source)
    assert "not archived" in done.json["lost"][0]
    assert done.json == planned.json


def test_a_policy_brings_a_replica_and_keeps_it_there(replication: Replication) -> None:
    (first,) = replication.ok("run", "sales", "--format", "jsonl").json_lines
    assert (first["outcome"], first["kind"], first["why"]) == ("replicated", "bootstrap", None)
    assert first["files"] > 0
    replication.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    (second,) = replication.ok("run", "--all", "--format", "jsonl").json_lines
    assert (second["outcome"], second["kind"]) == ("replicated", "incremental")
    assert second["events"] >= 1
    (third,) = replication.ok("run", "--all", "--format", "jsonl").json_lines
    assert third["outcome"] == "nothing new"
    tables = replication.program.ok(
        "sql", "-e", "SHOW TABLES IN sales", "--metastore", STORE, *replication.settings
    )
    assert "more" in tables.out
    found = replication.history("sales")
    assert [cycle["outcome"] for cycle in found] == ["nothing new", "replicated", "replicated"]
    assert [cycle["cycle"] for cycle in found] == [3, 2, 1]
    assert all(cycle["seconds"] >= 0 for cycle in found)
    assert found[2]["bytes"] > 0


def test_a_policy_that_is_changed_keeps_what_is_not_named(replication: Replication) -> None:
    """And tells what is not as it was."""
    replication.ok("policy", "pause", "sales")
    before = replication.ok("policy", "export", "sales").out
    change = ("policy", "add", "sales", "--replace")
    assert "policy sales is kept just so already" in replication.ok(*change).err
    answer = replication.ok(*change, "--source-set", "hive.repl.cm.retain=20d")
    assert answer.err.splitlines()[-2:] == [
        "policy sales is another one now",
        "--source-set hive.repl.cm.retain: 20d (was: not set)",
    ]
    answer = replication.ok(*change, "sales.'t.*'", "--source-unset", "hive.repl.cm.retain")
    assert "tables: 't.*' (was: not set)" in answer.err
    assert "--source-set hive.repl.cm.retain: no more (was: 20d)" in answer.err
    assert replication.ok("policy", "show", "sales", "--format", "json").json["paused"] is True
    replication.ok(*change, "sales")
    assert replication.ok("policy", "export", "sales").out == before


def test_a_change_takes_nothing_back_that_somebody_else_did_meanwhile(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it looks at the source, which may take minutes, a promotion pauses the policy."""
    change = ("policy", "add", "sales", "--replace", "--source-set", "hive.repl.cm.retain=20d")
    for meanwhile in ("pause", "remove"):
        with monkeypatch.context() as patched:
            patched.setattr(
                repl_policy,
                "require_database_at_source",
                lambda *_, verb=meanwhile: replication.ok("policy", verb, "sales"),
            )
            refused = replication.run(*change)
        assert refused.exit_code == 1
        assert "policy sales was changed by somebody else meanwhile" in refused.err
        kept = replication.ok("policy", "list", "--format", "jsonl").json_lines
        assert [policy["paused"] for policy in kept] == [True] * (meanwhile == "pause")


def test_the_url_of_a_side_may_stand_in_a_file(replication: Replication) -> None:
    url = json.loads(replication.ok("policy", "show", "sales", "--format", "json").out)["source"]
    file = Path(replication.program.folder) / "source.url"
    file.write_text(f"{url}\n")
    before = replication.ok("policy", "export", "sales").out
    replication.ok("policy", "add", "sales", "--replace", "--source", f"@{file}")
    assert replication.ok("policy", "export", "sales").out == before


def test_the_dry_run_of_a_change_shows_all_of_the_policy(replication: Replication) -> None:
    before = replication.ok("policy", "export", "sales").out
    words = ("policy", "add", "sales", "--root", "/elsewhere", "--dry-run")
    shown = replication.ok(*words, "--replace").out
    assert shown == before.replace(str(replication.program.dumps), "/elsewhere")
    assert replication.ok("policy", "export", "sales").out == before
    refused = replication.run(*words, "--source", replication.program.url)
    assert (refused.exit_code, refused.out) == (1, "")
    assert "--replace changes it" in refused.err


def test_what_a_policy_is_changed_by_makes_sense(replication: Replication) -> None:
    for words, why in (
        (("sales", "--source-unset", "hive.repl.cm.retain"), "are for --replace"),
        (("sales", "--replace", "--source-unset", "hive.repl.cm.retain"), "is not set"),
        (
            ("sales", "--replace", "--target-unset", "hive.repl.cmrootdir",
             "--target-set", "hive.repl.cmrootdir=/x"),
            "is given, too",
        ),
        (("another", "--replace"), "policy another is a new one, so name its source"),
    ):  # fmt: skip
        answer = replication.run("policy", "add", *words)
        assert (answer.exit_code, why in answer.err) == (2, True), answer.err


def test_a_policy_of_what_is_not_there_is_refused(replication: Replication) -> None:
    """Its first cycle would say so, at night."""
    url = replication.program.url
    lost = "sqlite:////nowhere/lost.db"
    for words, why in (
        (("sale", "--source", url), "there is no database sale; did you mean sales?"),
        (("two", "sales_", "--source", url), "there is no database sales_"),
        (("two", "sales", "--source", lost), "cannot be asked for its database"),
        (("sales", "sale", "--replace"), "there is no database sale; did you mean sales?"),
        (("sales", "--source", lost, "--replace"), "cannot be asked for its database"),
        (("sale", "--source", url, "--dry-run"), "there is no database sale"),
    ):
        answer = replication.run("policy", "add", *words)
        assert answer.exit_code == 1, words
        assert why in answer.err
        assert "--source-later" in answer.err
    assert len(replication.ok("policy", "list", "--format", "jsonl").json_lines) == 1


def test_a_policy_of_a_lost_source_can_be_changed(replication: Replication) -> None:
    """What stays is not looked for again."""
    lost = ("--source", "sqlite:////nowhere/lost.db", "--source-later")
    replication.ok("policy", "add", "sales", *lost, "--replace")
    moved = replication.ok("policy", "add", "sales", "--root", "/elsewhere", "--replace")
    assert "root: /elsewhere" in moved.err


def test_a_source_whose_password_is_elsewhere_is_not_looked_at(replication: Replication) -> None:
    url = "postgresql+psycopg://hive:${NO_SUCH_VARIABLE}@127.0.0.1:1/db"
    added = replication.ok("policy", "add", "b", "--source", url)
    assert "nobody looked whether its source has a database b" in added.err
    assert "NO_SUCH_VARIABLE" in added.err


def test_the_tables_of_a_policy_are_changed(replication: Replication) -> None:
    program = replication.program
    replication.end_writers()
    for name in ("t1", "t2", "u1"):
        program.ok("sql", "-e", f"CREATE TABLE sales.{name} (a INT)")

    def run() -> tuple[str, list[str]]:
        (row,) = replication.ok("run", "sales", "--format", "jsonl").json_lines
        shown = program.ok(
            "sql", "-e", "SHOW TABLES IN sales", "--format", "jsonl",
            "--metastore", STORE, *replication.settings,
        )  # fmt: skip
        names = [value for line in shown.json_lines for value in line.values()]
        return str(row["kind"]), sorted(str(name) for name in names if len(str(name)) == 2)

    assert replication.add("sales.'t[0-9]'.'t2'", "--replace").exit_code == 0
    assert run() == ("bootstrap", ["t1"])
    assert "'t[0-9]'.'t2'" in replication.ok("policy", "list").out
    assert "tables = \"'t[0-9]'.'t2'\"" in replication.ok("policy", "export", "sales").out
    assert replication.add("sales.'t2|u1'", "--replace").exit_code == 0
    (row,) = replication.ok("run", "--all", "--dry-run", "--format", "jsonl").json_lines
    assert row["kind"] == "incremental"
    assert run() == ("incremental", ["t2", "u1"])
    compared = replication.run(
        "compare", "sales", "--source", program.url, *replication.settings, "--format", "jsonl"
    )
    assert compared.exit_code == 0, compared.err
    assert replication.add("sales", "--replace").exit_code == 0
    assert run() == ("incremental", ["t1", "t2", "u1"])
    refused = replication.add("sales.'('", "--replace")
    assert refused.exit_code != 0
    assert "is none that is understood" in refused.err


def test_what_a_person_sees(replication: Replication) -> None:
    replication.ok("run", "sales")
    head, row = replication.ok("history").table
    assert head[:3] == ["policy", "cycle", "started"]
    assert row[0] == "sales"
    shown = replication.ok("policy", "show", "sales").out
    assert "hive.repl.cmrootdir" in shown
    assert "outcome replicated" in shown
    assert "sales" in replication.ok("policy", "list").out


@pytest.mark.parametrize("name", ["sales", "a-policy-of-thirty-characters"])
def test_history_is_a_table_on_a_narrow_terminal(
    replication: Replication, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It was printed from top to bottom, ten lines a cycle."""
    if name != "sales":
        replication.ok("policy", "remove", "sales")
        assert replication.add("sales", name=name).exit_code == 0
    replication.ok("run", name)
    assert replication.add(*ABSENT, name="absent").exit_code == 0
    replication.run("run", "absent", "--attempts", "1")
    monkeypatch.setattr(
        output, "_console", lambda: Console(file=sys.stdout, width=80, highlight=False)
    )
    for words in ((), (name,)):
        lines = replication.ok("history", *words).out.splitlines()
        table = [line for line in lines if not line.startswith("absent, cycle 1: ")]
        assert max(map(len, table)) <= 80
        assert table[0].split()[-1] in ("size", "outcome")
        assert {"cycle", "started", "outcome"} <= set(table[0].split())
        assert len(table) == (3 if not words else 2)
    shown = replication.ok("history", name).out
    assert "kind" in shown
    assert "seconds" in shown
    assert "files" in replication.history(name)[0]


def test_a_source_is_found_from_every_directory(replication: Replication) -> None:
    """A timer or service runs in another one than the admin who made the policy."""
    added = ("policy", "add", "near", "--source", "sqlite:///near.db", "--into", "other")
    replication.ok(*added, "--source-later", "--target", "sqlite:///${DR_FILE}")
    text = replication.ok("policy", "export", "near").out
    assert f'metastore = "sqlite:///{replication.program.folder}/near.db"' in text
    assert 'metastore = "sqlite:///${DR_FILE}"' in text
    file = replication.program.folder / "near.toml"
    file.write_text(text.replace(f"{replication.program.folder}/near.db", "near.db"))
    assert "kept just so already" in replication.ok("policy", "import", str(file)).err


def test_a_policy_that_never_loaded_leaves_no_replica(replication: Replication) -> None:
    assert replication.add(*ABSENT, name="absent").exit_code == 0
    assert replication.run("run", "absent").exit_code == 1
    told = replication.ok("policy", "remove", "absent").err
    assert "stays one" not in told
    assert "None of its cycles" in told
    replication.ok("run", "sales")
    told = replication.ok("policy", "remove", "sales").err
    assert "The replica sales stays one" in told


def test_a_failure_is_told_once_with_the_one_command_that_ends_it(
    replication: Replication,
) -> None:
    replication.ok("run", "sales")
    replication.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    replication.program.ok("repl", "dump", "sales")
    for part in replication.program.dumps.glob("*/*/hive/_dumpmetadata"):
        part.unlink()
    answer = replication.run("run", "sales")
    assert answer.exit_code == 1
    (why,) = [line for line in answer.err.splitlines() if line.startswith("sales: ")][:1]
    assert why.removeprefix("sales: ") not in answer.out


def test_a_dry_run_shows_what_would_be_dumped(replication: Replication) -> None:
    (row,) = replication.ok("run", "--all", "--dry-run", "--format", "jsonl").json_lines
    assert row["kind"] in ("bootstrap", "incremental", "blocked")
    assert replication.history() == []


def test_a_run_keeps_to_its_bandwidth(replication: Replication) -> None:
    began = time.monotonic()
    (row,) = replication.ok("run", "sales", "--bandwidth", "8KB", "--format", "jsonl").json_lines
    assert row["bytes"] > 20_000
    assert time.monotonic() - began >= row["bytes"] / 8000 - 0.5


def test_a_policy_keeps_how_its_loads_copy(replication: Replication) -> None:
    kept = ("--target-set", "hms.bridge.repl.bandwidth=8000")
    assert replication.add(*kept, "--replace").exit_code == 0
    assert "hms.bridge.repl.bandwidth" in replication.ok("policy", "export").out
    began = time.monotonic()
    (row,) = replication.ok("run", "sales", "--format", "jsonl").json_lines
    assert time.monotonic() - began >= row["bytes"] / 8000 - 0.5


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_run_reads_every_byte_before_it_changes_anything(
    replication: Replication, is_kept: bool
) -> None:
    words = [] if is_kept else ["--check-first"]
    if is_kept:
        kept = ("--target-set", "hms.bridge.repl.check.first=true")
        assert replication.add(*kept, "--replace").exit_code == 0
    for path in replication.program.warehouse.rglob("bucket_*"):
        path.write_bytes(b"?" * path.stat().st_size)
    for path in replication.program.cmroot.rglob("*bucket_*"):
        path.write_bytes(b"?")
    answer = replication.run("run", "sales", *words, "--attempts", "1", "--format", "jsonl")
    (row,) = answer.json_lines
    assert "Nothing was changed on the target" in row["why"]
    answer = replication.run("run", "sales", "--quick", "--attempts", "1", "--format", "jsonl")
    (row,) = answer.json_lines
    assert "has other content" in row["why"], "what is given wins over what is kept"
    assert "give one" in replication.run("run", "sales", "--quick", "--check-first").err


def test_a_failure_is_an_exit_code_and_stands_in_history(replication: Replication) -> None:
    assert replication.add(*ABSENT, name="absent").exit_code == 0
    answer = replication.run("run", "--all", "--attempts", "1", "--format", "jsonl")
    assert answer.exit_code == 1
    outcomes = {row["policy"]: row["outcome"] for row in answer.json_lines}
    assert outcomes == {"absent": "failed", "sales": "replicated"}
    (failed,) = replication.history("absent")
    assert "absent" in failed["why"]
    replication.run("run", "absent", "--attempts", "1")
    *_, told = replication.ok("history").out.splitlines()
    assert told == f"absent, cycle 2 and 1 before: {failed['why']}"
    assert replication.run("run", "--all", "--dry-run").exit_code == 1


def test_how_far_each_policy_is(replication: Replication, tmp_path: Path) -> None:
    assert replication.run("lag", "--all").exit_code == 3
    replication.ok("run", "sales")
    assert replication.add(*ABSENT, name="gone").exit_code == 0
    metrics = tmp_path / "lag.prom"
    answer = replication.run("lag", "--all", "--metrics", str(metrics), "--format", "jsonl")
    found = {row["policy"]: row for row in answer.json_lines}
    assert answer.exit_code == 3
    assert (found["sales"]["state"], found["sales"]["rpo_seconds"]) == ("OK", 0)
    assert (found["gone"]["state"], found["gone"]["database"]) == ("UNKNOWN", "other")
    assert 'hms_bridge_replica_state{database="sales"' in metrics.read_text()
    replication.ok("policy", "remove", "gone")
    _, row = replication.ok("lag", "--all").table
    assert [cell.strip() for cell in row[:2]] == ["sales", "sales"]
    for words in (("lag",), ("lag", "sales", "--all")):
        assert "name policies, or databases with --source, or give --all" in (
            replication.run(*words).err
        )


@pytest.mark.parametrize("words", [("--all",), ("sales-dr",)])
def test_a_replica_stays_visible_while_nobody_can_read_its_policy(
    replication: Replication, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Its series would end, and each alert with them; or another begin, called as the policy."""
    replication.ok("policy", "remove", "sales")
    assert replication.add("sales", name="sales-dr").exit_code == 0
    replication.ok("run", "sales-dr")
    file, kept_at = tmp_path / "lag.prom", replication.program.folder / "dr" / "metastore.db"
    states, look = "hms_bridge_replica_state", ("lag", *words, "--metrics", str(file))
    replication.ok(*look)
    (before,) = read_exposition(file.read_text()).of(states)
    away = kept_at.rename(kept_at.with_name("away.db"))
    for _ in range(2):  # what the first one wrote is what the second one knows
        answer = replication.run(*look, "--format", "jsonl")
        assert [(row["state"], "metastore.db" in row["why"]) for row in answer.json_lines] == [
            ("UNKNOWN", True)
        ]
        assert answer.exit_code == 3
        found = read_exposition(file.read_text())
        assert found.of(states) == {before: 3}
        assert found.of("hms_bridge_replica_rpo_seconds") == {}
    for text in (b"", b"\xff", b"no metrics"):
        file.write_bytes(text)
        replication.run(*look)
        assert list(read_exposition(file.read_text()).of(states).values()) == [3]
    away.rename(kept_at)
    replication.ok(*look)
    assert read_exposition(file.read_text()).of(states) == {before: 0}


def test_the_headroom_of_a_policy_counts_down_while_its_replica_does_not_answer(
    replication: Replication, tmp_path: Path
) -> None:
    """As that of a database does: the alert would end when it is needed most."""
    replication.ok("run", "sales")
    replication.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    moved = ("--target", "thrift://127.0.0.1:1")
    replication.ok("policy", "add", "sales", "--replace", *moved)
    file = tmp_path / "lag.prom"
    look = ("lag", "sales", "--metrics", str(file), "--format", "jsonl")
    (row,) = replication.run(*look).json_lines
    assert (row["state"], "127.0.0.1" in row["why"]) == ("UNKNOWN", True)
    assert row["headroom_seconds"] > 0
    assert read_exposition(file.read_text()).of("hms_bridge_replica_headroom_seconds")
    answer = replication.run(*look, "--headroom", "1000d")
    assert (answer.exit_code, answer.json_lines[0]["state"]) == (2, "CRITICAL")


def test_a_policy_says_where_its_replica_and_dumps_are(
    replication: Replication, tmp_path: Path
) -> None:
    """`repl status` looked below the root of the settings, and said nothing of the source."""
    root = f"{tmp_path}/elsewhere"
    change = ("policy", "add", "sales", "--replace", "--root", root)
    replication.ok(*change)
    replication.end_writers()
    replication.ok("run", "sales")
    replication.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    source = ("--source", replication.program.url)
    for words in (("sales",), ("sales", *source), ("sales", "--into", "sales")):
        told = replication.ok("status", *words, "--format", "json").json
        assert told["newest_dump"].startswith(f"file:{root}")
        assert (told["newest_dump_state"], told["changes_behind"]) == ("loaded", 1)
    for words in (("sales",), ("sales", *source)):
        (row,) = replication.ok("lag", *words, "--format", "jsonl").json_lines
        assert row["last_loaded"] is not None
        assert row["changes_behind"] == 1
    unknown = replication.run("lag", "sale", "--format", "jsonl")
    assert unknown.exit_code == 3
    assert "there is no policy sale; there are: sales" in unknown.json_lines[0]["why"]


def test_the_status_of_a_policy_whose_source_is_lost_says_what_its_replica_shows(
    replication: Replication,
) -> None:
    replication.ok("run", "sales")
    (replication.program.folder / "metastore.db").rename(replication.program.folder / "away.db")
    answer = replication.ok("status", "sales", "--format", "json")
    assert answer.json["newest_dump_state"] == "loaded"
    assert answer.json["source_event_id"] is None
    assert "the source of policy sales cannot be asked" in answer.err


def test_a_monitor_hears_of_cycles(replication: Replication, tmp_path: Path) -> None:
    assert replication.add(*ABSENT, name="gone").exit_code == 0
    news = tmp_path / "cycles.prom"
    words = ("run", "--all", "--attempts", "1", "--metrics", str(news))
    before = time.time()
    assert replication.run(*words).exit_code == 1
    (replicated,) = replication.history("sales")
    replication.run(*words)
    found = read_exposition(news.read_text())
    counts = found.of(CYCLES)
    assert {labels: n for labels, n in counts.items() if n} == {
        ("sales", "replicated"): 1, ("sales", "nothing new"): 1, ("gone", "failed"): 2,
    }  # fmt: skip
    assert counts["sales", "failed"] == 0
    success = "hms_bridge_policy_last_success_timestamp_seconds"
    assert found.of(success).keys() == {("sales",)}
    assert before <= found.one(success, "sales") <= time.time()
    assert found.one("hms_bridge_policy_copied_bytes_total", "sales") == replicated["bytes"] > 0
    assert found.one("hms_bridge_policy_applied_events_total", "sales") == replicated["events"]
    assert found.of("hms_bridge_policy_last_cycle_duration_seconds").keys() == {
        ("sales",), ("gone",),
    }  # fmt: skip
    assert found.of("hms_bridge_policy_paused") == {("sales",): 0, ("gone",): 0}
    replication.ok("run", "sales", "--metrics", str(news))
    assert read_exposition(news.read_text()).of("hms_bridge_policy_paused").keys() == {("sales",)}


def test_news_that_do_not_get_there_are_an_error(replication: Replication, tmp_path: Path) -> None:
    answer = replication.run("run", "sales", "--metrics", str(tmp_path / "absent" / "x.prom"))
    assert answer.exit_code == 1
    assert "x.prom cannot be written" in answer.err
    assert replication.history("sales")[0]["outcome"] == "replicated"
    answer = replication.run("run", "sales", "--metrics-port", "0")
    assert (answer.exit_code, "--metrics-port needs --every" in answer.err) == (2, True)


def test_without_policies_a_monitor_knows_nothing(replication: Replication) -> None:
    replication.ok("policy", "remove", "sales")
    answer = replication.run("lag", "--all", "--format", "jsonl")
    assert answer.exit_code == 3
    assert "repl policy add" in answer.json_lines[0]["why"]
    absent = replication.program.run("repl", "lag", "--all", "--metastore", "sqlite:////no/x.db")
    assert absent.exit_code == 3


def test_a_paused_policy_has_no_cycles(replication: Replication) -> None:
    replication.ok("policy", "pause", "sales")
    assert replication.ok("run", "--all", "--format", "jsonl").json_lines == []
    answer = replication.run("run", "sales")
    assert answer.exit_code == 1
    assert "repl policy resume sales" in answer.err
    replication.ok("policy", "resume", "sales")
    (row,) = replication.ok("run", "--all", "--format", "jsonl").json_lines
    assert row["outcome"] == "replicated"


def test_policies_go_to_another_machine_as_toml(replication: Replication, tmp_path: Path) -> None:
    text = replication.ok("policy", "export").out
    file = tmp_path / "policies.toml"
    file.write_text(text)
    replication.ok("policy", "import", str(file))
    other = tmp_path / "others.toml"
    other.write_text(text.replace('root = "', 'root = "/elsewhere'))
    again = replication.run("policy", "import", str(other))
    assert again.exit_code == 1
    assert "there is a policy sales already" in again.err
    assert replication.ok("policy", "import", str(file), "--replace", "--dry-run").out == text
    replication.ok("policy", "remove", "sales")
    assert replication.ok("policy", "list", "--format", "jsonl").json_lines == []
    replication.ok("policy", "import", str(file))
    assert replication.ok("policy", "export", "sales").out == text


def test_an_import_that_replaces_shows_what_and_takes_nothing_back(
    replication: Replication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As `policy add --replace`: an old file turned around what a promotion had made."""
    whole = replication.ok("policy", "export").out
    file = tmp_path / "policies.toml"
    file.write_text(whole.replace('root = "', 'root = "/elsewhere'))
    shown = replication.ok("policy", "import", str(file), "--replace", "--dry-run").err
    (root,) = [line for line in shown.splitlines() if line.startswith("root: ")]
    assert "policy sales would be another one" in shown
    assert root.startswith("root: /elsewhere")
    assert f"(was: {root.partition(': ')[2].partition(' ')[0][10:]})" in root
    assert replication.ok("policy", "export").out == whole
    kept = repl_policy.kept_policies

    def looked(call: Call) -> KeptPolicies:
        seen = kept(call)
        replication.ok("policy", "pause", "sales")
        return seen

    for words in ((), ("--source-later",)):
        with monkeypatch.context() as patched:
            patched.setattr(repl_policy, "kept_policies", looked)
            refused = replication.run("policy", "import", str(file), "--replace", *words)
        assert refused.exit_code == 1
        assert "policy sales was changed by somebody else meanwhile" in refused.err
        replication.ok("policy", "resume", "sales")
        assert replication.ok("policy", "export").out == whole


def test_an_imported_policy_of_what_is_not_there_is_refused(
    replication: Replication, tmp_path: Path
) -> None:
    """As one that is added: its first cycle would say so, at night. All are kept, or none."""
    whole = replication.ok("policy", "export").out
    mistyped = whole.replace('name = "sales"', 'name = "b"').replace(
        'database = "sales"', 'database = "salse"'
    )
    lost = whole.replace(replication.program.url, "sqlite:////nowhere/lost.db")
    file = tmp_path / "policies.toml"
    for text, why in (
        (f"{whole}\n{mistyped}", "did you mean sales"),
        (lost, "cannot be asked for its database"),
    ):
        file.write_text(text)
        for more in ((), ("--dry-run",)):
            answer = replication.run("policy", "import", str(file), "--replace", *more)
            assert answer.exit_code == 1, answer.err
            assert why in answer.err
            assert "--source-later" in answer.err
        assert replication.ok("policy", "export").out == whole
    replication.ok("policy", "import", str(file), "--replace", "--source-later")
    # What is kept already is not asked again: a source that is lost keeps nobody from an import.
    replication.ok("policy", "import", str(file))
    assert "nowhere" in replication.ok("policy", "export").out


def test_what_makes_no_sense_is_refused(replication: Replication) -> None:
    for words, why in (
        (("run",), "name policies, or give --all"),
        (("run", "sales", "--all"), "name policies, or give --all"),
        (("run", "sale"), "there is no policy sale; there are: sales"),
        (("run", "sales", "--every", "5"), "--every takes a number and a unit"),
        (("run", "sales", "--every", "0s"), "--every takes a second or more"),
        (("history", "sale"), "there is no policy sale"),
        (("policy", "add", "b", "--source", "postgresql://a:b@c/d"), "password in clear text"),
        (("policy", "add", "b", "--source", "thrift://c:1", "--source-set", "x"), "KEY=VALUE"),
        (
            (
                "policy",
                "add",
                "b",
                "--source",
                "thrift://c:1",
                "--source-set",
                "hive.repl.rootdr=x",
            ),
            "did you mean hive.repl.rootdir",
        ),
    ):
        answer = replication.run(*words)
        assert answer.exit_code != 0, words
        assert why in answer.err, (words, answer.err)


def test_without_its_password_a_cycle_fails_and_says_which(replication: Replication) -> None:
    url = "postgresql+psycopg://hive:${NO_SUCH_VARIABLE}@127.0.0.1:1/db"
    replication.ok("policy", "add", "b", "--source", url)
    answer = replication.run("run", "b")
    assert answer.exit_code == 1
    assert "NO_SUCH_VARIABLE" in replication.history("b")[0]["why"]


@pytest.mark.process
def test_a_named_policy_that_is_paused_or_removed_stops_no_other(replication: Replication) -> None:
    """Beside it the others go on, and it does when it is there again."""
    program = replication.program
    for name in ("gone", "idle"):
        root = f"{program.folder}/dumps-{name}"
        assert replication.add("default", "--into", name, "--root", root, name=name).exit_code == 0
    process = subprocess.Popen(
        [
            *command(), "repl", "run", "idle", "gone", "sales", "--every", "1s",
            "--format", "jsonl", "--metastore", STORE,
        ],
        cwd=program.folder,
        env=process_environment(program.environment),
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    rows = map(json.loads, process.stdout)
    try:
        _wait_for(rows, "sales", "replicated")
        replication.ok("policy", "remove", "gone")
        replication.ok("policy", "pause", "idle")
        _wait_for(rows, "idle", "paused")
        _wait_for(rows, "gone", "failed")
        _wait_for(rows, "sales", "nothing new")
        replication.ok("policy", "resume", "idle")
        _wait_for(rows, "idle", "nothing new")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def _wait_for(rows: Iterator[dict[str, Any]], policy: str, outcome: str) -> None:
    """Ends with the process, which is an error, too."""
    found = ((row["policy"], row["outcome"]) for row in itertools.islice(rows, 200))
    assert (policy, outcome) in found


@pytest.mark.process
def test_it_goes_on_until_it_is_told_to_stop(replication: Replication) -> None:
    """And a port tells of it meanwhile."""
    program = replication.program
    process = subprocess.Popen(
        [
            *command(), "repl", "run", "--all", "--every", "1s", "--metrics-port", "0",
            "--format", "jsonl", "--metastore", STORE,
        ],
        cwd=program.folder,
        env=process_environment(program.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if line.startswith("metrics at "))
        url = line.removeprefix("metrics at ").strip()
        deadline = time.monotonic() + 60
        while not (counts := scrape(url).of(CYCLES)) or not counts["sales", "nothing new"]:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert (process.returncode, counts["sales", "replicated"]) == (0, 1)
    assert [row["outcome"] for row in replication.history()][-1] == "replicated"


def test_a_source_that_drops_its_database_takes_the_replica_along_if_that_is_set(
    replication: Replication,
) -> None:
    replication.ok("run", "sales")
    replication.program.ok("repl", "end", "sales")
    replication.program.ok("sql", "-e", "DROP DATABASE sales CASCADE")
    refused = replication.run("run", "sales")
    assert refused.exit_code == 1
    assert "hms.bridge.repl.load.drop.database" in refused.out + refused.err
    there = ("sql", "-e", "SHOW DATABASES", "--metastore", STORE, *replication.settings)
    assert "sales" in replication.program.ok(*there).out
    allowed = ("--target-set", "hms.bridge.repl.load.drop.database=true")
    replication.ok("policy", "add", "sales", "--replace", *allowed)
    (dropped,) = replication.ok("run", "sales", "--format", "jsonl").json_lines
    assert (dropped["outcome"], dropped["kind"], dropped["events"]) == ("replicated", "drop", 1)
    assert "sales" not in replication.program.ok(*there).out
    (idle,) = replication.ok("run", "sales", "--format", "jsonl").json_lines
    assert idle["outcome"] == "nothing new"


def test_a_cycle_removes_old_dumps_if_that_is_set(replication: Replication) -> None:
    kept = ("--source-set", "hive.repl.retain.prev.dump.dir=true")
    replication.ok("policy", "remove", "sales")
    assert replication.add(*kept).exit_code == 0
    replication.ok("run", "sales")
    old = set(replication.program.dumps.glob("*/*"))
    replication.program.ok(
        "repl", "dump", "sales", "--bootstrap", "--keep-previous", "--wait", "0s", "--abort-writers"
    )
    there = ("--metastore", STORE, *replication.settings)
    replication.program.ok("sql", "-e", "DROP DATABASE sales CASCADE", *there)
    replication.ok("run", "sales")
    assert all(dump.exists() for dump in old)
    replication.ok("policy", "remove", "sales")
    ends = ("hive.repl.dumpdir.ttl=0s", "hive.repl.dumpdir.clean.freq=1h")
    words = [word for end in ends for word in ("--source-set", end)]
    assert replication.add(*kept, *words).exit_code == 0
    replication.ok("run", "sales")
    assert not any(dump.exists() for dump in old)
    assert list(replication.program.dumps.glob("*/*"))
