"""The timelines of docs/retention.md, played by a clock over the service, its cleaner and purge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.config.repl import ReplSettings
from hms_bridge.config.settings import ArchiveSettings
from hms_bridge.errors import EventGapError, SourceFileMissingError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusReport, StatusRequest
from tests.support.repl_world import ReplWorld
from tests.support.simulated_clock import DAY_MS

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MAJOR = CompactionType.MAJOR


class Timeline(ReplWorld):
    """A source with a row in its replica. Moments are counted from then on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.create_table("t")
        self.insert("t", (1, "a"))
        self.replicate()
        self._began_ms = self.clock.now_ms()

    def at(self, *, days: int = 0, hours: int = 0, minutes: int = 0) -> None:
        """Let the time come; each midnight housekeeping and purge have their turn."""
        moment_ms = self._began_ms + days * DAY_MS + hours * HOUR_MS + minutes * MINUTE_MS
        while self.clock.now_ms() + DAY_MS < moment_ms:
            self.clock.advance_ms(DAY_MS)
            self.keep_house()
        self.clock.advance_ms(moment_ms - self.clock.now_ms())
        self.keep_house()

    def keep_house(self) -> None:
        self.source.run_housekeeping()
        self.source.manifest.note_time(self.clock.now_ms())
        self.purge()

    def replace_all(self) -> None:
        """A major compaction, and the cleaner after it."""
        self.compact("t", MAJOR)
        assert self.clean() > 0

    def copied_from(self) -> tuple[int, int]:
        """How many files a load took from their source, and how many from the archive."""
        copied = self.load().copied
        return copied.source_files, copied.archive_files

    def archived_buckets(self) -> set[str]:
        return {name for name in self.archived() if name.startswith("bucket")}

    def look(self) -> StatusReport:
        looker = ReplStatus(
            self.resolve,
            self.clock,
            source=self.source,
            target=self.target,
            manifest=self.source.manifest,
            figures=self.source,
        )
        settings = self.settings
        return looker.look(
            StatusRequest(
                root=str(self.repl_root),
                source_database="src",
                target_database="dst",
                own_archive=str(self.cmroot),
                event_budget_bytes=settings.repl.event_budget_bytes,
                archive_budget=settings.archive.budget,
            )
        )

    def headroom(self) -> tuple[str, int]:
        """What ends first, and in how many whole days."""
        headroom = self.look().headroom
        assert headroom is not None
        return headroom.limit, headroom.seconds * 1000 // DAY_MS

    def event_count(self) -> int:
        first = NotificationRequest(last_event_id=EventId(0))
        return len(self.source.get_next_notification(first))


@pytest.fixture
def line(fast_folder: Path) -> Iterator[Timeline]:
    line = Timeline(fast_folder)
    yield line
    line.close()


def test_a_compaction_after_the_dump(line: Timeline) -> None:
    """1a: the load takes from the archive what the dump names."""
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.dump()
    line.at(hours=1, minutes=10)
    line.replace_all()
    line.at(hours=1, minutes=30)
    assert line.copied_from() == (0, 1)
    line.assert_same()


def test_a_compaction_after_more_was_written(line: Timeline) -> None:
    """1b: the base holds later rows, and is not what the load brings."""
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.dump()
    line.at(hours=1, minutes=5)
    line.insert("t", (3, "c"))
    line.update("t", (2, "new"))
    line.delete("t", 1)
    line.at(hours=1, minutes=10)
    line.replace_all()
    line.at(hours=1, minutes=30)
    assert line.copied_from() == (0, 1)
    assert [row["id"] for row in line.replica.rows("t")] == [1, 2]
    line.at(hours=2)
    line.dump()
    line.at(hours=2, minutes=30)
    sources, archived = line.copied_from()
    assert (sources, archived > 0) == (0, True)
    line.assert_same()


def test_a_compaction_with_nothing_new(line: Timeline) -> None:
    """1c: the next dump has nothing that it changes."""
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.replicate()
    line.at(hours=1, minutes=10)
    line.replace_all()
    line.at(hours=2)
    report, loaded = line.replicate()
    assert report.kind is DumpKind.INCREMENTAL
    assert loaded.copied.files == 0
    line.assert_same()


