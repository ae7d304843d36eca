"""hive.metastore.warehouse.external.dir: where external tables and databases lie, as in Hive."""

from __future__ import annotations

from pathlib import Path

from hms_bridge.config.reading import settings_from
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.service.open import open_local_metastore
from tests.support.databases import fresh_url


def _table(name: str, kind: str) -> Table:
    return Table(
        name=name,
        database_name="db",
        storage=Storage(columns=(Column(name="id", type="int"),)),
        type=kind,
        parameters={"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {},
    )


def test_external_tables_have_a_root_of_their_own(tmp_path: Path) -> None:
    settings = settings_from(
        {
            "hive.metastore.warehouse.dir": f"{tmp_path}/managed",
            "hive.metastore.warehouse.external.dir": f"{tmp_path}/external",
        }
    )
    service = open_local_metastore(fresh_url(tmp_path), settings=settings)
    service.create_database(Database(name="db"))
    service.create_table(_table("m", "MANAGED_TABLE"))
    service.create_table(_table("e", "EXTERNAL_TABLE"))
    assert service.get_database("db").location == f"file:{tmp_path}/external/db.db"
    assert service.get_database("default").location == f"file:{tmp_path}/external"
    places = {name: service.get_table("db", name).storage.location for name in ("m", "e")}
    service.close()
    assert places == {
        "m": f"file:{tmp_path}/managed/db.db/m",
        "e": f"file:{tmp_path}/external/db.db/e",
    }
    assert (tmp_path / "managed/db.db/m").is_dir()


def test_one_root_is_enough(tmp_path: Path) -> None:
    settings = settings_from({"hive.metastore.warehouse.dir": f"{tmp_path}/w"})
    assert settings.external_warehouse is None
