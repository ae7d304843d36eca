"""What the kernel does with the files of one bucket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver
from hms_bridge.acid.names import DirectoryName
from hms_bridge.compaction import kernel
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.compaction.plan import BucketTask, OutputFile
from hms_bridge.compaction.verify import verify_task
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import VerifyMode
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.acid_reader import OrcFiles, open_orc_file
from hms_bridge.orc.acid_writer import AcidOrcWriter
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.snapshot.plan import FileRole, RawRows, ReadFile, ReadSplit
from tests.support.acid_events import BUCKET, events
from tests.support.orc_values import as_array

LOCAL = LocalVolume()
TABLE = parse_hive_type("struct<a:int>")
OUTPUT = OutputFile(
    directory=DirectoryName.delta(WriteId(1), WriteId(2), visibility_txn_id=TxnId(9)), bucket_id=0
)


def put(path: Path, count: int, write_id: int) -> ReadFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as sink:
        writer = AcidOrcWriter(sink, TABLE)
        rows = as_array([{"a": at} for at in range(count)], TABLE)
        writer.write(events(rows, row_ids=list(range(count)), write_ids=write_id))
        writer.close()
    return ReadFile(
        path=str(path), size_bytes=path.stat().st_size, role=FileRole.DELTA, bucket_id=0,
        min_write_id=WriteId(write_id), max_write_id=WriteId(write_id),
    )  # fmt: skip


def task_of(*files: ReadFile, is_delete_applied: bool = False) -> BucketTask:
    return BucketTask(
        bucket_id=0,
        write_ids=ValidWriteIdList.everything(),
        columns=(Column(name="a", type="int"),),
        rows=ReadSplit(bucket_id=0, files=files),
        inserts=OUTPUT,
        is_delete_applied=is_delete_applied,
    )


def copied_stripes(task: BucketTask) -> int:
    assert task.rows is not None
    return len(kernel._copyable(OrcFiles(LOCAL), task, task.rows))


def test_stripes_are_copied_only_where_the_whole_file_may_be_read(tmp_path: Path) -> None:
    """Not of a file with a side file, which ends before its bytes do; not of one without ACID
    columns; not where deletes are to be applied; not of small stripes."""
    one, two = put(tmp_path / "one", 10_000, 1), put(tmp_path / "two", 10_000, 2)
    assert copied_stripes(task_of(one, two)) == 2
    streaming = replace(two, side_file=f"{two.path}_flush_length")
    assert copied_stripes(task_of(one, streaming)) == 0
    raw = RawRows(write_id=WriteId(2), bucket_property=BUCKET, group=(two.path,))
    assert copied_stripes(task_of(one, replace(two, raw=raw))) == 0
    assert copied_stripes(task_of(one, two, is_delete_applied=True)) == 0
    small = put(tmp_path / "small", 3, 2)
    assert copied_stripes(task_of(put(tmp_path / "few", 3, 1), small)) == 0


@pytest.mark.parametrize("flushed", ["nothing", "all"])
def test_only_what_a_streaming_writer_flushed_is_compacted(tmp_path: Path, flushed: str) -> None:
    """It died while it wrote: the file has no end, and its side file tells what is valid (I1)."""
    one, two = put(tmp_path / "t/a/bucket_00000", 3, 1), put(tmp_path / "t/b/bucket_00000", 2, 2)
    path = Path(two.path)
    length = 0
    if flushed == "all":
        length = path.stat().st_size
        path.write_bytes(path.read_bytes() + b"rows that were not flushed")
    else:
        path.write_bytes(b"ORC")
    side = path.with_name("bucket_00000_flush_length")
    side.write_bytes((0).to_bytes(8, "big") + length.to_bytes(8, "big"))
    streaming = replace(two, side_file=str(side))
    run = BucketKernel(resolver=FsspecResolver())
    result = run(task_of(one, streaming), str(tmp_path / "t"), str(tmp_path / "t/_tmp"))
    assert result.rows_read == (5 if flushed == "all" else 3)
    assert result.verification is not None
    assert result.verification.difference is None
    (file,) = result.files
    with open_orc_file(LOCAL, str(tmp_path / "t/_tmp" / file.written_as)) as opened:
        assert opened.tail.row_count == result.rows_read


def test_files_whose_keys_overlap_are_sorted_together(tmp_path: Path) -> None:
    """Also where one has rows of two writes, so that bounds of its columns are no keys."""
    one, two = tmp_path / "t/a/bucket_00000", put(tmp_path / "t/b/bucket_00000", 9, 1)
    rows = as_array([{"a": 7}, {"a": 8}], TABLE)
    one.parent.mkdir(parents=True)
    with one.open("wb") as sink, AcidOrcWriter(sink, TABLE) as writer:
        writer.write(events(rows, row_ids=[7, 0], write_ids=[0, 2]))
        writer.close()
    file = replace(two, path=str(one))
    run = BucketKernel(resolver=FsspecResolver())
    result = run(task_of(file, two), str(tmp_path / "t"), str(tmp_path / "t/_tmp"))
    assert (result.rows_read, result.verification.difference) == (11, None)


def test_a_second_reader_reads_every_stripe(tmp_path: Path) -> None:
    """I1: what is right is told from a row that is another one, in the last stripe."""
    one, two = put(tmp_path / "one", 10_000, 1), put(tmp_path / "two", 10_000, 2)
    task, temporary = task_of(one, two), str(tmp_path / "t/_tmp")
    run = BucketKernel(resolver=FsspecResolver())
    right = run(task, str(tmp_path / "t"), temporary)
    assert right.verification is not None
    assert (right.verification.written_rows.count, right.verification.difference) == (20_000, None)
    other = put(tmp_path / "other", 10_000, 3)
    wrong = run(task_of(one, other), str(tmp_path / "t"), temporary)
    found = verify_task(LOCAL, task, wrong.files, temporary, VerifyMode.KEYS)
    assert found.written_rows.count == 20_000
    assert found.difference is not None
