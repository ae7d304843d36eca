"""A dump may come from anywhere: nothing in it leads out of the target's own directories."""

from __future__ import annotations

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.errors import ReplError
from hms_bridge.repl.format.external_list import external_target, parse_external_list
from hms_bridge.repl.format.files_list import parse_files
from hms_bridge.repl.format.texts import read_text
from hms_bridge.repl.format.untrusted import (
    DumpRules,
    checked_file,
    checked_name,
    checked_partition,
    target_directory,
)

CHECKSUM = "0" * 56
RULES = DumpRules()


def file(line, rules=RULES):
    return checked_file(line, rules, "test", is_transactional=True)


@pytest.mark.parametrize(
    "line",
    [
        "hdfs://h/t/bucket_0###../../etc",
        "hdfs://h/t/bucket_0###/etc",
        "hdfs://h/t/bucket_0###delta_1_1/../..",
        "hdfs://h/t/../bucket_0###",
        "hdfs://h/t/.hidden###delta_1_1",
        "hdfs://h/t/_metadata_acid###base_1",
        "hdfs://h/t/bucket_0###_tmp",
        "hdfs://h/t/bucket_0###delta_1_1/.x",
        "hdfs://h/###delta_1_1",
        "relative/bucket_0###",
        "ftp://h/t/bucket_0###",
        "http://h/t/bucket_0###",
        f"hdfs://h/t/bucket_0#{CHECKSUM}#ftp://h/cmroot#delta_1_1",
        f"hdfs://h/t/bucket_0#{CHECKSUM[:-1]}x#hdfs://h/cmroot#delta_1_1",
        "hdfs://h/t/bucket_0#null#hdfs://h/cmroot#delta_1_1",
        "hdfs://h/t/bucket_0####delta#x",
        "###",
    ],
)
def test_lines_that_lead_away_are_refused(line):
    with pytest.raises(ReplError, match="test|allowed"):
        file(line)


def test_a_good_line_keeps_everything():
    found = file(f"hdfs://h/t/p=1/base_0000003_v0000010/bucket_00000#{CHECKSUM}#hdfs://h/cm"
                 "#base_0000003_v0000010")  # fmt: skip
    assert found.relative_path == "base_0000003/bucket_00000"
    assert found.is_compacted
    assert found.encoded.sub_directory == "base_0000003_v0000010"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("base_0000003_v0000010", "base_0000003"),
        ("delta_0000001_0000004_v0000012", "delta_0000001_0000004"),
        ("delete_delta_0000001_0000004_v0000012", "delete_delta_0000001_0000004"),
        ("delta_0000001_0000001_0000", "delta_0000001_0000001_0000"),
        ("delta_0000002_0000002_0001/HIVE_UNION_SUBDIR_1",
         "delta_0000002_0000002_0001/HIVE_UNION_SUBDIR_1"),
        ("base_-9223372036854775808_v0000331", "base_-9223372036854775808"),
        ("", ""),
        ("sub/folder", "sub/folder"),
    ],
)  # fmt: skip
def test_the_visibility_suffix_stays_behind(source, target):
    assert target_directory(source) == target


def test_plain_tables_keep_directories_that_only_look_like_acid():
    line = "hdfs://h/t/base_1_v2/x###base_1_v2"
    assert checked_file(line, RULES, "test", is_transactional=False).sub_directory == "base_1_v2"


@pytest.mark.parametrize("text", ["", "..", ".", "a/b", "a\\b", "a\nb", "\0", ".x", "x" * 300])
def test_names_that_are_no_names_are_refused(text):
    with pytest.raises(ReplError, match="no name of a table"):
        checked_name(text, "table")


@pytest.mark.parametrize("text", ["", "p", "p=1/..", "../p=1", "/p=1", "p=1//q=2", ".p=1", "p=1/q"])
def test_partitions_that_are_none_are_refused(text):
    with pytest.raises(ReplError, match="no partition"):
        checked_partition(text)


def test_partitions_of_hive_are_believed():
    assert checked_partition("p=a%2Fb c%23d/q=__HIVE_DEFAULT_PARTITION__")


def test_lists_and_texts_have_limits(tmp_path):
    with pytest.raises(ReplError, match="2 files, more than the 1"):
        parse_files(
            "hdfs://h/a###\nhdfs://h/b###\n",
            DumpRules(files_max=1),
            "test",
            is_transactional=False,
        )
    path = tmp_path / "long"
    path.write_text("x" * 100)
    with pytest.raises(ReplError, match="longer than the 99 bytes"):
        read_text(FsspecResolver()(str(path)), 99)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ReplError, match="no UTF-8"):
        read_text(FsspecResolver()(str(path)), 99)


@pytest.mark.parametrize(
    "line", ["a#b", "ftp://h/x#hdfs://h/y#t#F#null", "hdfs://h/x#hdfs://h/y#../t#F#null", "x#y#t"]
)
def test_external_directories_that_lead_away_are_refused(line):
    with pytest.raises(ReplError):
        parse_external_list(line, RULES, "test")


def test_external_data_goes_below_its_base():
    assert external_target("/dr/ext/", "hdfs://h:1/w/src.db/t") == "/dr/ext/w/src.db/t"
