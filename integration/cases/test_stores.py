"""PostgreSQL, MariaDB, HDFS and S3 start, do one real thing, and stop."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

from hms_bridge.connect import open_local
from hms_bridge.errors import BackendError
from hms_bridge.model.txn import OpenTxnsRequest
from hms_bridge.service.open import open_local_metastore
from integration.referees.errors import RefereeError
from integration.referees.hdfs import Hdfs
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurProgram, OurServer
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from integration.referees.s3 import S3
from integration.referees.schematool import VALID, SchemaTool


def test_postgresql_keeps_rows(postgresql: PostgreSql) -> None:
    database = postgresql.database("round_trip")
    database.execute("create table t (id bigint primary key, v text)")
    database.execute("insert into t values (1, 'ä'), (2, null)")
    assert database.query("select * from t where id < %s order by id", 3) == [
        {"id": 1, "v": "ä"},
        {"id": 2, "v": None},
    ]


def test_postgresql_lets_many_connect(postgresql: PostgreSql) -> None:
    database = postgresql.database("settings")
    assert database.query("show max_connections") == [{"max_connections": "300"}]
    assert postgresql.version.startswith("15.")


def test_postgresql_copies_a_template(postgresql: PostgreSql) -> None:
    template = postgresql.database("template")
    template.execute("create table t (id int)")
    copy = postgresql.database("copy", template=template)
    assert copy.query("select count(*) as n from t") == [{"n": 0}]


def test_verbs_of_ours_wait_for_postgresql_to_start_again(
    workplace: Workplace, tmp_path: Path
) -> None:
    """As a database server that is updated, or fails over, does."""
    own = PostgreSql(workplace)
    request = OpenTxnsRequest(user="u", host="h")
    metastore = open_local_metastore(
        own.database("outage").sqlalchemy_url, warehouse=str(tmp_path / "warehouse")
    )
    try:
        (before,) = metastore.open_txns(request)
        own.stop()
        with ThreadPoolExecutor(2) as pool:
            opened = pool.submit(metastore.open_txns, request)
            listed = pool.submit(metastore.get_open_txns)
            with pytest.raises(TimeoutError):
                opened.result(timeout=5)
            own.start_again()
            (after,) = opened.result(timeout=60)
            assert before in {txn.id for txn in listed.result(timeout=60).txns}
        # PostgreSQL leaves ids out when it was killed; those below a young row count as open.
        assert {before, after} <= {txn.id for txn in metastore.get_open_txns().txns}
        own.stop()
        began = time.monotonic()
        with pytest.raises(BackendError, match="it was gone for 30 s"):
            metastore.get_open_txns()
        assert 29 < time.monotonic() - began < 60
    finally:
        metastore.close()
        own.stop()


def test_no_verb_makes_a_schema_in_a_server(
    postgresql: PostgreSql, workplace: Workplace, tmp_path: Path
) -> None:
    """A mistyped URL would look like an empty metastore, and leave 80 tables there."""
    database = postgresql.database("mistyped")
    tables = "select count(*) as n from pg_tables where schemaname = 'public'"
    words = ("--database", database.sqlalchemy_url)
    ours = OurProgram(workplace, "")
    empty = ["--metastore", database.sqlalchemy_url]
    for verb in (
        ["serve", "--port", "0", *words],
        ["sql", *empty, "-e", "show tables"],
        ["repl", "load", "d", "--root", str(tmp_path), *empty],
    ):
        with pytest.raises(RefereeError, match="no metastore schema; run 'hms-bridge schema init'"):
            ours.verb(*verb)
    with pytest.raises(BackendError, match="no metastore schema; run 'hms-bridge schema init'"):
        open_local(database.sqlalchemy_url)  # whatever adopts, and every other verb
    assert database.query(tables) == [{"n": 0}]
    ours.verb("schema", "init", *words)
    OurServer(workplace, database.sqlalchemy_url).stop()


def test_hives_schematool_finds_its_whole_schema_in_ours(
    postgresql: PostgreSql, workplace: Workplace
) -> None:
    database = postgresql.database("validated")
    OurProgram(workplace, "").verb("schema", "init", "--database", database.sqlalchemy_url)
    assert VALID in SchemaTool(workplace, "4.0.1").run(database, "-validate")


def test_mariadb_keeps_rows(mariadb: MariaDb) -> None:
    database = mariadb.database("round_trip")
    database.query("create table t (id bigint primary key, v text character set utf8mb4)")
    database.query("insert into t values (1, 'ä'), (2, null)")
    assert database.query("select * from t where id < %s order by id", 3) == [
        {"id": 1, "v": "ä"},
        {"id": 2, "v": None},
    ]
    assert "MariaDB" in mariadb.version


def test_hdfs_keeps_files_and_says_their_checksum(hdfs: Hdfs, tmp_path: Path) -> None:
    local, back = tmp_path / "local", tmp_path / "back"
    local.write_bytes(b"hello")
    hdfs.shell("-mkdir", "-p", "/there")
    hdfs.shell("-put", local, "/there/file")
    hdfs.shell("-get", "/there/file", back)
    assert back.read_bytes() == b"hello"
    # int32 bytes per CRC, int64 CRCs per block, MD5: as the ChangeManager writes it into its names
    answer = hdfs.shell("-checksum", "/there/file").split()
    assert answer[1] == "MD5-of-0MD5-of-512CRC32C"
    assert re.fullmatch(r"00000200" + "0" * 16 + r"[0-9a-f]{32}", answer[2])


def test_hdfs_keeps_extended_attributes(hdfs: Hdfs, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    hdfs.shell("-put", tmp_path / "f", "/attributed")
    hdfs.shell("-setfattr", "-n", "user.original-loc", "-v", "/from/here", "/attributed")
    assert 'user.original-loc="/from/here"' in hdfs.shell("-getfattr", "-d", "/attributed")


def test_hdfs_is_reached_over_http(hdfs: Hdfs) -> None:
    files = fsspec.filesystem("webhdfs", host="127.0.0.1", port=hdfs.http_port, user="root")
    with files.open("/over-http", "wb") as target:
        target.write(b"hello")
    assert files.cat_file("/over-http") == b"hello"


def test_s3_keeps_objects(s3: S3) -> None:
    files = fsspec.filesystem("s3", skip_instance_cache=True, **s3.storage_options)
    files.mkdir("warehouse")
    files.pipe_file("warehouse/t/delta_0000001_0000001_0000/bucket_00000", b"orc")
    assert files.find("warehouse") == ["warehouse/t/delta_0000001_0000001_0000/bucket_00000"]
    assert files.cat_file("warehouse/t/delta_0000001_0000001_0000/bucket_00000") == b"orc"


@pytest.mark.parametrize("name", ["postgres", "mariadbd"])
def test_servers_do_not_run_as_root(
    workplace: Workplace, postgresql: PostgreSql, mariadb: MariaDb, name: str
) -> None:
    """Those of this run: others may have their own."""
    owners = {
        process.stat().st_uid
        for process in Path("/proc").glob("[0-9]*")
        if _text_of(process, "comm").strip() == name
        and str(workplace.data_folder) in _text_of(process, "cmdline")
    }
    assert owners
    assert 0 not in owners


def _text_of(process: Path, name: str) -> str:
    try:
        return (process / name).read_text()
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return ""
