"""Settings that say how file systems are reached, and where the purge puts what stays."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.filesystem.webhdfs import WebHdfsVolume
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.reading import settings_from
from hms_bridge.errors import ConfigError
from tests.support.busy_metastore import copy_golden, opened
from tests.support.program import Program, serving

OLD = ("--set", "hive.repl.cm.retain=1ms")
ADDRESSES = "hms.bridge.webhdfs.addresses"


def test_hdfs_is_spoken_to_over_http_where_an_address_is_known() -> None:
    settings = settings_from(
        {ADDRESSES: "dr=h1:9870, prod:8020 = h2:50070", "hms.bridge.hdfs.client": "http"}
    )
    assert settings.hadoop.web_addresses == {"dr": "h1:9870", "prod:8020": "h2:50070"}
    for resolve in (file_systems(settings), pickle.loads(pickle.dumps(file_systems(settings)))):
        for uri, address in (("hdfs://dr/w/t", "h1:9870"), ("hdfs://prod:8020/w", "h2:50070")):
            location = resolve(uri)
            assert location.uri == uri
            assert isinstance(location.volume, WebHdfsVolume)
            assert location.volume.fs.addresses == (address,)
        assert resolve("hdfs://dr/a").volume is resolve("hdfs://dr/b").volume


@pytest.mark.parametrize("text", ["dr", "dr=", "=h:1", "dr=h", "dr=h:port", "hdfs://dr=h:9870"])
def test_malformed_addresses_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=rf"site\.xml: {ADDRESSES} is .*HOST:PORT"):
        settings_from({ADDRESSES: text}, "site.xml")


def test_bare_places_on_a_cluster_are_those_of_hive() -> None:
    given = {"fs.defaultFS": "hdfs://nn:8020", "hms.bridge.hadoop.user": "me"}
    settings = settings_from({**given, "hive.repl.rootdir": "/r"})
    assert settings.warehouse == "hdfs://nn:8020/user/hive/warehouse"
    assert settings.archive.root == "hdfs://nn:8020/user/me/cmroot"
    assert settings.repl.root == "hdfs://nn:8020/r"


def on_no_cluster(program: Program) -> Program:
    """Bare paths are of an HDFS that nobody serves, which shows at the first try."""
    values = {"fs.defaultFS": "hdfs://localhost:1", "dfs.client.failover.max.attempts": "1"}
    properties = (
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in values.items()
    )
    site = program.folder / "core-site.xml"
    site.write_text(f"<configuration>{''.join(properties)}</configuration>")
    return replace(program, settings={"hive.repl.rootdir": f"file:{program.dumps}"})


def test_a_relative_archive_on_a_cluster_is_refused_by_name(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = on_no_cluster(program)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(program.folder))
    words = ("serve", "--port", "0", "--warehouse", "hdfs://localhost:1/w")
    relative = program.run(*words, "--set", "hive.repl.cmrootdir=cmroot")
    assert relative.exit_code == 1
    assert "hive.repl.cmrootdir is 'cmroot'; with fs.defaultFS hdfs://" in relative.err
    unreachable = program.run(*words)
    assert unreachable.exit_code == 1
    assert unreachable.err.startswith("error: HDFS cannot be reached: ")
    assert "hdfs://localhost:1/" in unreachable.err


@pytest.mark.process
def test_without_an_archive_no_place_is_asked_of_a_cluster(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that archives nothing starts, and answers, while HDFS does not."""
    program = on_no_cluster(program)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(program.folder))
    words = ("--port", "0", "--warehouse", "hdfs://localhost:1/w")
    with serving(program, *words, "--set", "hive.repl.cm.enabled=false") as server:
        assert server.wait_until_ready().startswith("thrift://")


def test_a_purge_moves_what_was_dropped_without_purge_into_the_trash(program: Program) -> None:
    directory = copy_golden("g01_insert/01-three-inserts", program.warehouse / "s.db" / "orders")
    program.ok("table", "adopt", str(directory), "--name", "s.orders")
    program.ok("repl", "dump", "s")
    with opened(program) as store:
        store.metastore.drop_table("s", "orders", is_data_deleted=True)
    names = {row["name"] for row in program.ok("cm", "ls", "--format", "json").json}
    assert names
    for holder in [row["holder"] for row in program.ok("cm", "pins", "--format", "json").json]:
        program.ok("cm", "release", holder)

    def decisions(*words: str) -> set[str]:
        words = ("cm", "purge", *OLD, *words, "--dry-run", "--format", "json")
        return {row["what"] for row in program.ok(*words).json}

    trash = program.folder / "trash"
    with_trash = ("--set", f"hms.bridge.cm.trash.dir={trash}")
    assert decisions() == {"no trash"}
    assert decisions(*with_trash) == {"trash"}
    program.ok("cm", "purge", *OLD, *with_trash)
    assert [one for one in program.cmroot.iterdir() if one.name[0] != "."] == []
    assert {one.name for one in Path(f"{trash}{program.cmroot}").iterdir()} == names


def test_a_trash_inside_of_the_archive_is_refused(program: Program) -> None:
    inside = f"hms.bridge.cm.trash.dir={program.cmroot}/trash"
    refused = program.run("cm", "purge", "--set", inside)
    assert refused.exit_code == 1
    assert "cmroot" in refused.err
