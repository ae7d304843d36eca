"""MetastoreService does what the port promises: on SQLite, and where HMS_BRIDGE_TEST_DATABASES
(URLs with blanks between them) points. Such a database must be empty, or this project's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.metastore import LocalMetastore
from hms_bridge.service.open import open_local_metastore
from tests.conformance.local_behaviour import LocalBehaviour
from tests.conformance.metastore_behaviour import MetastoreBehaviour
from tests.conformance.notification_behaviour import OwnEventBehaviour
from tests.support.databases import OTHER_URLS


@pytest.fixture(scope="module", params=["sqlite", *OTHER_URLS])
def metastore(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalMetastore]:
    folder: Path = tmp_path_factory.mktemp("metastore")
    url = f"sqlite:///{folder}/metastore.db" if request.param == "sqlite" else request.param
    service = open_local_metastore(
        url,
        settings=Settings(
            warehouse=str(folder / "warehouse"),
            archive=ArchiveSettings(root=str(folder / "cmroot")),
        ),
    )
    yield service
    service.close()


class TestMetastoreService(MetastoreBehaviour, LocalBehaviour, OwnEventBehaviour):
    """One service for all cases, as a server is."""
