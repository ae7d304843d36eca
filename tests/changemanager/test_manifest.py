"""The manifest in memory keeps the port's promises."""

from __future__ import annotations

import pytest

from tests.changemanager.manifest_behaviour import ManifestBehaviour
from tests.support.archive_manifest import InMemoryManifest


class TestInMemoryManifest(ManifestBehaviour):
    @pytest.fixture
    def manifest(self) -> InMemoryManifest:
        return InMemoryManifest()
