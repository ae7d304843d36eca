"""The table of points on docs/hooks.md has each of them, with what stands in its message."""

from __future__ import annotations

import re
from pathlib import Path

from hms_bridge.hooks import changes, points
from hms_bridge.model.catalog import Catalog, Database, PrincipalType
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.connector import DataConnector
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.function import Function
from hms_bridge.model.hook import PointDraft, PointType
from hms_bridge.model.lateness import LatePolicy
from hms_bridge.model.privilege import (
    Grant,
    ObjectKind,
    Principal,
    Role,
    RoleGrant,
    Securable,
)
from hms_bridge.model.procedure import Package, StoredProcedure
from hms_bridge.model.properties import TARGET_LAST_EVENT
from hms_bridge.model.replication import CycleOutcome, CycleResult
from hms_bridge.model.resource_plan import PlanKey, ResourcePlan
from hms_bridge.model.schedule import ScheduledQuery, ScheduleKey
from hms_bridge.model.target import TableName, Target
from hms_bridge.repl.dump.news import DumpNews
from hms_bridge.repl.dump.plan import DumpKind, DumpReport
from tests.support.archive_manifest import InMemoryManifest

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
_ROW = re.compile(r"^\| `([A-Z_]+)` \| .* \| (.*) \|$", re.MULTILINE)
_IN_WORDS = {
    "STOP_COMPACTION": {"compactionId", "type", "dbname", "tableName", "partName"},
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
        points.compaction_stopped(compaction),
        points.compaction_cleaned(compaction),
        *points.files_archived("/cm", ["f"]),
        points.file_purged("/cm", "f"),
        points.file_restored("/cm", "f"),
        dump_ended(),
        *points.load_ended(before, after),
        points.cycle_ended("p", 1, CycleResult(outcome=CycleOutcome.FAILED)),
        points.policy_late(late),
        *every_change(),
    ]


def every_change() -> list[PointDraft]:
    who = Principal("ann", PrincipalType.USER)
    role = Role(name="r")
    of_table = Securable(kind=ObjectKind.TABLE, database="d", name="t")
    grant = Grant(object=of_table, principal=who, privilege="SELECT")
    query = ScheduledQuery(key=ScheduleKey("q"), is_enabled=True)
    connector = DataConnector(name="c", type="mysql", url="jdbc:x")
    function = Function(name="f", database_name="d", class_name="x.F")
    plan = ResourcePlan(key=PlanKey("p"))
    return [
        changes.catalog_changed("create", Catalog(name="c", location="/c")),
        changes.connector_changed("create", connector),
        changes.function_altered(function, function),
        changes.view_updated(TableName("d", "v")),
        changes.partition_marked(TableName("d", "t"), ["1"], 1),
        changes.role_changed("create", "r"),
        changes.role_granted(RoleGrant(role=role, principal=who)),
        changes.role_revoked("r", who, is_option_only=True),
        changes.privileges_changed("grant", [grant]),
        changes.privileges_changed("revoke", [grant], isGrantOptionOnly=False),
        changes.privileges_replaced(of_table, [grant]),
        changes.plan_changed("create", plan.key, plan),
        changes.query_changed("create", query),
        changes.procedure_changed("put", StoredProcedure(name="p", database_name="d")),
        changes.procedure_changed("put", Package(name="p", database_name="d")),
        changes.token_changed("add", "i"),
        changes.master_key_changed("add", 1),
    ]


def test_each_point_stands_in_the_table_with_its_message() -> None:
    table = {
        kind: set(re.findall(r"`(\w+)`", keys)) for kind, keys in _ROW.findall(PAGE.read_text())
    }
    drafts: dict[str, set[str]] = {}
    for draft in every_point():
        drafts.setdefault(draft.type.value, set()).update(draft.message)
    assert drafts.keys() == {kind.value for kind in PointType} - {"TEST"}
    assert table.keys() == drafts.keys()
    for kind, keys in drafts.items():
        assert table[kind] | _IN_WORDS.get(kind, set()) >= keys, kind
        assert table[kind] <= keys | {"worker"}, kind
