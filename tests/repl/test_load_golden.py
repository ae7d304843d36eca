"""Six dumps of a real Hive, loaded one by one: the target ends as real Hive's target did."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from changemanager.whereabouts import Whereabouts
from hms_bridge.backend.schema.txn_tables import NEXT_WRITE_ID, REPL_TXN_MAP
from hms_bridge.errors import DumpIncompleteError, EventGapError, ReplError, SourceFileMissingError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.passed_kinds import PASSED_BY_DEFAULT
from hms_bridge.repl.format.untrusted import DumpRules
from hms_bridge.repl.format.verify import verify_dump
from hms_bridge.repl.load.plan import LoadKind, LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from tests.support.golden_repl import CYCLES, HIVE_ROOTS
from tests.support.world import World

OURS = "t_base/base_0000003/_metadata_acid"
"""Only we write it: it says that a compactor made the base, whose suffix is gone."""


class Target:
    def __init__(self, cycle, folder):
        self.cycle = cycle
        self.folder = folder
        self.world = World(folder, database="dst", has_database=False)
        self.metastore = self.world.metastore
        self.load = ReplLoad(self.metastore, cycle.resolve)
        self.request = LoadRequest(
            root=str(folder / "repl"),
            source_database="src",
            target_database="dst",
            external_base=str(folder / "external"),
            functions_root=str(folder / "functions"),
            roots=HIVE_ROOTS,
            is_from_hive=True,
        )

    def bring(self, number: str):
        return self.cycle.bring_dump(number, self.folder / "repl")

    def load_dump(self, number: str):
        self.bring(number)
        return self.load.run(self.load.plan(self.request))

    def files(self) -> dict[str, int]:
        root = self.folder / "warehouse" / "dst.db"
        return {
            str(path.relative_to(root)): path.stat().st_size
            for path in root.rglob("*")
            if path.is_file()
        }

    @property
    def parameters(self):
        return self.metastore.get_database("dst").parameters

    @property
    def last_event(self):
        return self.parameters["repl.last.id"]

    def open_to_definitions(self) -> None:
        """An admin lets others change the replica's."""
        self.set_parameters(**{"hms.bridge.replica.open": "definitions"})

    def set_parameters(self, **changes: str) -> None:
        self.replace_parameters({**self.parameters, **changes})

    def replace_parameters(self, parameters: dict[str, str]) -> None:
        database = self.metastore.get_database("dst")
        self.metastore.alter_database("dst", replace(database, parameters=parameters))

    def is_untouched(self) -> bool:
        return self.metastore.get_databases() == ("default",)


@pytest.fixture
def target(cycle, fast_folder):
    return Target(cycle, fast_folder)


@pytest.mark.golden
def test_five_cycles_give_the_files_and_ids_of_real_hive(cycle, target):
    for dumped, loaded in CYCLES:
        report = target.load_dump(dumped)
        files = target.files()
        assert files.pop(OURS) == 48
        assert files == cycle.target_files(loaded)
        for table, columns in (
            (NEXT_WRITE_ID, ("NWI_DATABASE", "NWI_TABLE", "NWI_NEXT")),
            (REPL_TXN_MAP, ("RTM_REPL_POLICY", "RTM_SRC_TXN_ID")),
        ):
            assert key_values(target.world.records(table), columns) == key_values(
                cycle.target_meta(loaded, table.name), columns
            )
        assert target.last_event == str(report.last_event_id)
        assert target.load.plan(target.request).kind is LoadKind.NOTHING
    assert target.last_event == "967"
    assert target.parameters["owner.note"] == "x y"
    assert "hive.repl.first.inc.pending" not in target.parameters
    assert "repl.source.for" not in target.parameters


