"""Copies by a job of many processes: what goes into which share, what a task does, what is checked.

The job itself runs here, in this process; `integration/cases/test_spark_copy.py` has Spark's.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from changemanager.transfer import PART_PREFIX
from hms_bridge.clock import SystemClock
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import Copier, CopyGroup
from hms_bridge.repl.load.copy_task import CopiedFile, CopyTask, FileToCopy
from hms_bridge.repl.load.distributed import (
    CopyLimits,
    DistributedCopier,
    checked,
    shares_of,
)
from hms_bridge.repl.load.file_copy import CopyReport
from tests.support.copying import group_of
from tests.support.repl_world import ReplWorld
from tests.support.simulated_clock import SimulatedClock

DELTA = "delta_0000001_0000001_0000"
MIB = 1 << 20


@dataclass
class JobHere:
    """Runs each share in this process, with files and results pickled as for another one."""

    slots: int = 2
    shares: list[tuple[FileToCopy, ...]] = field(default_factory=list)
    bandwidths: list[int | None] = field(default_factory=list)
    places: tuple[str, ...] = ()
    spoil: Callable[[CopiedFile], Sequence[CopiedFile]] = lambda copied: [copied]

    def processes(self) -> int:
        return self.slots

    def run(
        self,
        task: CopyTask,
        shares: Sequence[Sequence[FileToCopy]],
        *,
        places: Sequence[str],
        while_waiting: Callable[[int], None],
    ) -> Iterable[CopiedFile]:
        self.places = tuple(places)
        found: list[CopiedFile] = []
        for share in shares:
            self.shares.append(tuple(share))
            self.bandwidths.append(task.bandwidth)
            # A simulated clock is of one process.
            there = replace(task, sources=pickle.loads(pickle.dumps(task.sources)))
            copied = pickle.loads(pickle.dumps(there(pickle.loads(pickle.dumps(share)))))
            while_waiting(sum(one.report.bytes for one in copied))
            found += [told for one in copied for told in self.spoil(one)]
        return found


def file_to_copy(number: int, size_bytes: int) -> FileToCopy:
    file = DumpedFile(
        uri=f"/s/{number}", checksum=None, cmroot=None, sub_directory="", source_directory=""
    )
    return FileToCopy(number=number, file=file, directory="/t", size_bytes=size_bytes)


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "source" / DELTA
    folder.mkdir(parents=True)
    for number in range(6):
        (folder / f"bucket_{number:05d}").write_bytes(bytes([number]) * (1000 * (number + 1)))
    return sorted(folder.iterdir())


def copier_by(job: JobHere, limits: CopyLimits | None = None, **options: object):
    resolve = FsspecResolver()
    return DistributedCopier(
        copier=options.pop("copier", Copier(resolve)),
        job=job,
        resolve=resolve,
        sources=resolve,
        clock=SystemClock(),
        limits=limits or CopyLimits(files_max=1, bytes_max=1000),
        sizes={},
        **options,
    )


def test_shares_have_about_as_many_bytes() -> None:
    sizes = [900 * MIB, 10, 300 * MIB, 300 * MIB, 20, 310 * MIB, *[MIB] * 50]
    shares = shares_of((file_to_copy(at, size) for at, size in enumerate(sizes)), 2)
    assert sorted(file.number for share in shares for file in share) == list(range(len(sizes)))
    assert len(shares) == 6
    weights = sorted(sum(file.size_bytes for file in share) for share in shares)
    assert weights[-1] == 900 * MIB, "the largest file is alone"
    assert weights[-2] <= 330 * MIB


def test_small_files_do_not_become_many_shares() -> None:
    assert len(shares_of([file_to_copy(at, 10) for at in range(100)], 4)) == 4
    assert len(shares_of([file_to_copy(at, 10) for at in range(3)], 4)) == 3
    assert shares_of([], 4) == ()
    files = [file_to_copy(at, 10) for at in range(100)]
    assert shares_of(files, 4) == shares_of(reversed(files), 4)


@pytest.mark.parametrize(
    ("sizes", "is_large"),
    [([33 << 20], False), ([16 << 20, 16 << 20], False), ([17 << 20, 17 << 20], True), ([], False)],
)
def test_hives_limits_are_above_both(sizes: list[int], is_large: bool) -> None:
    assert CopyLimits().is_large(sizes) is is_large


def test_what_is_large_is_copied_by_the_job(tmp_path: Path, sources: list[Path]) -> None:
    job = JobHere()
    found: list[list[str]] = []
    target = tmp_path / "target" / DELTA
    told: list[int] = []

    def publish() -> None:
        found.append(sorted(path.name for path in target.iterdir()))

    target.mkdir(parents=True)
    (target / f"{PART_PREFIX}of-a-task-that-was-killed").write_bytes(b"torn")
    copier = copier_by(job, on_copied=told.append)
    report = copier.copy([group_of(tmp_path, sources, DELTA, publish)])
    assert found == [[path.name for path in sources]]
    assert len(job.shares) == 2
    assert (report.source_files, report.bytes, report.by_job) == (6, 21_000, 6)
    assert sum(told) == 21_000
    assert job.places == (f"file:{target}",)
    for path in sources:
        assert (target / path.name).read_bytes() == path.read_bytes()
    again = copier.copy([group_of(tmp_path, sources, DELTA, publish)])
    assert (again.kept, again.source_files) == (6, 0)


def test_what_is_small_is_copied_here(tmp_path: Path, sources: list[Path]) -> None:
    job = JobHere()
    published: list[str] = []
    copier = copier_by(job, CopyLimits(files_max=1, bytes_max=21_000))
    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    report = copier.copy([group, CopyGroup(places=())])
    assert (report.source_files, report.by_job, job.shares) == (6, 0, [])
    assert published == ["it"]


def test_processes_share_a_bandwidth(tmp_path: Path, sources: list[Path]) -> None:
    job = JobHere(slots=3)
    copier_by(job, bandwidth=900_000).copy([group_of(tmp_path, sources, DELTA, lambda: None)])
    assert job.bandwidths == [300_000] * 3
    clock = SimulatedClock(0)
    resolve = FsspecResolver()
    task = CopyTask(resolve=resolve, sources=resolve, clock=clock, bandwidth=1000)
    directory = tmp_path / "other"
    directory.mkdir()
    (files, _), *_ = group_of(tmp_path, sources, DELTA, lambda: None).places
    share = [
        FileToCopy(number=at, file=file, directory=f"file:{directory}", size_bytes=0)
        for at, file in enumerate(files)
    ]
    task(share)
    assert clock.now_ms() >= 20_000


def test_bytes_are_checked_by_the_task(tmp_path: Path, sources: list[Path]) -> None:
    published: list[str] = []
    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    sources[2].write_bytes(b"?" * 3000)
    sources[4].unlink()
    with pytest.raises(SourceFileMissingError, match="bucket_00002.*bucket_00004") as raised:
        copier_by(JobHere()).copy([group])
    assert len(raised.value.missing) == 2
    assert published == []
    assert len(list((tmp_path / "target" / DELTA).iterdir())) == 4, "the others are whole"


def test_what_only_the_jobs_hosts_do_not_see_is_not_lost(
    tmp_path: Path, sources: list[Path]
) -> None:
    """Else the replication would be marked as one that nothing but a bootstrap can mend."""

    def hide(copied: CopiedFile) -> Sequence[CopiedFile]:
        return [replace(copied, report=CopyReport(), error="it is lost", is_lost=True)]

    group = group_of(tmp_path, sources, DELTA, lambda: None)
    with pytest.raises(ReplError, match="is there as this host sees it") as raised:
        copier_by(JobHere(spoil=hide)).copy([group])
    assert not isinstance(raised.value, SourceFileMissingError)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda copied: [copied] * 2, "twice"),
        (lambda copied: [copied] if copied.number else [], "did not report"),
        (lambda copied: [replace(copied, report=CopyReport())], "did not report"),
    ],
)
def test_each_file_is_told_of_once(
    tmp_path: Path,
    sources: list[Path],
    spoil: Callable[[CopiedFile], Sequence[CopiedFile]],
    message: str,
) -> None:
    published: list[str] = []
    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    with pytest.raises(ReplError, match=message):
        copier_by(JobHere(spoil=spoil)).copy([group])
    assert published == []


def test_what_was_told_of_must_be_there(tmp_path: Path, sources: list[Path]) -> None:
    published: list[str] = []

    def lose(copied: CopiedFile) -> Sequence[CopiedFile]:
        if copied.number == 3:
            (tmp_path / "target" / DELTA / sources[3].name).unlink()
        return [copied]

    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    with pytest.raises(ReplError, match="is not there as this host sees it"):
        copier_by(JobHere(spoil=lose)).copy([group])
    assert published == []


def test_a_load_that_lost_its_lease_ends_its_job(tmp_path: Path, sources: list[Path]) -> None:
    job = JobHere(slots=6)

    def check() -> None:
        if len(job.shares) == 2:
            raise ReplError("another load")

    copier = copier_by(job, copier=Copier(FsspecResolver(), before_each=check))
    with pytest.raises(ReplError, match="another load"):
        copier.copy([group_of(tmp_path, sources, DELTA, lambda: None)])
    assert len(job.shares) == 2


def test_a_load_by_a_job_is_the_same(busy_world: ReplWorld) -> None:
    world = busy_world
    job = JobHere()
    limits = CopyLimits(files_max=1, bytes_max=1)
    request = replace(world.load_request, copy_limits=limits)
    world.dump()
    loader = world.loader(job=job)
    report = loader.run(loader.plan(request))
    assert report.copied.by_job == report.copied.files > 0
    assert all(file.size_bytes > 0 for share in job.shares for file in share)
    world.assert_same()
    with world.transaction() as txn:
        txn.lock("t")
        txn.insert("t", [(7, "x")])
        for value in ("x", "y"):
            txn.insert("parted", [(8, "x")], f"p={value}")
    world.dump()
    job.shares.clear()
    report = loader.run(loader.plan(request))
    assert len([file for share in job.shares for file in share]) == report.copied.by_job == 3
    world.assert_same()


def test_a_sum_of_nothing() -> None:
    assert checked([], [], lambda _: True) == CopyReport()
