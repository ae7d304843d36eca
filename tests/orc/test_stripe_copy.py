from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.filesystem.local import LocalVolume
from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.acid_layout import AcidStats
from hms_bridge.orc.acid_reader import OrcFiles
from hms_bridge.orc.acid_writer import AcidOrcWriter
from hms_bridge.orc.assembly import OrcSettings
from hms_bridge.orc.blocks import Compression
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.stripe_copy import (
    CopySource,
    copy_refusal,
    copy_stripes,
    in_key_order,
    load_copy_source,
    stated_key_range,
)
from hms_bridge.orc.tail import Calendar, tail_of_file
from hms_bridge.orc.types import OrcType
from tests.support.acid_events import BUCKET, events, read_back
from tests.support.golden import GoldenStage, golden_stages
from tests.support.orc_values import as_array

LOCAL = LocalVolume()
TABLE = parse_hive_type("struct<a:int,s:string>")
ALL = ValidWriteIdList.everything()


def source(
    folder: Path,
    name: str,
    row_ids: Sequence[int],
    *,
    table: OrcType = TABLE,
    settings: OrcSettings | None = None,
    **fields: Any,
) -> CopySource:
    rows = [dict.fromkeys(table.names) for _ in row_ids]
    with (folder / name).open("wb") as sink:
        writer = AcidOrcWriter(sink, table, settings or OrcSettings())
        if row_ids:
            writer.write(events(as_array(rows, table), row_ids=list(row_ids), **fields))
        writer.close()
    return load_copy_source(OrcFiles(LOCAL), str(folder / name))


def test_files_become_one(tmp_path: Path) -> None:
    big = OrcSettings(block_size_bytes=512 * 1024)
    sources = [
        source(tmp_path, "third", [0, 1], write_ids=3),
        source(tmp_path, "first", [4, 5], write_ids=1, settings=big),
        source(tmp_path, "empty", []),
        source(tmp_path, "second", [6], write_ids=1),
    ]
    assert copy_refusal(sources, ALL) is None
    sink = io.BytesIO()
    written = copy_stripes(LOCAL, sources, sink)
    assert written.stripe_last_keys == (
        RowId(1, BUCKET, 5),
        RowId(1, BUCKET, 6),
        RowId(3, BUCKET, 1),
    )
    assert written.stats == AcidStats(inserts=5)
    assert written.size_bytes == len(sink.getvalue())
    tail = tail_of_file(sink)
    assert tail.user_metadata["hive.acid.stats"] == b"5,0,0"
    assert tail.block_size_bytes == 512 * 1024
    assert tail.column_statistics()[2].int_statistics.maximum == 3
    row_ids = [one.column("rowId").to_pylist() for one in read_back(sink.getvalue())]
    assert row_ids == [[4, 5], [6], [0, 1]]


def test_nothing_to_copy(tmp_path: Path) -> None:
    empty = source(tmp_path, "empty", [])
    assert copy_refusal([empty], ALL) is None
    with pytest.raises(AcidFormatError, match="no rows"):
        copy_stripes(LOCAL, [empty], io.BytesIO())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"settings": OrcSettings(compression=Compression.ZSTD)}, "written with"),
        ({"settings": OrcSettings(row_index_stride=0)}, "written with"),
        ({"settings": OrcSettings(calendar=Calendar.PROLEPTIC_GREGORIAN)}, "written with"),
        ({"settings": OrcSettings(writer_version=9)}, "written with"),
        ({"table": parse_hive_type("struct<a:int,t:string>")}, "columns or their types"),
        ({"table": parse_hive_type("struct<a:int,s:varchar(9)>")}, "columns or their types"),
        ({"row_ids": [3, 9]}, "overlap"),
        ({"operation": 2}, "inserts, others deletes"),
        ({"write_ids": 20}, "open transactions"),
        ({"write_ids": 15}, "open transactions"),
        ({"write_ids": 12}, "aborted transactions"),
        ({"write_ids": [2, 14], "row_ids": [0, 0]}, "aborted transactions"),
    ],
)
def test_refusals(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    seen = ValidWriteIdList(
        table=None,
        high_watermark=WriteId(19),
        open_ids=(WriteId(15),),
        aborted_ids=(WriteId(12),),
    )
    first = source(tmp_path, "first", [0, 5])
    assert copy_refusal([first], seen) is None
    second = source(tmp_path, "second", **({"row_ids": [6, 7]} | fields))
    assert reason in (copy_refusal([first, second], seen) or "")


def _encrypted(found: CopySource) -> CopySource:
    return replace(found, tail=replace(found.tail, is_encrypted=True))


def _without_statistics(found: CopySource) -> CopySource:
    return replace(found, tail=replace(found.tail, statistics_message=b""))


def _out_of_order(found: CopySource) -> CopySource:
    return replace(found, first_key=RowId(1, BUCKET, 9), last_keys=(RowId(1, BUCKET, 5),))


def _without_write_ids(found: CopySource) -> CopySource:
    return replace(found, write_ids=None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_encrypted, "encrypted"),
        (_without_statistics, "no statistics of its stripes"),
        (_out_of_order, "not in the order of their keys"),
        (_without_write_ids, "does not name its write ids"),
    ],
)
def test_one_file_alone_may_be_refused(
    tmp_path: Path, change: Callable[[CopySource], CopySource], reason: str
) -> None:
    found = source(tmp_path, "one", [0, 5])
    assert copy_refusal([found], ALL) is None
    assert reason in (copy_refusal([change(found)], ALL) or "")


