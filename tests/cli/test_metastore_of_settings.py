"""Which metastore a verb takes: command line, --set, file, default; and that it says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hms_bridge.connect import open_local
from hms_bridge.server.serve import MetastoreServer
from tests.support.program import Program
from tests.support.program import run_here as run


@pytest.fixture
def served(program: Program) -> Iterator[str]:
    store = open_local(program.url)
    server = MetastoreServer(0, store.metastore)
    server.start()
    yield f"thrift://127.0.0.1:{server.port}"
    server.stop()
    store.metastore.close()


def site(path: Path, values: Mapping[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in values.items()
    )
    path.write_text(f"<configuration>{properties}</configuration>")
    return path


DERBY = {"javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=metastore_db"}
POSTGRES = {
    "javax.jdo.option.ConnectionURL": "jdbc:postgresql://127.0.0.1:1/m?connectTimeout=1",
    "javax.jdo.option.ConnectionUserName": "hive",
    "javax.jdo.option.ConnectionPassword": "secret",
}


def test_servers_of_the_file_are_taken_and_named(served: str, tmp_path: Path) -> None:
    path = site(tmp_path / "hive-site.xml", {"hive.metastore.uris": served, **DERBY})
    answer = run("txns", "--config", str(path), "--format", "json")
    assert (answer.exit_code, answer.json) == (0, [])
    assert f"metastore {served} (hive.metastore.uris of {path})" in answer.err
    renamed = site(tmp_path / "hive-site.xml", {"metastore.thrift.uris": f" {served} ,"})
    assert f"metastore {served} (" in run("txns", "--config", str(renamed)).err


def test_the_command_line_wins_over_set_and_set_over_the_file(
    program: Program, served: str, tmp_path: Path
) -> None:
    path = site(tmp_path / "hive-site.xml", {"metastore.thrift.uris": "thrift://127.0.0.1:1"})
    config = ("--config", str(path))
    answer = run("txns", *config, "--metastore", program.url)
    assert answer.exit_code == 0
    assert "metastore" not in answer.err
    answer = run("txns", *config, "--set", f"hive.metastore.uris={served}")
    assert answer.exit_code == 0
    assert f"metastore {served} (hive.metastore.uris of --set)" in answer.err


def test_a_verb_that_needs_the_database_takes_it_and_shows_no_password(
    served: str, tmp_path: Path
) -> None:
    path = site(tmp_path / "hive-site.xml", {"hive.metastore.uris": served, **POSTGRES})
    for words in (("cleaner", "plan"), ("cm", "pins"), ("schema", "info"), ("initiator", "plan")):
        answer = run(*words, "--config", str(path))
        assert answer.exit_code == 1, words
        assert (
            "metastore postgresql+psycopg://hive:***@127.0.0.1:1/m?connect_timeout=1 "
            f"(javax.jdo.option.ConnectionURL of {path})"
        ) in answer.err
        assert "secret" not in answer.err


def test_txns_abort_takes_what_was_said_before_or_after_it(
    program: Program, served: str, tmp_path: Path
) -> None:
    path = site(tmp_path / "hive-site.xml", {"hive.metastore.uris": served})
    config = ("--config", str(path))
    for words in (("txns", *config, "abort", "99"), ("txns", "abort", "99", *config)):
        answer = run(*words)
        assert "no open transaction 99" in str(answer.err), words
        assert answer.err.count(f"metastore {served} ") == 1
    given = ("--metastore", "thrift://127.0.0.1:1")
    answer = run("txns", *given, "abort", "99", *config, "--set", "hive.metastore.uris=")
    assert "127.0.0.1:1" in answer.err


def test_a_derby_database_is_refused_where_it_would_be_opened(tmp_path: Path) -> None:
    path = site(tmp_path / "hive-site.xml", DERBY)
    answer = run("txns", "--config", str(path))
    assert answer.exit_code == 1
    assert "Derby" in answer.err and "--metastore thrift://" in answer.err
    assert "Traceback" not in answer.err


def test_a_file_that_names_none_is_said_to(program: Program, tmp_path: Path) -> None:
    path = site(tmp_path / "hive-site.xml", {})
    answer = run("txns", "--config", str(path))
    assert answer.exit_code == 0
    assert f"metastore sqlite:///metastore.db (the default: {path} names no database)" in answer.err
    uris = site(tmp_path / "hive-site.xml", {"hive.metastore.uris": "thrift://127.0.0.1:1"})
    answer = run("cm", "pins", "--config", str(uris))
    assert "names no database, only servers" in answer.err
    assert run("txns").err.strip() == "(none)"


def test_hive_s_own_directory_is_looked_into(served: str, tmp_path: Path) -> None:
    path = site(tmp_path / "conf" / "hive-site.xml", {"hive.metastore.uris": served})
    environment = {"HIVE_CONF_DIR": str(path.parent)}
    answer = run("txns", environment=environment)
    assert answer.exit_code == 0
    assert f"settings of {path} (found by the environment)" in answer.err
    assert f"metastore {served} " in answer.err
    other = site(tmp_path / "other.xml", {})
    answer = run("txns", "--config", str(other), environment=environment)
    assert "HIVE_CONF_DIR" not in answer.err
    assert run("txns", environment={"HIVE_CONF_DIR": str(tmp_path / "absent")}).exit_code == 0


def test_a_misspelt_setting_of_a_file_is_named_once(program: Program, tmp_path: Path) -> None:
    given = {"hive.repl.cm.retian": "10d", "hive.metastore.server.min.threads": "9"}
    path = site(tmp_path / "hive-site.xml", given)
    config = ("--config", str(path))
    answer = run("txns", "--metastore", program.url, *config, "abort", "99", *config)
    warning = "hive.repl.cm.retian is no setting and does nothing; did you mean "
    assert answer.err.splitlines().count(f"{path}: {warning}hive.repl.cm.retain?") == 1
    assert "min.threads" not in answer.err
