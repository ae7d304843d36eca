"""What a server does with its metastore before it answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.cli.serve_daemons import AskedDaemons
from hms_bridge.cli.serve_parts import ServeRequest, prepare_store, say_ready
from hms_bridge.config.access import AccessSettings
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected_locally, install_schema
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.privilege import Principal
from hms_bridge.server.gate import Gate
from hms_bridge.spark.request import SparkRequest

ANN = Principal("ann", PrincipalType.USER)


def test_administrators_are_named_where_the_tables_were_there_already(tmp_path: Path) -> None:
    """So it is in each database but SQLite: "schema init" makes the tables, not the server."""
    settings = Settings(warehouse=str(tmp_path / "warehouse"))
    archive = replace(settings.archive, root=str(tmp_path / "cmroot"))
    settings = replace(settings, archive=archive)
    url = f"sqlite:///{tmp_path}/metastore.db"
    install_schema(url, settings)
    with connected_locally(url, replace(settings, admins=("ann",)), is_created=False) as store:
        assert store.metastore.get_members_of_role("admin") == ()
        prepare_store(store)
        (granted,) = store.metastore.get_members_of_role("admin")
    assert granted.principal == ANN


@pytest.mark.parametrize(
    ("host", "address"), [("::1", "thrift://[::1]:9083"), ("db", "thrift://db:9083")]
)
def test_the_address_that_is_said_is_one_that_clients_take(
    host: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    daemons = AskedDaemons(is_worker=False, is_initiator=False, is_cleaner=False, pool_name=None)
    request = ServeRequest(
        metastore_url="sqlite://", settings=Settings(), host=host, is_beyond_this_machine=False,
        port=0, gate=Gate(AccessSettings(), ""), metrics_port=None, daemons=daemons,
        spark=SparkRequest(),
    )  # fmt: skip
    say_ready(request, 9083)
    assert f"serving {address} over sqlite://" in capsys.readouterr().err