def test_mixed_events_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "mixed").open("wb") as sink:
        writer = AcidOrcWriter(sink, TABLE)
        for operation in (0, 2):
            rows = as_array([{"a": 1, "s": "x"}], TABLE)
            writer.write(events(rows, row_ids=[operation], operation=operation))
        writer.close()
    mixed = load_copy_source(OrcFiles(LOCAL), str(tmp_path / "mixed"))
    assert "mixes" in (copy_refusal([mixed], ALL) or "")


def test_a_source_that_shrank_is_an_error(tmp_path: Path) -> None:
    one = source(tmp_path, "one", [1, 2])
    (tmp_path / "one").write_bytes(b"ORC")
    with pytest.raises(AcidFormatError, match="missing"):
        copy_stripes(LOCAL, [one], io.BytesIO())


def _groups(stage: GoldenStage) -> list[list[str]]:
    """Bucket files of the plain deltas of one stage that a minor compaction would join."""
    found: dict[tuple[Path, str, str], list[str]] = defaultdict(list)
    for path in stage.files.rglob("bucket_*"):
        directory = path.parent
        if "_v" not in directory.name and "delta_" in directory.name:
            kind = directory.name.partition("delta_")[0]
            found[directory.parent, kind, path.name[:12]].append(str(path))
    return [sorted(paths) for paths in found.values() if len(paths) > 1]


@pytest.mark.golden
def test_deltas_of_a_real_hive_become_one() -> None:
    joined = 0
    for stage in golden_stages("full_acid"):
        for paths in _groups(stage):
            sources = [load_copy_source(OrcFiles(LOCAL), path) for path in paths]
            if copy_refusal(sources, ALL) is not None:
                continue
            sink = io.BytesIO()
            copy_stripes(LOCAL, sources, sink)
            apart = [
                batch
                for one in in_key_order(sources)
                for batch in read_back(Path(one.tail.path).read_bytes())
            ]
            together = read_back(sink.getvalue())
            assert len(together) == len(apart)
            assert all(map(_is_same, together, apart)), paths
            joined += 1
    assert joined > 10


def _is_same(one: Any, other: Any) -> bool:
    return bool(str(one.to_struct_array()) == str(other.to_struct_array()))


@pytest.mark.parametrize("what", ["encrypted", "statistics", "order"])
def test_what_cannot_be_copied_as_it_is(tmp_path: Path, what: str) -> None:
    """No writer of ours makes such files; others may."""
    sound = source(tmp_path, "sound", [0, 5])
    assert copy_refusal([sound], ALL) is None
    changed = {
        "encrypted": replace(sound, tail=replace(sound.tail, is_encrypted=True)),
        "statistics": replace(sound, tail=replace(sound.tail, statistics_message=b"")),
        "order": replace(sound, first_key=RowId(9, BUCKET, 9)),
    }
    assert what in (copy_refusal([changed[what]], ALL) or "")


def test_statistics_state_keys_only_of_one_write_id_and_bucket(tmp_path: Path) -> None:
    """Bounds of columns are keys only where but one of them changes; else keys are read."""
    own = source(tmp_path, "own", range(3, 7))
    assert stated_key_range(own.tail) == (RowId(1, BUCKET, 3), RowId(1, BUCKET, 6))
    writes = source(tmp_path, "writes", [7, 0], write_ids=[1, 2])
    assert stated_key_range(writes.tail) is None
    buckets = source(tmp_path, "buckets", [7, 0], buckets=[BUCKET, BUCKET + 1])
    assert stated_key_range(buckets.tail) is None
    assert stated_key_range(replace(own.tail, statistics_message=b"")) is None
