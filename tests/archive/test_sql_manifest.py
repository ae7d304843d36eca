"""The manifest in SQL does what every manifest does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from changemanager.manifest import ArchiveManifest
from hms_bridge.service.open import open_local_metastore
from tests.changemanager.manifest_behaviour import ManifestBehaviour
from tests.support.databases import fresh_url


class TestSqlManifest(ManifestBehaviour):
    """On SQLite."""

    @pytest.fixture
    def manifest(self, tmp_path: Path) -> Iterator[ArchiveManifest]:
        service = open_local_metastore(fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"))
        yield service.manifest
        service.close()
