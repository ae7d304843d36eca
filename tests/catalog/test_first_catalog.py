from __future__ import annotations

from sqlalchemy import insert, select

from hms_bridge.backend.schema.catalog_tables import CTLGS
from hms_bridge.catalog.catalogs import insert_catalog
from hms_bridge.model.catalog import Catalog
from tests.support.databases import memory_database


def test_a_catalog_follows_the_one_that_hives_script_made() -> None:
    """Which has the number 1, and no row in SEQUENCE_TABLE."""
    database = memory_database()
    with database.transaction(write=True) as connection:
        connection.execute(insert(CTLGS).values(CTLG_ID=1, NAME="hive", LOCATION_URI="TBD"))
        for name in ("x", "y"):
            insert_catalog(connection, Catalog(name=name, location="file:/x"))
        numbers = connection.execute(select(CTLGS.c.NAME, CTLGS.c.CTLG_ID)).all()
    database.close()
    assert dict(map(tuple, numbers)) == {"hive": 1, "x": 2, "y": 3}
