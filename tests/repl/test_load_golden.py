"""Six dumps of a real Hive, loaded one by one: the target ends as real Hive's target did."""

from __future__ import annotations

import pytest

from changemanager.whereabouts import Whereabouts
from hms_bridge.errors import EventGapError, ReplError, SourceFileMissingError
from hms_bridge.model.ids import EventId
from hms_bridge.repl.load import LoadKind, LoadRequest, ReplLoad
from hms_bridge.repl.verify import verify_dump
from tests.support.golden_repl import CYCLES
from tests.support.repl_metastore import ReplMetastore

OURS = "t_base/base_0000003/_metadata_acid"
"""Only we write it: it says that a compactor made the base, whose suffix is gone."""


class Target:
    def __init__(self, cycle, folder):
        self.cycle = cycle
        self.folder = folder
        self.metastore = ReplMetastore(folder / "warehouse")
        self.load = ReplLoad(self.metastore, cycle.resolve)
        self.request = LoadRequest(
            root=str(folder / "repl"),
            source_database="src",
            target_database="dst",
            external_base=str(folder / "external"),
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
    def last_event(self):
        return self.metastore.databases["dst"].parameters["repl.last.id"]


@pytest.fixture
def target(cycle, tmp_path):
    return Target(cycle, tmp_path)


@pytest.mark.golden
def test_five_cycles_give_the_files_and_ids_of_real_hive(cycle, target):
    for dumped, loaded in CYCLES:
        report = target.load_dump(dumped)
        files = target.files()
        assert files.pop(OURS) == 48
        assert files == cycle.target_files(loaded)
        assert {table: following for (_, table), following in target.metastore.next_write_id.items()
                } == {row["NWI_TABLE"]: row["NWI_NEXT"]
                      for row in cycle.target_meta(loaded, "NEXT_WRITE_ID")}  # fmt: skip
        assert [source for _, source in target.metastore.repl_map] == [
            row["RTM_SRC_TXN_ID"] for row in cycle.target_meta(loaded, "REPL_TXN_MAP")
        ]
        assert target.last_event == str(report.last_event_id)
        assert target.load.plan(target.request).kind is LoadKind.NOTHING
    assert target.last_event == "967"
    parameters = target.metastore.databases["dst"].parameters
    assert parameters["owner.note"] == "x y"
    assert "hive.repl.first.inc.pending" not in parameters
    assert "repl.source.for" not in parameters


@pytest.mark.golden
def test_aborted_write_ids_come_along_and_are_to_be_compacted(target):
    target.load_dump("02")
    assert target.metastore.write_id_list("dst", "t_plain").aborted_ids == (5,)
    assert target.metastore.write_id_list("dst", "t_plain").high_watermark == 5
    assert target.metastore.queued_majors == ["dst.t_empty", "dst.t_plain"]


@pytest.mark.golden
def test_most_of_the_first_dumps_comes_from_the_archive(cycle, target):
    report = target.load_dump("02")
    assert (report.copied.archive_files, report.copied.source_files) == (23, 10)
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
        "02": (5, 23), "07": (2, 27), "11": (5, 0), "14": (1, 1), "17": (1, 0), "19": (0, 0)
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
    assert "1 of 28 files" in str(caught.value)
    assert len(caught.value.missing) == 1
    assert target.metastore.databases == {}
    report = verify_dump(cycle.resolve, str(dump))
    assert report.exit_code == 1
    (missing,) = report.missing
    assert (missing.named.table_name, missing.place) == ("t_buck", Whereabouts.MISSING)


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
    request = LoadRequest(root=target.request.root, source_database="src", target_database="dst")
    with pytest.raises(ReplError, match=r"external\.table\.base\.dir"):
        target.load.plan(request)
    assert target.metastore.databases == {}


@pytest.mark.golden
def test_an_incompatible_replica_is_refused(target):
    target.load_dump("02")
    database = target.metastore.databases["dst"]
    database.parameters["repl.incompatible"] = "true"
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
    stranger = target.metastore.databases["dst"]
    for key in [*stranger.parameters]:
        del stranger.parameters[key]
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
    assert target.metastore.databases == {}


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
    (dump / "hive" / "events_batch_1" / "336" / "src.t_plain" / "data" / "_files").unlink()
    plan = target.load.plan(target.request)
    with pytest.raises(ReplError, match=r"names files of t_plain \(4\).*t_plain \(0\)"):
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
    target.metastore.next_write_id["dst", "t_plain"] = 5
    target.bring("07")
    with pytest.raises(ReplError, match="begins with write id 6"):
        target.load.run(target.load.plan(target.request))


@pytest.mark.golden
def test_a_table_that_was_dropped_on_the_replica_is_noticed(target):
    target.load_dump("02")
    target.metastore.drop_table("dst", "t_buck")
    target.bring("07")
    with pytest.raises(ReplError, match=r"table dst\.t_buck is not on the target"):
        target.load.run(target.load.plan(target.request))


@pytest.mark.golden
def test_a_plan_is_refused_once_the_target_has_moved_on(target):
    target.load_dump("02")
    target.bring("07")
    plan = target.load.plan(target.request)
    target.metastore.databases["dst"].parameters["repl.last.id"] = "300"
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
