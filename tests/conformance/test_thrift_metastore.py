"""The client over a real socket, before our server, does what the port promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.metastore import Metastore
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.service.open import open_local_metastore
from tests.conformance.metastore_behaviour import MetastoreBehaviour
from tests.conformance.notification_behaviour import OwnEventBehaviour
from tests.support.databases import OTHER_URLS


@pytest.fixture(scope="module", params=["sqlite", *OTHER_URLS])
def metastore(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Metastore]:
    folder: Path = tmp_path_factory.mktemp("served")
    service = open_local_metastore(
        f"sqlite:///{folder}/metastore.db" if request.param == "sqlite" else request.param,
        settings=Settings(
            warehouse=str(folder / "warehouse"),
            archive=ArchiveSettings(root=str(folder / "cmroot")),
        ),
    )
    with (
        MetastoreServer(0, service) as server,
        ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}") as client,
    ):
        yield client
    service.close()


class TestThriftMetastore(MetastoreBehaviour, OwnEventBehaviour):
    """One server and one client for all cases."""
