"""What a server does with its metastore before it answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hms_bridge.cli.serve_parts import prepare_store
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected_locally, install_schema
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.privilege import Principal

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
