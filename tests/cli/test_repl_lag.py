"""`repl lag`: what a monitor is told, and with which exit code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as older_format

from hms_bridge.cli import lag_monitor
from hms_bridge.errors import MetastoreUnavailableError
from tests.support.busy_metastore import BusyMetastore
from tests.support.openmetrics import Exposition, read_exposition
from tests.support.policy_program import Replication
from tests.support.program import Answer

REPLICA = "sqlite:///dr/metastore.db"


def lag(busy: BusyMetastore, *words: str, databases: tuple[str, ...] = ("sales",)) -> Answer:
    return busy.program.run(
        "repl", "lag", *databases, "--metastore", REPLICA, "--source", busy.program.url, *words
    )


def row(answer: Answer) -> dict[str, Any]:
    (found,) = [json for json in answer.json_lines if json["database"] == "sales"]
    return found


def test_before_the_first_load_nobody_knows(busy: BusyMetastore) -> None:
    answer = lag(busy, "--format", "jsonl")
    assert answer.exit_code == 3
    assert (row(answer)["state"], row(answer)["rpo_seconds"]) == ("UNKNOWN", None)
    assert row(answer)["why"].startswith("nothing was loaded yet: 'repl run'")


def test_a_status_without_a_load_or_a_dump_says_so(busy: BusyMetastore) -> None:
    """Its figures alone would look like all being well."""
    words = ("repl", "status", "sales", "--source", busy.program.url, *busy.replica)
    here = busy.program.ok(*words).err
    assert "note: nothing was loaded yet" in here
    assert "no dump of it is below" not in here
    assert "note: no dump of it is below" in busy.program.ok(*words, "--root", "elsewhere").err


def test_what_other_databases_do_is_no_lag(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("sql", "-e", "CREATE DATABASE another")
    answer = lag(busy, "--format", "jsonl")
    found = row(answer)
    assert (answer.exit_code, found["state"]) == (0, "OK")
    assert (found["commits_behind"], found["changes_behind"], found["rpo_seconds"]) == (0, 0, 0)
    assert found["last_loaded"] is not None


def test_what_is_late_is_a_warning_and_then_an_alarm(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    time.sleep(1.1)  # events tell whole seconds
    found = row(lag(busy, "--format", "jsonl", "--bytes"))
    assert (found["state"], found["bytes_to_copy"]) == ("OK", 0)
    assert found["changes_behind"] >= 1
    assert found["rpo_seconds"] >= 1
    for words, code, state in (
        (("--warn", "0s"), 1, "WARNING"),
        (("--warn", "0s", "--critical", "0s"), 2, "CRITICAL"),
        (("--headroom", "100d"), 2, "CRITICAL"),
    ):
        answer = lag(busy, *words, "--format", "jsonl")
        assert (answer.exit_code, row(answer)["state"]) == (code, state)
    assert row(answer)["headroom_limit"] == "event log"
    assert "by the event log" in row(answer)["why"]


def test_a_person_sees_a_table(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    answer = lag(busy, databases=("sales", "absent"))
    head, first, second = answer.table
    assert head[0].startswith("database")
    assert "up to date" in " ".join(first)
    assert "UNKNOWN" in " ".join(second)
    assert answer.exit_code == 3


def test_a_replica_out_of_reach_can_run_out_of_time(busy: BusyMetastore) -> None:
    """Source and dumps tell the headroom all the same; nobody else counts down meanwhile."""
    gone = [
        "repl", "lag", "sales", "--metastore", "sqlite:///nowhere/metastore.db",
        "--source", busy.program.url, "--format", "jsonl",
    ]  # fmt: skip
    answer = busy.program.run(*gone)
    assert (answer.exit_code, row(answer)["state"]) == (3, "UNKNOWN")
    assert row(answer)["headroom_seconds"] > 0
    answer = busy.program.run(*gone, "--headroom", "1000d")
    assert (answer.exit_code, row(answer)["state"]) == (2, "CRITICAL")
    assert row(answer)["why"].startswith("incremental is lost in ")
    assert "nowhere" in row(answer)["why"]


def test_a_replica_that_is_gone_for_a_moment_is_looked_for_as_its_policy_says(
    replication: Replication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its dumps were looked for below the root of the settings, once the policy had been read."""
    replication.ok("policy", "add", "sales", "--replace", "--root", str(tmp_path / "own"))
    replication.end_writers()
    replication.ok("run", "sales")
    replication.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    roots, real = list[str](), lag_monitor.both_sides

    @contextmanager
    def gone(url: str | None, *more: Any) -> Iterator[Any]:
        if url is not None:
            raise MetastoreUnavailableError("gone for a moment")
        with real(url, *more) as looker:
            yield SimpleNamespace(
                look=lambda request: (roots.append(request.root), looker.look(request))[1]
            )

    monkeypatch.setattr(lag_monitor, "both_sides", gone)
    answer = replication.run("lag", "sales", "--source", replication.program.url)
    assert (answer.exit_code, "gone for a moment" in answer.out) == (3, True)
    assert [root.removeprefix("file:") for root in roots] == [str(tmp_path / "own")]


