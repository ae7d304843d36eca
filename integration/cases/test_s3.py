"""hms-bridge on an object store: warehouse, archive and dumps, by Hadoop's settings for S3A."""

from __future__ import annotations

import json
from collections.abc import Iterator

import fsspec
import pytest

from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.reading import settings_from
from hms_bridge.connect import connected
from integration.referees.errors import RefereeError
from integration.referees.ours import OurProgram, OurServer, OurSession
from integration.referees.processes import Workplace
from integration.referees.s3 import ACCESS_KEY, REGION, S3, SECRET_KEY
from integration.referees.spark import OurSparkDriver
from tests.support.table_rows import acid_rows

pytestmark = pytest.mark.s3

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def _settings(s3: S3) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": f"127.0.0.1:{s3.port}",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.access.key": ACCESS_KEY,
        "fs.s3a.secret.key": SECRET_KEY,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        "hive.repl.cmrootdir": "s3a://lake/cmroot",
        "hive.repl.rootdir": "s3://lake/repl",
        "hms.bridge.repl.load.roots": "s3a://lake/warehouse,s3a://lake/cmroot",
    }


@pytest.fixture(scope="module")
def bucket(s3: S3) -> fsspec.AbstractFileSystem:
    """The store through a client that is not ours."""
    files = fsspec.filesystem(
        "s3", skip_instance_cache=True, use_listings_cache=False, **s3.storage_options
    )
    files.mkdir("lake")
    return files


@pytest.fixture(scope="module")
def driver(workplace: Workplace) -> Iterator[OurSparkDriver]:
    started = OurSparkDriver(workplace)
    yield started
    started.stop()


def test_rows_live_through_compaction_cleaning_and_replication(
    workplace: Workplace, s3: S3, bucket: fsspec.AbstractFileSystem, driver: OurSparkDriver
) -> None:
    settings = _settings(s3)
    database = f"sqlite:///{workplace.folder('s3-site')}/metastore.db"
    server = OurServer(workplace, database, warehouse="s3a://lake/warehouse", settings=settings)
    hadoop = settings_from(settings, "the case").hadoop
    session = OurSession(driver, server.uri, hadoop)
    for statement in (
        "CREATE DATABASE story",
        f"CREATE TABLE story.t (id INT, v STRING) {ACID}",
        "INSERT INTO story.t VALUES (1, 'a'), (2, 'b')",
        "UPDATE story.t SET v = 'B' WHERE id = 2",
    ):
        session.sql(statement)
    replica = f"sqlite:///{workplace.folder('s3-replica')}/metastore.db"
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]

    def verb(*arguments: str, metastore: str = database, home: str = "warehouse") -> str:
        place = ("--set", f"hive.metastore.warehouse.dir=s3a://lake/{home}")
        return OurProgram(workplace, metastore).run(*arguments, *words, *place)

    verb("repl", "dump", "story")
    at_dump = _rows(settings, database)
    session.sql("DELETE FROM story.t WHERE id = 1")
    verb("compact", "story.t", "major")
    assert "became base_0000003" in (session.work() or "nothing")
    told = verb("cleaner", "run", "--format", "json")
    left = bucket.find("lake/warehouse/story.db/t")
    assert {name.split("/")[4].partition("_v")[0] for name in left} == {"base_0000003"}, told
    archived = [name for name in bucket.find("lake/cmroot") if "/.cm-metastore-" not in name]
    assert len(archived) == 5, "four buckets, and the one text of all _orc_acid_version"
    verb("schema", "init", metastore=replica, home="replica")
    verb("repl", "load", "story", metastore=replica, home="replica")
    assert _rows(settings, replica) == at_dump
    (policy,) = (
        row["holder"]
        for row in json.loads(verb("cm", "pins", "--format", "json"))
        if row["kind"] == "policy"
    )
    verb("cm", "release", policy)  # else the next dump's files are kept
    purged = json.loads(verb("cm", "purge", "--format", "json", "--set", "hive.repl.cm.retain=1ms"))
    assert {row["what"] for row in purged} == {"deleted"}
    assert [name for name in bucket.find("lake/cmroot") if "/.cm-metastore-" not in name] == []
    server.stop()


def test_an_upload_that_fails_leaves_neither_object_nor_parts(
    s3: S3, bucket: fsspec.AbstractFileSystem
) -> None:
    resolve = file_systems(settings_from(_settings(s3)))
    place = resolve("s3a://lake/unfinished")

    def chunks() -> Iterator[bytes]:
        for _ in range(3):
            yield bytes(30 << 20)
        raise OSError("the source went away")

    with pytest.raises(OSError, match="went away"):
        place.volume.write_new(place.path, chunks())
    assert not bucket.exists("lake/unfinished")
    assert not bucket.call_s3("list_multipart_uploads", Bucket="lake").get("Uploads")


def test_a_store_that_does_not_answer_is_told_in_seconds(workplace: Workplace, s3: S3) -> None:
    settings = _settings(s3) | {"fs.s3a.endpoint": "127.0.0.1:1"}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with pytest.raises(RefereeError, match=r"S3 cannot be used: .*check fs\.s3a\.endpoint") as told:
        OurProgram(workplace, "sqlite:///none.db").verb("repl", "verify", "s3a://lake/x", *words)
    assert "Traceback" not in str(told.value)


def _rows(settings: dict[str, str], metastore: str) -> list[object]:
    chosen = settings_from(settings | {"hive.metastore.warehouse.dir": "s3a://lake/unused"})
    with connected(metastore, chosen) as store:
        return sorted(acid_rows(store, file_systems(chosen), "story", "t"), key=str)
