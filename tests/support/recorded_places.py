"""Where recorded calls have their files: below a folder, not where the real Hive had them."""

from __future__ import annotations

from pathlib import Path

from changemanager.location import FsspecResolver, Location

RECORDED = "file:/warehouse/"
RECORDED_ROOTS = (f"{RECORDED}golden", f"{RECORDED}golden-ext")
"""Its warehouses."""


class RecordedPlaces:
    """Resolves them; all other places are as they are."""

    def __init__(self, folder: Path) -> None:
        self._inside = f"file:{folder}/elsewhere/"
        self._resolve = FsspecResolver()

    def __call__(self, text: str) -> Location:
        found = self._resolve(text.replace(RECORDED, self._inside))
        return Location(text, found.path, found.volume)