def test_a_source_that_is_not_there_is_unknown_and_no_warning(busy: BusyMetastore) -> None:
    answer = busy.program.run(
        "repl", "lag", "sales", "--metastore", REPLICA, "--source", "thrift://127.0.0.1:1",
        "--format", "jsonl",
    )  # fmt: skip
    assert answer.exit_code == 3
    assert "127.0.0.1" in row(answer)["why"]


def test_limits_that_make_no_sense(busy: BusyMetastore) -> None:
    for words, why in (
        (("--warn", "5h", "--critical", "1h"), "--critical is less than --warn"),
        (("--warn", "5"), "--warn takes a number and a unit"),
        (("--headroom", "soon"), "is no duration"),
    ):
        answer = lag(busy, *words)
        assert answer.exit_code != 0
        assert why in answer.err


def metrics(path: Path) -> Exposition:
    return read_exposition(path.read_text())


def test_metrics_are_what_is_told_in_json(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    time.sleep(1.1)  # events tell whole seconds
    file = Path("sales.prom")
    began = time.time()
    answer = lag(busy, "--warn", "0s", "--bytes", "--format", "jsonl", "--metrics", str(file))
    told, found = row(answer), metrics(file)
    replica = ("sales", REPLICA)
    assert answer.exit_code == 1
    assert found.one("hms_bridge_replica_state", *replica) == 1
    assert began <= found.one("hms_bridge_replica_looked_timestamp_seconds", *replica) + 0.001
    for metric, key in (
        ("hms_bridge_replica_rpo_seconds", "rpo_seconds"),
        ("hms_bridge_replica_behind_commits", "commits_behind"),
        ("hms_bridge_replica_behind_changes", "changes_behind"),
        ("hms_bridge_replica_to_copy_bytes", "bytes_to_copy"),
    ):
        assert found.of(metric) == {replica: told[key]}, key
    assert told["changes_behind"] >= 1
    assert told["rpo_seconds"] >= 1
    headrooms = found.of("hms_bridge_replica_headroom_seconds")
    assert headrooms.keys() == {(*replica, "event log"), (*replica, "archive's budget")}
    assert headrooms[*replica, "event log"] == told["headroom_seconds"]
    loaded = datetime.fromisoformat(told["last_loaded"]).timestamp()
    assert found.of("hms_bridge_replica_last_loaded_timestamp_seconds") == {replica: loaded}
    assert found.of("hms_bridge_replica_troubles") == {replica: 0}
    # node_exporter reads the older format, in which this must mean the same.
    older = [one for family in older_format(file.read_text()) for one in family.samples]
    assert {(one.name, one.labels["database"], one.value) for one in older} == {
        (name, labels[0], value)
        for name, values in found.values.items()
        for labels, value in values.items()
    }


def test_metrics_of_what_is_not_known_are_absent(busy: BusyMetastore) -> None:
    file = Path("all.prom")
    answer = lag(busy, "--metrics", str(file), databases=("sales", "absent", "SALES"))
    assert answer.exit_code == 3
    found = metrics(file)
    assert found.of("hms_bridge_replica_state") == {("sales", REPLICA): 3, ("absent", REPLICA): 3}
    for name in ("rpo_seconds", "behind_commits", "to_copy_bytes", "last_loaded_timestamp_seconds"):
        assert found.of(f"hms_bridge_replica_{name}") == {}


def test_metrics_take_the_place_of_older_ones_as_a_whole(busy: BusyMetastore) -> None:
    """Also where the source cannot be reached: what the last run found must not stand for now."""
    busy.program.ok("repl", "load", "sales", *busy.replica)
    folder = Path("textfiles")
    folder.mkdir()
    file = folder / "sales.prom"
    lag(busy, "--metrics", str(file))
    assert metrics(file).of("hms_bridge_replica_rpo_seconds")
    with file.open() as earlier:  # as the collector, in the middle of its reading
        beginning = earlier.read(10)
        answer = busy.program.run(
            "repl", "lag", "sales", "--metastore", REPLICA, "--metrics", str(file),
            "--source", "postgresql+psycopg://ann:secret@127.0.0.1:1/metastore",
        )  # fmt: skip
        rest = read_exposition(beginning + earlier.read())
    assert rest.of("hms_bridge_replica_rpo_seconds")
    assert answer.exit_code == 3
    assert "secret" not in file.read_text()
    assert metrics(file).of("hms_bridge_replica_state") == {("sales", REPLICA): 3}
    assert metrics(file).of("hms_bridge_replica_rpo_seconds") == {}
    assert [path.name for path in folder.iterdir()] == ["sales.prom"]
    reference = folder / "any"
    reference.touch()
    assert file.stat().st_mode == reference.stat().st_mode  # another user reads it


def test_metrics_that_cannot_be_written_are_unknown_to_the_monitor(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    answer = lag(busy, "--metrics", "absent/sales.prom", "--format", "jsonl")
    assert (answer.exit_code, row(answer)["state"]) == (3, "OK")
    assert "--metrics: absent/sales.prom cannot be written" in answer.err
    answer = lag(busy, "--metrics", "absent/sales.prom", "--warn", "0s", "--headroom", "100d")
    assert answer.exit_code == 2
    (folder := Path("folder.prom")).mkdir()
    assert lag(busy, "--metrics", str(folder)).exit_code == 2  # a usage error, as for any option
