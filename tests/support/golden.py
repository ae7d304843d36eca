"""Finds what a real Hive wrote, and hands it to tests stage by stage."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.markers import DataFormat, parse_metadata
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList

CHECKOUT = Path(__file__).resolve().parents[2]
OWN = CHECKOUT / "tests" / "golden"


@cache
def acid_goldens() -> Path:
    """The project's own ACID tables, a folder a scenario; each is packed in tests/golden/acid."""
    archives = sorted((OWN / "acid").glob("*.tar.gz"))
    digest = sha256(b"".join(archive.read_bytes() for archive in archives)).hexdigest()[:16]
    folder = OWN.resolve().parents[1] / ".cache" / "golden" / digest
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as new:
            for archive in archives:
                unpack(archive, Path(new) / "acid")
            with suppress(OSError):  # another worker was quicker
                (Path(new) / "acid").rename(folder)
    return folder


def unpack(archive: Path, folder: Path) -> None:
    """All that an archive of goldens has, below a folder."""
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        packed.extractall(folder)


def golden_roots(kind: str) -> list[Path]:
    """Folders of one kind (`acid`, `repl`, `wire`): the project's own, then the shared one.

    The shared one is looked for where HMS_BRIDGE_SHARED points, else beside the checkout; it holds
    more, and tests must pass without it.
    """
    told = os.environ.get("HMS_BRIDGE_SHARED")
    beside = [CHECKOUT.parent / "shared", CHECKOUT.parent.parent / "shared"]
    shared = [Path(told)] if told else beside
    own = acid_goldens() if kind == "acid" else OWN / kind
    found = [own, *(folder / "golden" / kind for folder in shared)]
    return [folder for folder in found if folder.is_dir()][:2]


@dataclass(frozen=True)
class GoldenStage:
    """One table at one moment, as real Hive left it."""

    folder: Path

    def __str__(self) -> str:
        return f"{self.scenario}/{self.name}"

    @property
    def scenario(self) -> str:
        return self.folder.parent.name

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def files(self) -> Path:
        """The table's directory."""
        return self.folder / "files"

    @cached_property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return found

    @cached_property
    def rows(self) -> list[dict[str, Any]] | None:
        """What Hive read, in its order; None if Hive failed to read."""
        if not self.has_rows:
            return None
        plain, packed = self._rows_files
        text = (
            plain.read_text() if plain.exists() else gzip.decompress(packed.read_bytes()).decode()
        )
        return [json.loads(line) for line in text.splitlines()]

    @property
    def has_rows(self) -> bool:
        """Whether Hive read the table. Cheap, for who collects tests."""
        return any(file.exists() for file in self._rows_files)

    @property
    def _rows_files(self) -> tuple[Path, Path]:
        return self.folder / "rows.jsonl", self.folder / "rows.jsonl.gz"

    @property
    def is_readable(self) -> bool:
        """Whether Hive could read the table (it cannot read some types that it writes)."""
        return "read_error" not in self.state

    @property
    def kind(self) -> str:
        """`full_acid`, `insert_only` or `non_acid`."""
        return str(self.state["kind"])

    @property
    def table(self) -> str:
        return str(self.state["table"])

    @property
    def is_bucketed(self) -> bool:
        return bool(self.state["metastore_table"]["bucket_columns"])

    @property
    def txns(self) -> ValidTxnList:
        return ValidTxnList.parse(self.state["valid_txn_list"])

    @property
    def write_ids(self) -> ValidWriteIdList:
        """The list that a reader used."""
        return ValidWriteIdList.parse(self.state["valid_write_id_list_under_txn_list"])

    @property
    def partitions(self) -> list[str | None]:
        """Paths of the partitions that the metastore knows; [None] for an unpartitioned table."""
        if not self.state["metastore_table"]["partition_columns"]:
            return [None]
        return [partition["location"] for partition in self.state["partitions"]]

    def root(self, partition: str | None) -> str:
        return str(self.files if partition is None else self.files / partition)

    def listing(self, partition: str | None) -> DirectoryListing:
        """The directory as state.json tells it (what no file shows is not in it)."""
        prefix = "" if partition is None else f"{partition}/"
        entries = {
            entry["path"].removeprefix(prefix): entry
            for entry in self.state["files"]
            if entry["path"].startswith(prefix)
        }

        def data_format(path: str) -> DataFormat:
            return parse_metadata(entries[path]["content"].encode())

        def is_raw(path: str) -> bool:
            schema = entries[path].get("orc", {}).get("schema", "")
            return not schema.startswith("struct<operation:")

        return DirectoryListing.build(
            self.root(partition),
            files=[
                ListedFile(path=path, size_bytes=entry["size"]) for path, entry in entries.items()
            ],
            data_format=data_format,
            is_raw=is_raw,
            is_insert_only=self.kind == "insert_only",
        )


def golden_stages(*kinds: str) -> list[GoldenStage]:
    """Every stage of tables of these kinds, each once, in order of scenario and stage."""
    return [stage for stage in _all_stages() if stage.kind in kinds]


@cache
def _all_stages() -> tuple[GoldenStage, ...]:
    found: dict[str, GoldenStage] = {}
    for root in golden_roots("acid"):
        for state in root.glob("*/*/state.json"):
            stage = GoldenStage(state.parent)
            found.setdefault(str(stage), stage)
    return tuple(found[name] for name in sorted(found))


def golden_cleanings(*kinds: str) -> Iterator[tuple[GoldenStage, GoldenStage]]:
    """Pairs of stages of one table between which Hive's cleaner ran."""
    by_name = {str(stage): stage for stage in golden_stages(*kinds)}
    for name, after in by_name.items():
        if "cleaner" not in after.name:
            continue
        before = [
            stage
            for other, stage in by_name.items()
            if stage.scenario == after.scenario and stage.table == after.table and other < name
        ]
        if before and _is_next(before[-1], after):
            yield before[-1], after


def _is_next(before: GoldenStage, after: GoldenStage) -> bool:
    """Stages are numbered; the project's own folder leaves some out."""
    is_interleaved = before.scenario == "g18_initiator"
    return is_interleaved or int(after.name[:2]) == int(before.name[:2]) + 1
