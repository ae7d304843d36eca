"""MetastoreService on SQLite does what the port promises."""

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


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMetastore]:
    folder: Path = tmp_path_factory.mktemp("metastore")
    service = open_local_metastore(
        f"sqlite:///{folder}/metastore.db",
        settings=Settings(
            warehouse=str(folder / "warehouse"),
            archive=ArchiveSettings(root=str(folder / "cmroot")),
        ),
    )
    yield service
    service.close()


class TestMetastoreService(MetastoreBehaviour, LocalBehaviour, OwnEventBehaviour):
    """One service for all cases, as a server is."""