def key_values(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> set[tuple[Any, ...]]:
    return {tuple(row[column] for column in columns) for row in rows}


@pytest.mark.golden
def test_aborted_write_ids_come_along_and_are_to_be_compacted(target):
    target.load_dump("02")
    (write_ids,) = target.metastore.get_valid_write_ids(["dst.t_plain"])
    assert (write_ids.aborted_ids, write_ids.high_watermark) == ((5,), 5)
    queued = target.metastore.show_compactions()
    assert sorted(one.target.table for one in queued) == ["t_empty", "t_plain"]
    assert {one.type for one in queued} == {CompactionType.MAJOR}


@pytest.mark.golden
def test_most_of_the_first_dumps_comes_from_the_archive(cycle, target):
    report = target.load_dump("02")
    assert (report.copied.archive_files, report.copied.source_files) == (24, 10)
    report = target.load_dump("07")
    assert (report.copied.archive_files, report.copied.source_files) == (27, 2)


@pytest.mark.golden
def test_every_file_of_the_real_dumps_can_be_had(cycle):
    found = {
        number: verify_dump(cycle.resolve, str(cycle.dump(number)), retain_ms=1000)
        for number, _ in CYCLES
    }
    counts = {
        number: (report.count(Whereabouts.AT_SOURCE), report.count(Whereabouts.IN_CM))
        for number, report in found.items()
    }
    assert counts == {
        "02": (5, 24), "07": (2, 27), "11": (5, 0), "14": (1, 1), "17": (1, 0), "19": (0, 0)
    }  # fmt: skip
    assert all(report.exit_code == 0 for report in found.values())
    assert found["19"].load_before_ms is None
    archived = [one for one in found["02"].files if one.archived_at_ms is not None]
    assert found["02"].load_before_ms == min(one.archived_at_ms for one in archived) + 1000


@pytest.mark.golden
def test_a_lost_file_stops_the_load_before_the_target_is_touched(cycle, target):
    dump = target.bring("02")
    files = dump / "hive" / "data" / "src" / "t_buck" / "_files"
    lines = files.read_text().splitlines()
    lines[3] = lines[3].replace("#0000020", "#1111120")
    files.write_text("\n".join(lines) + "\n")
    with pytest.raises(SourceFileMissingError) as caught:
        target.load.plan(target.request)
    assert "1 of 29 files" in str(caught.value)
    assert len(caught.value.missing) == 1
    assert target.is_untouched()
    report = verify_dump(cycle.resolve, str(dump))
    assert report.exit_code == 1
    (missing,) = report.missing
    assert (missing.named.target.table, missing.place) == ("t_buck", Whereabouts.MISSING)


@pytest.mark.golden
def test_a_dump_that_does_not_follow_is_refused(target):
    target.load_dump("02")
    target.bring("11")
    with pytest.raises(EventGapError, match="begins after event 475, database dst stands at 203"):
        target.load.plan(target.request)
    assert target.last_event == "203"


@pytest.mark.golden
def test_an_incremental_dump_needs_a_bootstrap(target):
    target.bring("07")
    with pytest.raises(ReplError, match="load a bootstrap dump first"):
        target.load.plan(target.request)


@pytest.mark.golden
def test_external_data_needs_a_place(cycle, target):
    target.bring("02")
    request = replace(target.request, external_base=None)
    with pytest.raises(ReplError, match=r"external\.table\.base\.dir"):
        target.load.plan(request)
    assert target.is_untouched()


@pytest.mark.golden
def test_an_incompatible_replica_is_refused(target):
    target.load_dump("02")
    target.set_parameters(**{"repl.incompatible": "true"})
    target.bring("07")
    with pytest.raises(ReplError, match=r"repl\.incompatible"):
        target.load.plan(target.request)


@pytest.mark.golden
def test_a_second_bootstrap_is_refused(cycle, target):
    target.load_dump("02")
    again = target.bring("02")
    again.rename(again.with_name("other"))
    with pytest.raises(ReplError, match="was bootstrapped before and stands at source event 203"):
        target.load.plan(target.request)


@pytest.mark.golden
def test_a_database_with_tables_of_its_own_is_refused(cycle, target):
    target.load_dump("02")
    target.replace_parameters({})
    target.bring("02").rename(target.folder / "repl" / "c3Jj" / "other")
    with pytest.raises(ReplError, match="that no dump brought; did you forget --metastore.*--into"):
        target.load.plan(target.request)


@pytest.mark.golden
def test_open_write_ids_in_a_bootstrap_are_refused(target):
    """Real Hive wrote such a list for a transaction without locks, and lost its rows."""
    dump = target.bring("02")
    path = dump / "hive" / "metadata" / "src" / "t_plain" / "_metadata"
    path.write_text(path.read_text().replace("src.t_plain:5:9223372036854775807::5",
                                             "src.t_plain:5:4:4:5"))  # fmt: skip
    with pytest.raises(ReplError, match=r"write ids 4 of src\.t_plain were open"):
        target.load.plan(target.request)
    assert target.is_untouched()


@pytest.mark.golden
def test_a_transactional_table_without_write_ids_is_refused(target):
    """Real Hive loads it with 0 visible rows."""
    dump = target.bring("02")
    path = dump / "hive" / "metadata" / "src" / "t_base" / "_metadata"
    path.write_text(path.read_text().replace("repl.valid.writeid.list", "repl.other"))
    with pytest.raises(ReplError, match="no write-id list"):
        target.load.plan(target.request)


@pytest.mark.golden
def test_a_commit_whose_file_list_was_lost_on_the_way_is_refused(target):
    target.load_dump("02")
    dump = target.bring("07")
    path = dump / "hive" / "events_batch_1" / "336" / "src.t_plain" / "data" / "_files"
    lines = path.read_text().splitlines(keepends=True)
    path.unlink()
    with pytest.raises(DumpIncompleteError, match="_files is missing"):
        target.load.plan(target.request)
    path.write_text("".join(lines[:3]))
    plan = target.load.plan(target.request)
    with pytest.raises(ReplError, match=r"names files of t_plain \(4\).*t_plain \(3\)"):
        target.load.run(plan)
    assert int(target.last_event) < 336


@pytest.mark.golden
def test_a_lost_event_directory_is_noticed(target):
    target.load_dump("02")
    dump = target.bring("07")
    (dump / "hive" / "events_batch_1" / "331" / "_dumpmetadata").unlink()
    (dump / "hive" / "events_batch_1" / "331").rmdir()
    with pytest.raises(ReplError, match="267 event directories where 268 were dumped"):
        target.load.plan(target.request)


@pytest.mark.golden
def test_a_replica_that_was_written_to_is_noticed(target):
    target.load_dump("02")
    of_table = update(NEXT_WRITE_ID).where(NEXT_WRITE_ID.c.NWI_TABLE == "t_plain")
    target.world.execute(of_table.values(NWI_NEXT=5))
    target.bring("07")
    with pytest.raises(ReplError, match="begins with write id 6"):
        target.load.run(target.load.plan(target.request))


@pytest.mark.golden
def test_a_table_that_was_dropped_on_the_replica_is_noticed(target):
    target.load_dump("02")
    target.open_to_definitions()
    target.metastore.drop_table("dst", "t_buck")
    target.bring("07")
    with pytest.raises(ReplError, match=r"table dst\.t_buck is not on the target"):
        target.load.run(target.load.plan(target.request))


@pytest.mark.golden
def test_a_plan_is_refused_once_the_target_has_moved_on(target):
    target.load_dump("02")
    target.bring("07")
    plan = target.load.plan(target.request)
    target.set_parameters(**{"repl.last.id": "300"})
    with pytest.raises(ReplError, match="moved on"):
        target.load.run(plan)


@pytest.mark.golden
def test_a_load_that_was_stopped_before_its_marks_only_writes_them(target):
    target.load_dump("02")
    marks = [target.cycle.dump("02").name]
    hive = target.folder / "repl" / "c3Jj" / marks[0] / "hive"
    (hive / "_finished_load").unlink()
    files = target.files()
    plan = target.load.plan(target.request)
    assert plan.stands_at == EventId(203)
    target.load.run(plan)
    assert (hive / "_finished_load").exists()
    assert target.files() == files


@pytest.mark.golden
def test_dumps_of_real_hive_bring_functions_with_their_jars(target):
    """The jar is gone at its source: Hive's DROP FUNCTION has put it into the archive."""
    target.load_dump("02")
    (function,) = target.metastore.get_functions("dst")
    (jar,) = function.resources
    assert (function.name, function.class_name) == ("fn_jar", "gold.MyUp")
    assert jar.uri == f"file:{target.folder}/functions/dst/fn_jar/203/myup.jar"
    content = (target.folder / "functions/dst/fn_jar/203/myup.jar").read_bytes()
    (archived,) = (target.cycle.root / "final_fs/cmroot").glob("myup.jar_*")
    assert content == archived.read_bytes()
    for number in ("07", "11"):
        target.load_dump(number)
    assert target.metastore.get_functions("dst") == ()


@pytest.mark.golden
def test_functions_need_a_place_for_their_jars(target):
    target.bring("02")
    with pytest.raises(ReplError, match=r"fn_jar comes with .*functions\.root\.dir"):
        target.load.plan(replace(target.request, functions_root=None))
    assert target.is_untouched()
    rules = DumpRules(passed_kinds=PASSED_BY_DEFAULT | {"_functions"})
    target.load.plan(replace(target.request, rules=rules, functions_root=None))


@pytest.mark.golden
def test_dumps_of_real_hive_bring_their_constraints(target):
    target.load_dump("02")
    kinds = [one.kind.name for one in target.metastore.get_constraints("dst", "t_pk")]
    assert sorted(kinds) == ["CHECK", "DEFAULT", "NOT_NULL", "PRIMARY_KEY", "UNIQUE"]
    (fk1,) = target.metastore.get_constraints("dst", "t_fk")
    assert fk1.refers_to.database_name == "dst"
    assert target.metastore.get_constraints("dst", "t_empty") == ()
    for number in ("07", "11"):
        target.load_dump(number)
    assert target.metastore.get_constraints("dst", "t_fk") == ()
    (key,) = target.metastore.get_constraints("dst", "t_empty")
    assert (key.name, key.column, key.is_relied_on) == ("pk_e", "id", True)


@pytest.mark.golden
def test_a_kind_of_event_that_is_not_replayed_is_refused_by_name(target):
    for number in ("02", "07"):
        target.load_dump(number)
    target.bring("11")
    kind = "EVENT_UPDATE_TABLE_COL_STAT"
    rules = DumpRules(passed_kinds=PASSED_BY_DEFAULT - {kind})
    with pytest.raises(ReplError, match=rf"event \d+ \({kind}\).*add {kind} to"):
        target.load.plan(replace(target.request, rules=rules))
    plan = target.load.plan(target.request)
    assert dict(plan.passed) == {
        "EVENT_UPDATE_TABLE_COL_STAT": 1, "EVENT_UPDATE_PART_COL_STAT": 2, "EVENT_UNKNOWN": 2,
    }  # fmt: skip
    assert target.last_event == "475"


@pytest.mark.golden
def test_an_unknown_event_passes_only_if_it_is_of_a_harmless_compaction(target):
    """A rebalance gives rows other ids, which no event carries over."""
    target.load_dump("02")
    dump = target.bring("07")
    paths = dump.glob("hive/events_batch_1/*/_dumpmetadata")
    path = next(one for one in paths if one.read_text().startswith("EVENT_UNKNOWN"))
    columns = path.read_text().split("\t")
    message = gzip.decompress(base64.b64decode(columns[5])).decode()
    assert target.load.plan(target.request).passed["EVENT_UNKNOWN"] == 10
    strange = (
        message.replace('"MAJOR"', '"REBALANCE"').replace('"MINOR"', '"REBALANCE"'),
        '{"server":"","dbname":"src"}',
        "no JSON",
        "H4sIAAAA",
        base64.b64encode(gzip.compress(b"[1]")).decode(),
    )
    for one in strange:
        path.write_text("\t".join([*columns[:5], one, columns[6]]))
        with pytest.raises(ReplError, match=r"\(EVENT_UNKNOWN\).*cannot be carried over"):
            target.load.plan(target.request)


@pytest.mark.golden
def test_data_inside_a_dump_is_refused(target):
    """As hive.repl.run.data.copy.tasks.on.target=false makes it: files instead of lists."""
    dump = target.bring("02")
    data = dump / "hive" / "data" / "src" / "t_plain"
    (data / "_files").unlink()
    (data / "base_0000001").mkdir()
    (data / "base_0000001" / "bucket_00000").write_bytes(b"ORC")
    with pytest.raises(DumpIncompleteError, match=r"t_plain/_files.*run\.data\.copy\.tasks"):
        target.load.plan(target.request)
    assert target.is_untouched()


@pytest.mark.golden
def test_a_lost_or_cut_list_of_a_real_bootstrap_is_noticed(target):
    dump = target.bring("02")
    for path in sorted(dump.glob("hive/data/src/**/_files")):
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DumpIncompleteError):
            target.load.plan(target.request)
        if content:
            path.write_bytes(content[:-1])
            with pytest.raises(ReplError):
                target.load.plan(target.request)
        path.write_bytes(content)
    assert target.is_untouched()


