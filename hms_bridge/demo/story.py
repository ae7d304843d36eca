"""The story that ``hms-bridge demo`` tells, on a warehouse that a real Hive 4.2 wrote.

It is what the vendor documentation of Hive ACID replication describes: compaction between dump and
load, with the ChangeManager keeping what the replica has not copied yet.
"""

from __future__ import annotations

import getpass
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from uuid import uuid4

from changemanager.location import FsspecResolver
from changemanager.purge import Purge
from changemanager.retention import take_inventory
from changemanager.whereabouts import Whereabouts
from hms_bridge.adoption.adopt import adopt
from hms_bridge.adoption.look import look
from hms_bridge.adoption.plan import AdoptionRequest
from hms_bridge.clock import Clock, SystemClock, steady_ms
from hms_bridge.compaction.worker import Worker
from hms_bridge.demo.side import Row, Side, differences
from hms_bridge.errors import SourceFileMissingError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import (
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.counted import counted
from hms_bridge.model.properties import SOURCE_FOR
from hms_bridge.model.target import Target
from hms_bridge.repl.dump.plan import DumpReport, DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.format.verify import VerifyReport, verify_dump
from hms_bridge.repl.load.admission import SourcePlaces
from hms_bridge.repl.load.plan import LoadReport, LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad

DATABASE = "demo"
_CLEANER_PASSES_MAX = 20
FIRST_CHANGES = """
    INSERT INTO orders VALUES (201, 'tea', 3.20), (202, 'salt', 0.90), (203, 'rice', 2.10);
    UPDATE orders SET amt = amt * 2 WHERE id < 5;
    DELETE FROM orders WHERE id BETWEEN 105 AND 108;
    INSERT INTO events PARTITION (a, b) VALUES (90, 'new', 'x', 1), (91, 'new', 'sl/ash', 1);
    DELETE FROM events WHERE v = 'e';
    UPDATE customers SET name = 'renamed' WHERE id < 10
"""
SECOND_CHANGES = """
    UPDATE orders SET name = 'green tea' WHERE id = 201;
    DELETE FROM orders WHERE id = 202;
    INSERT INTO orders VALUES (204, 'soap', 1.10);
    INSERT INTO events PARTITION (a='x', b=1) VALUES (92, 'newer');
    INSERT INTO customers VALUES (1001, 'late', 7)
"""
LATE_CHANGES = """
    INSERT INTO orders VALUES (301, 'too late', 1.00);
    DELETE FROM orders WHERE id = 204
"""


class MovableClock:
    """The system's clock, set forward when the story says that days go by."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._ahead_ms = 0

    def now_ms(self) -> int:
        """Milliseconds since the epoch, and what was set forward."""
        return self._clock.now_ms() + self._ahead_ms

    def steady_ms(self) -> int:
        """Milliseconds that go on as the time does, and are never set back."""
        return steady_ms(self._clock) + self._ahead_ms

    def sleep_seconds(self, seconds: float) -> None:
        """By the real clock, so the time that was added stays the same."""
        self._clock.sleep_seconds(seconds)

    def move(self, milliseconds: int) -> None:
        """Forward, by this much, without waiting."""
        self._ahead_ms += milliseconds


@dataclass(frozen=True, kw_only=True)
class AdoptedTable:
    """One table of the demo: its name, and what its files do not say."""

    name: str
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = -1
    partition_types: tuple[tuple[str, str], ...] = ()


TABLES = (
    AdoptedTable(name="orders"),
    AdoptedTable(name="events", partition_types=(("b", "int"),)),
    AdoptedTable(name="customers", bucket_columns=("id",), bucket_count=4),
)
HIVE_TABLES = Path(__file__).with_name("tables")
"""What a real Hive 4.2 wrote, a folder a table: its ``files``, and the rows that Hive read."""

Say = Callable[[str], None]


class Story:
    """The steps. ``say`` prints what happens; ``check`` collects what went wrong."""

    def __init__(
        self,
        source: Side,
        replica: Side,
        *,
        dumps: Path,
        worker: Worker,
        clock: MovableClock,
        say: Say,
    ) -> None:
        self._source = source
        self._replica = replica
        self._dumps = dumps
        self._worker = worker
        self._clock = clock
        self._say = say
        self._step = 0
        self.failures: list[str] = []

    def play(self) -> bool:
        """Play all steps; whether everything was as it must be."""
        self._adopt()
        self._change("Rows change: INSERT, UPDATE and DELETE, done by Spark", FIRST_CHANGES)
        self._title("Bootstrap: dump the database, load it into the replica")
        self._dump()
        self._load()
        self._compare("after the bootstrap")
        self._change("More changes on the source", SECOND_CHANGES)
        self._title("Incremental dump: it names the new files, it does not copy them")
        dump = self._dump()
        self._compact_and_clean()
        self._load_from_archive(dump)
        self._lose_on_purpose()
        return not self.failures

    def _title(self, text: str) -> None:
        self._step += 1
        self._say(f"\n{self._step}. {text}")

    def _check(self, is_right: bool, what: str) -> None:
        self._say(f"   {'ok' if is_right else 'WRONG'}: {what}")
        if not is_right:
            self.failures.append(what)

    def _adopt(self) -> None:
        self._title("A warehouse that a real Hive 4.2 left behind, its metastore lost: adopt it")
        metastore = self._source.store.metastore
        metastore.create_database(Database(name=DATABASE, parameters={SOURCE_FOR: "demo"}))
        for table in TABLES:
            directory = f"{metastore.get_database(DATABASE).location}/{table.name}"
            target = self._source.store.resolver(directory).path
            shutil.copytree(HIVE_TABLES / table.name / "files", target)
            request = AdoptionRequest(
                database_name=DATABASE,
                table_name=table.name,
                location=directory,
                partition_types=dict(table.partition_types),
                bucket_columns=table.bucket_columns,
                bucket_count=table.bucket_count,
                owner=getpass.getuser(),
            )
            plan = look(request, self._source.store.resolver)
            adopt(plan, metastore, user=getpass.getuser(), host=socket.gethostname())
            rows = len(self._source.rows(DATABASE)[table.name])
            row_count = len((HIVE_TABLES / table.name / "rows.jsonl").read_text().splitlines())
            self._check(
                rows == row_count,
                f"{table.name}: {len(plan.partitions) or 'no'} partitions, "
                f"{rows} rows as Hive read them",
            )

    def _change(self, title: str, text: str) -> None:
        self._title(title)
        for message in self._source.run(text):
            self._say(f"   {message}")

    def _dump(self) -> DumpReport:
        store = self._source.store
        dumper = ReplDump(
            store.metastore, store.resolver, self._clock, lambda: str(uuid4()), store.manifest
        )
        request = DumpRequest(
            root=str(self._dumps), database=DATABASE, cm_root=store.archive().cmroot.uri
        )
        report = dumper.run(dumper.plan(request))
        self._say(
            f"   {report.kind.value} dump names {counted(report.file_count, 'file')}, "
            f"up to event {report.last_event_id}"
        )
        return report

    def _load(self) -> LoadReport:
        loader = self._loader()
        report = loader.run(loader.plan(self._load_request()))
        self._say(
            f"   loaded: {counted(report.copied.source_files, 'file')} from the source, "
            f"{report.copied.archive_files} from the archive; "
            f"the replica stands at event {report.last_event_id}"
        )
        return report

    def _loader(self) -> ReplLoad:
        """Reads where the source's metastore says that its tables are, and its archive."""
        store = self._source.store
        places = SourcePlaces(metastore=store.metastore, cm_root=store.archive().cmroot.uri)
        return ReplLoad(self._replica.store.metastore, FsspecResolver(), source=places)

    def _load_request(self) -> LoadRequest:
        return LoadRequest(root=str(self._dumps), source_database=DATABASE)

    def _compare(self, when: str) -> dict[str, list[Row]]:
        source, replica = self._source.rows(DATABASE), self._replica.rows(DATABASE)
        different = differences(source, replica)
        count = sum(len(rows) for rows in source.values())
        self._check(not different, f"{when} both sides have the same {count} rows and ROW__IDs")
        for text in different:
            self._say(f"      {text}")
        return replica

    def _compact_and_clean(self) -> None:
        self._title("Major compaction on the source, by Spark, before the replica has loaded")
        before = self._source.rows(DATABASE)
        compacted = 0
        for target in self._targets():
            self._source.store.metastore.compact(
                CompactionRequest(target=target, type=CompactionType.MAJOR)
            )
        while (outcome := self._worker.run_once()) is not None:
            if outcome.state == "failed":
                self._check(False, f"{outcome.entry.target}: {outcome.message}")
            elif outcome.plan is not None:
                compacted += 1
        self._check(compacted > 0, f"{compacted} tables and partitions have a new base")
        self._check(self._source.rows(DATABASE) == before, "no row and no ROW__ID has changed")
        self._title("The cleaner: archive the replaced files, then delete them")
        archived = self._archived()
        self._clean()
        self._check(
            self._archived() > archived, f"{counted(self._archived() - archived, 'file')} archived"
        )
        self._check(self._source.rows(DATABASE) == before, "no row has changed")

    def _targets(self) -> list[Target]:
        metastore = self._source.store.metastore
        targets: list[Target] = []
        for table in TABLES:
            if table.partition_types:
                names = metastore.get_partition_names(DATABASE, table.name)
                targets += [Target(DATABASE, table.name, name) for name in names]
            else:
                targets.append(Target(DATABASE, table.name))
        return targets

    def _clean(self) -> None:
        """Passes of the cleaner until nothing waits: a compaction that committed less than a
        second ago (metastore.txn.opentxn.timeout) waits for readers that may be starting."""
        (point,) = entry_points(group="hms_bridge.daemons", name="cleaner")
        run_once = point.load()(self._source.store)
        ready = ShowCompactionsRequest(state=CompactionState.READY_FOR_CLEANING)
        for _ in range(_CLEANER_PASSES_MAX):
            run_once()
            if not self._source.store.metastore.show_compactions(ready):
                return
            self._clock.sleep_seconds(0.5)
        self._check(False, "the cleaner had to leave something")

    def _archived(self) -> int:
        store = self._source.store
        return sum(item.is_present for item in take_inventory(store.archive(), store.manifest))

    def _verify(self, dump: DumpReport) -> VerifyReport:
        report = verify_dump(FsspecResolver(), dump.directory or "")
        self._say(
            f"   repl verify: {report.count(Whereabouts.AT_SOURCE)} files at source, "
            f"{report.count(Whereabouts.IN_CM)} in CM, {len(report.missing)} missing"
        )
        return report

    def _load_from_archive(self, dump: DumpReport) -> None:
        self._title("The replica loads: the files that the dump names are in the archive only")
        report = self._verify(dump)
        self._check(report.count(Whereabouts.IN_CM) > 0 and not report.missing, "nothing is lost")
        loaded = self._load()
        self._check(loaded.copied.archive_files > 0, "files came from the archive")
        self._compare("after the load")

    def _lose_on_purpose(self) -> None:
        self._change("A dump that is loaded too late", LATE_CHANGES)
        dump = self._dump()
        before = self._replica.rows(DATABASE)
        for kind in (CompactionType.MAJOR,):
            self._source.store.metastore.compact(
                CompactionRequest(target=Target(DATABASE, "orders"), type=kind)
            )
        while self._worker.run_once() is not None:
            pass
        self._clean()
        self._title("Retention goes by (hive.repl.cm.retain, 10 days), and the purge runs")
        self._clock.move(self._source.store.settings.archive.retain_ms + 60_000)
        store = self._source.store
        self._say("   nobody saw these days go by; an operator confirms them: cm clock --trust")
        store.manifest.trust_time(self._clock.now_ms())
        purge = Purge(store.archive(), store.manifest, self._clock)
        report = purge.run(purge.plan())
        self._say(f"   purged {len(report.deleted)} files that nobody needs")
        self._check(not self._verify(dump).missing, "what the unloaded dump needs was kept")
        holders = {holder for decision in purge.plan().decisions for holder in decision.holders}
        self._say(f"   an operator insists: purge --override {' --override '.join(holders)}")
        purge.run(purge.plan(overridden=holders))
        lost = self._verify(dump)
        self._check(bool(lost.missing), "repl verify says what is lost")
        loader = self._loader()
        try:
            loader.run(loader.plan(self._load_request()))
            is_refused = False
        except SourceFileMissingError as error:
            is_refused = True
            self._say(f"   load: {str(error)[:110]}…")
        self._check(is_refused, "the load refuses before it touches the replica")
        self._check(self._replica.rows(DATABASE) == before, "the replica is as it was")
