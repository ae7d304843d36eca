"""The table of points on docs/hooks.md has each of them, with what stands in its message."""

from __future__ import annotations

import re
from pathlib import Path

from hms_bridge.hooks import points
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.hook import PointDraft, PointType
from hms_bridge.model.lateness import LatePolicy
from hms_bridge.model.properties import TARGET_LAST_EVENT
from hms_bridge.model.replication import CycleOutcome, CycleResult
from hms_bridge.model.target import Target
from hms_bridge.repl.dump.news import DumpNews
from hms_bridge.repl.dump.plan import DumpKind, DumpReport
from tests.support.archive_manifest import InMemoryManifest

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
_ROW = re.compile(r"^\| `([A-Z_]+)` \| .* \| (.*) \|$", re.MULTILINE)
_IN_WORDS = {
    "CLEAN_COMPACTION": {"compactionId", "type", "dbname", "tableName", "partName"},
    "END_CYCLE": {"dumpDirectory", "eventCount", "fileCount", "byteCount"},
}
"""What the table says in words: as another point has it, and counts."""


def dump_ended() -> PointDraft:
    manifest = InMemoryManifest()
    news = DumpNews(manifest=manifest, resolve=None, database="d", root="/r")  # type: ignore[arg-type]
    news.announce(DumpReport(kind=DumpKind.BOOTSTRAP, reason=""), "/r/1")
    (facts,) = manifest._announced.values()
    return points.dump_ended(facts)


def every_point() -> list[PointDraft]:
    written = WriteNotification(
        txn_id=1, write_id=2, database_name="d", table_name="t", partition_values=(), files=()
    )
    compaction = Compaction(
        id=1, target=Target("d", "t"), type=CompactionType.MAJOR, state=CompactionState.WORKING
    )
    before = Database(name="d")
    after = Database(name="d", parameters={TARGET_LAST_EVENT: "5"})
    late = LatePolicy(policy="p", since_ms=1, last_success_ms=None, late_after_ms=2)
    return [
        points.acid_written(written),
        points.compaction_started(compaction),
        points.compaction_cleaned(compaction),
        *points.files_archived("/cm", ["f"]),
        points.file_purged("/cm", "f"),
        points.file_restored("/cm", "f"),
        dump_ended(),
        *points.load_ended(before, after),
        points.cycle_ended("p", 1, CycleResult(outcome=CycleOutcome.FAILED)),
        points.policy_late(late),
    ]


def test_each_point_stands_in_the_table_with_its_message() -> None:
    table = {
        kind: set(re.findall(r"`(\w+)`", keys)) for kind, keys in _ROW.findall(PAGE.read_text())
    }
    drafts = {draft.type.value: set(draft.message) for draft in every_point()}
    assert drafts.keys() == {kind.value for kind in PointType} - {"TEST"}
    assert table.keys() == drafts.keys()
    for kind, keys in drafts.items():
        assert table[kind] | _IN_WORDS.get(kind, set()) >= keys, kind
        assert table[kind] <= keys | {"worker"}, kind