@pytest.mark.golden
@pytest.mark.parametrize("name", ["_bootstrap", "table_diff_complete"])
def test_a_part_of_a_real_dump_that_nothing_reads_is_refused(target, name):
    target.load_dump("02")
    dump = target.bring("07")
    (dump / "hive" / name / "metadata" / "src").mkdir(parents=True)
    with pytest.raises(ReplError, match=f"hive/{name}: nothing here reads this part"):
        target.load.plan(target.request)
    assert target.last_event == "203"


@pytest.mark.golden
def test_a_hives_dump_of_a_changed_scope_drops_what_a_load_made_and_nothing_else(target):
    target.load_dump("02")
    target.open_to_definitions()
    table = target.metastore.get_table("dst", "t_base")
    storage = replace(table.storage, location=None)
    target.metastore.create_table(replace(table, name="mine", parameters={}, storage=storage))
    hive = target.bring("07") / "hive"
    columns = (hive / "_dumpmetadata").read_text().splitlines()[0].split("\t")
    line = "\t".join([*columns[:6], "true"])
    (hive / "_dumpmetadata").write_text(f"{line}\nsrc\tt_.*\tt_empty\n")
    (hive / "_tables").mkdir()
    (hive / "_tables" / "src").write_text("t_base\n")
    report = target.load.run(target.load.plan(target.request))
    names = set(target.metastore.get_tables("dst"))
    assert "mine" in names and "t_base" in names
    assert all(name.startswith("t_") and name != "t_empty" for name in names - {"mine"})
    assert any("dst.mine is outside" in note for note in report.notes)
    assert target.parameters["hms.bridge.repl.scope"] == "'t_.*'.'t_empty'"