def test_a_reader_holds_up_the_archiving_and_its_retention(line: Timeline) -> None:
    """2a: what a query reads is replaced, and archived only when it has ended."""
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.dump()
    reader = line.open()
    line.at(hours=1, minutes=4)
    line.compact("t", MAJOR)
    assert line.cleaner().run_once() == ()
    assert {name.partition("_")[0] for name in line.names("t")} == {"base", "delta"}
    assert line.copied_from() == (1, 0)
    line.commit(reader)
    assert line.clean() > 0
    archived = line.archived_buckets()
    line.at(days=9)
    assert line.archived_buckets() == archived
    line.dump()
    line.load()
    line.at(days=11)
    assert line.archived_buckets() == set()


def test_a_writer_that_dies_is_in_no_dump(line: Timeline) -> None:
    """2b: a writer that dies is aborted; no dump names what it wrote, and nobody archives it."""
    line.at(hours=1)
    writer = line.begin()
    writer.insert("t", [(9, "lost")])
    line.insert("t", (2, "b"))
    line.replicate()
    line.at(hours=2)
    assert writer.id not in line.open_txn_ids()
    line.insert("t", (3, "c"))
    line.replace_all()
    line.at(hours=3)
    line.replicate()
    assert [row["id"] for row in line.replica.rows("t")] == [1, 2, 3]
    line.assert_same()


def test_a_table_that_is_rewritten_every_day(line: Timeline) -> None:
    """2c: it is in the archive as often as retain has days, and not more."""
    line.start(archive=ArchiveSettings(root=str(line.cmroot), retain_ms=3 * DAY_MS))
    sizes = []
    for day in range(1, 8):
        line.at(days=day)
        line.insert("t", (day + 1, "daily"))
        line.replicate()
        line.replace_all()
        sizes.append(len(line.archived_buckets()))
    assert sizes == [2, 4, 6, 8, 8, 8, 8]


def test_a_dump_that_comes_late(line: Timeline) -> None:
    """3a: pins keep events and files until the budgets are over, and headroom counts down."""
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.insert("t", (3, "c"))
    line.replace_all()
    line.at(days=12)
    assert line.headroom() == ("event log", 18)
    line.at(days=29)
    assert line.headroom()[1] == 1
    line.dump()
    line.load()
    line.assert_same()


def test_a_dump_that_comes_too_late(line: Timeline) -> None:
    """3b: after the budgets it is refused, with the commands that lead on."""
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.replace_all()
    line.at(days=33)
    assert line.look().troubles
    with pytest.raises(EventGapError, match="'repl dump --bootstrap'"):
        line.dump()
    line.target.drop_database("dst", is_cascade=True)
    line.dump(is_bootstrap_forced=True)
    line.load()
    line.assert_same()


def test_a_load_that_comes_late_and_too_late(line: Timeline) -> None:
    """3c: the dump's own pin keeps what it names, for its budget."""
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.dump()
    line.replace_all()
    line.at(days=28)
    loader = line.loader()
    assert loader.plan(line.load_request).files is not None
    line.at(days=33)
    with pytest.raises(SourceFileMissingError, match=r"raise hive\.repl\.cm\.retain"):
        line.load()


def test_budgets_of_bytes_end_before_those_of_days(line: Timeline) -> None:
    """3d: what is within its own time stays, whatever the budgets are."""
    line.start(
        repl=ReplSettings(event_budget_bytes=10),
        archive=ArchiveSettings(root=str(line.cmroot), budget_bytes=0),
    )
    line.at(hours=1)
    line.insert("t", (2, "b"))
    line.replace_all()
    line.at(days=9)
    before = line.event_count()
    assert before > 0
    assert line.headroom() == ("event log", 1)
    line.at(days=12)
    assert line.event_count() < before
    with pytest.raises(EventGapError):
        line.dump()
