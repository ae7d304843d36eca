"""PyIceberg's Hive catalog as it is, before our server."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.types import StringType

from tests.support.served_metastore import ServedMetastore, served_metastore

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": pa.array(["a", "b", None])})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("pyiceberg")) as served:
        yield served


@pytest.fixture(scope="module")
def catalog(served: ServedMetastore) -> HiveCatalog:
    return HiveCatalog("ours", uri=served.uri, warehouse=f"file://{served.warehouse}")


def test_namespaces(catalog: HiveCatalog) -> None:
    catalog.create_namespace("spaces", {"comment": "some", "owner": "bob"})
    assert ("spaces",) in catalog.list_namespaces()
    assert catalog.load_namespace_properties("spaces")["comment"] == "some"
    catalog.update_namespace_properties("spaces", updates={"k": "v"})
    assert catalog.load_namespace_properties("spaces")["k"] == "v"
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("spaces")
    catalog.drop_namespace("spaces")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("spaces")


def test_tables_are_created_written_read_renamed_and_dropped(catalog: HiveCatalog) -> None:
    catalog.create_namespace("berg")
    table = catalog.create_table("berg.t", schema=ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("berg.t", schema=ROWS.schema)
    table.append(ROWS)  # takes and gives back a Hive lock
    table.append(ROWS.slice(0, 1))
    assert catalog.load_table("berg.t").scan().to_arrow().num_rows == 4
    with table.update_schema() as update:
        update.add_column("w", StringType())
    assert "w" in catalog.load_table("berg.t").schema().column_names
    assert catalog.list_tables("berg") == [("berg", "t")]
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("berg")
    catalog.rename_table("berg.t", "berg.moved")
    assert catalog.load_table("berg.moved").scan().to_arrow().num_rows == 4
    catalog.drop_table("berg.moved")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("berg.moved")
    catalog.drop_namespace("berg")


def test_no_lock_is_left(served: ServedMetastore) -> None:
    assert served.metastore.show_locks() == ()