def with_table_whole(target, table: str) -> Path:
    """Dump 07 with a table of dump 02 as Hive brings it whole beside events."""
    first = target.cycle.dump("02") / "hive"
    hive = target.bring("07") / "hive"
    for part in ("metadata", "data"):
        shutil.copytree(first / part / "src" / table, hive / "_bootstrap" / part / "src" / table)
    return hive / "_bootstrap"


@pytest.mark.golden
def test_a_table_that_a_hives_incremental_dump_brings_whole(cycle, target):
    """It takes the place of what the replica has; the events of all others are applied."""
    target.load_dump("02")
    with_table_whole(target, "t_buck")
    plan = target.load.plan(target.request)
    assert (plan.kind, plan.tables) == (LoadKind.INCREMENTAL, ("t_buck",))
    report = target.load.run(plan)
    assert report.tables == ("t_buck",)
    files = target.files()
    before, after = cycle.target_files("04"), cycle.target_files("09")
    of_table = {path: size for path, size in before.items() if path.startswith("t_buck/")}
    assert {path: size for path, size in files.items() if path.startswith("t_buck/")} == of_table
    others = {path for path in after if not path.startswith("t_buck/")}
    assert files.keys() - of_table.keys() == {*others, OURS}
    table = target.metastore.get_table("dst", "t_buck")
    assert table.parameters["hive.repl.ckpt.key"] == f"{plan.directory}/hive"
    assert target.load.plan(target.request).kind is LoadKind.NOTHING


@pytest.mark.golden
def test_what_lies_beside_such_tables_is_refused_by_name(target):
    target.load_dump("02")
    whole = with_table_whole(target, "t_buck")
    (whole / "metadata" / "src" / "_functions" / "f").mkdir(parents=True)
    with pytest.raises(ReplError, match=r"add _functions to hms\.bridge"):
        target.load.plan(target.request)
    assert target.last_event == "203"


@pytest.mark.golden
def test_truncate_of_a_partition_in_the_words_of_older_hives(cycle, target):
    """Hive 4.0.1 logs an ALTER_PARTITION with keyValues, not ALTER_PARTITIONS with a list."""
    for number in ("02", "07"):
        target.load_dump(number)
    dump = target.bring("11")
    texts = ((path, path.read_text()) for path in dump.rglob("_dumpmetadata"))
    ((path, text),) = [one for one in texts if one[1].startswith("EVENT_TRUNCATE_PARTITION")]
    columns = text.split("\t")
    payload = json.loads(columns[5])
    (payload["keyValues"],) = payload.pop("partitions")
    path.write_text("\t".join([*columns[:5], json.dumps(payload), columns[6]]))
    target.load.run(target.load.plan(target.request))
    files = target.files()
    del files[OURS]
    assert files == cycle.target_files("12")


@pytest.mark.golden
def test_external_data_that_is_away_is_refused(cycle, target):
    """Its file system may not be mounted: the replica would keep old files without a word."""
    target.bring("02")
    place = cycle.root / "final_fs" / "warehouse" / "external" / "src.db"
    away = place.rename(place.with_name("away"))
    try:
        with pytest.raises(ReplError, match=r"t_na is, is not there.*Is its file system mounted"):
            target.load.plan(target.request)
        assert target.is_untouched()
    finally:
        away.rename(place)
    target.load.run(target.load.plan(target.request))


@pytest.mark.golden
def test_a_commit_into_a_partition_that_is_gone_does_not_bring_it_back(target):
    """Real Hive makes it anew, with rows. A drop is put where a compaction's event stood."""
    target.load_dump("02")
    dump = target.bring("07")
    target.open_to_definitions()
    target.metastore.drop_partitions("dst", "t_part", ["p=2"])
    with pytest.raises(ReplError, match=r"partition p=2 of dst\.t_part is not on the target"):
        target.load.run(target.load.plan(target.request))
    drop = {"server": "", "db": "src", "table": "t_part", "partitions": [{"p": "2"}]}
    (dump / "hive" / "events_batch_1" / "236" / "_dumpmetadata").write_text(
        f"EVENT_DROP_PARTITION\t236\t236\t/cmroot\t0\t{json.dumps(drop)}\tfalse\n"
    )
    target.load.run(target.load.plan(target.request))
    partitions = target.metastore.get_partitions("dst", "t_part")
    assert {one.values for one in partitions} == {("1",), ("4",), ("a/b c#d",)}
    assert not [one for one in target.files() if one.startswith("t_part/p=2/")]
