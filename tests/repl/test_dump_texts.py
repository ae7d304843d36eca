"""Every text of real dumps is read, and comes back byte for byte."""

from __future__ import annotations

import json

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
    Payload,
)
from hms_bridge.repl.format.events_dump import EventsDump
from hms_bridge.repl.format.external_list import format_external_list, parse_external_list
from hms_bridge.repl.format.files_list import format_files, parse_files
from hms_bridge.repl.format.object_metadata import DatabaseMetadata, TableMetadata
from hms_bridge.repl.format.untrusted import DumpRules

PAYLOADS = {
    "EVENT_OPEN_TXN": OpenTxnPayload,
    "EVENT_COMMIT_TXN": CommitTxnPayload,
    "EVENT_ABORT_TXN": AbortTxnPayload,
    "EVENT_ALLOC_WRITE_ID": AllocWriteIdPayload,
}


@pytest.mark.golden
def test_dump_metadata_and_transaction_payloads_of_real_dumps_come_back(cycle):
    counts: dict[str, int] = {}
    for path in cycle.root.glob("steps/*/repl/c3Jj/*/hive/**/_dumpmetadata"):
        text = path.read_text()
        metadata = DumpMetadata.parse(text, str(path))
        assert metadata.format() == text
        counts[metadata.type] = counts.get(metadata.type, 0) + 1
        payload = PAYLOADS.get(metadata.type)
        if payload is not None:
            assert payload.parse(metadata.payload, str(path)).format() == metadata.payload
    assert sum(counts.values()) == 764
    assert counts["EVENT_OPEN_TXN"] == 317
    assert counts["EVENT_COMMIT_TXN"] == 314
    assert counts["EVENT_ALLOC_WRITE_ID"] == 37
    assert counts["EVENT_ABORT_TXN"] == 3


@pytest.mark.golden
def test_object_metadata_of_real_dumps_comes_back(cycle):
    tables = databases = 0
    for path in cycle.root.glob("steps/*/repl/c3Jj/*/hive/**/_metadata"):
        text = path.read_text()
        keys = json.loads(text)
        if "table" in keys:
            assert TableMetadata.parse(text, str(path)).format() == text
            tables += 1
        elif "db" in keys:
            assert DatabaseMetadata.parse(text, str(path)).format() == text
            databases += 1
    assert (tables, databases) == (93, 1)


@pytest.mark.golden
def test_lists_and_progress_of_real_dumps_come_back(cycle):
    lines = progress = external = 0
    rules = DumpRules()
    for path in cycle.root.glob("steps/*/repl/c3Jj/*/hive/**/_files"):
        text = path.read_text()
        files = parse_files(text, rules, str(path), is_transactional=True)
        assert format_files(file.encoded for file in files) == text
        lines += len(files)
    for path in cycle.root.glob("steps/*/repl/c3Jj/*/hive/_events_dump"):
        assert EventsDump.parse(path.read_text()).format() == path.read_text()
        progress += 1
    for path in cycle.root.glob("steps/*/repl/c3Jj/*/hive/_file_list_external"):
        text = path.read_text()
        assert format_external_list(parse_external_list(text, rules, str(path))) == text
        external += 1
    assert (lines, progress, external) == (65, 5, 6)


def test_dump_metadata_of_hive_3_has_five_columns():
    metadata = DumpMetadata.parse("BOOTSTRAP\t548434\t548437\t/cmroot\tNULL\n")
    assert metadata.type == DumpType.BOOTSTRAP
    assert metadata.last_event_id == 548434
    assert metadata.cm_root == "/cmroot"
    assert metadata.payload is None
    assert metadata.scope is None


def test_dump_metadata_keeps_tabs_of_the_payload_out_of_the_columns():
    metadata = DumpMetadata(
        type="EVENT_UNKNOWN", from_event_id=EventId(1), to_event_id=EventId(1), payload="a\tb"
    )
    with pytest.raises(ReplError, match="tab or line end"):
        metadata.format()


def test_table_level_policies_are_read():
    text = "INCREMENTAL\t1\t2\tNULL\t0\tNULL\ttrue\nSrc\tt.*\tt9\n"
    metadata = DumpMetadata.parse(text)
    assert metadata.is_scope_modified
    assert metadata.scope == ReplScope(
        database_name="src", included_pattern="t.*", excluded_pattern="t9"
    )
    assert not metadata.scope.is_whole_database


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BOOTSTRAP\t1\t2\t3",
        "BOOTSTRAP\tx\t2\t/c\t0\tNULL\tfalse",
        "A\t1\t2\t/c\tNULL\nd\ta\tb\tc",
    ],
)
def test_damaged_dump_metadata_is_refused(text):
    with pytest.raises(ReplError):
        DumpMetadata.parse(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lastReplId":"x"}', "[" * 100_000])
def test_damaged_progress_is_refused(text):
    with pytest.raises(ReplError):
        EventsDump.parse(text)


def test_progress_of_early_versions_is_a_number():
    assert EventsDump.parse("77\n").last_event_id == 77


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version":"1.0","table":"x"}',
        '{"version":"0.2"}',
        '{"version":"0.2","table":3}',
        '{"version":"0.2","table":"{}","partitions":"p"}',
        '{"version":"0.2","table":"{}","repl.last.id":"x"}',
        '{"a":' * 100_000,
    ],
)
def test_damaged_object_metadata_is_refused(text):
    with pytest.raises(ReplError):
        TableMetadata.parse(text)


def test_transactions_with_gaps_are_written_as_a_list():
    payload = OpenTxnPayload(txn_ids=(TxnId(3), TxnId(5)))
    assert json.loads(payload.format())["txnIds"] == [3, 5]
    assert OpenTxnPayload.parse(payload.format(), "test").txn_ids == (3, 5)


def test_a_range_of_transactions_that_no_metastore_opens_is_refused():
    with pytest.raises(ReplError, match="no sensible range"):
        OpenTxnPayload.parse('{"fromTxnId":1,"toTxnId":9000000000}', "test")


def test_a_commit_whose_arrays_do_not_fit_is_refused():
    text = '{"txnid":1,"writeIds":[1],"databases":["d"],"tables":["a","b"],"partitions":[""]}'
    with pytest.raises(ReplError, match="not parallel"):
        CommitTxnPayload.parse(text, "test")


def test_entries_of_a_commit_are_matched_from_the_end():
    text = json.dumps(
        {
            "txnid": 9,
            "writeIds": [6, 3, 6, 3],
            "databases": ["d", "d", "d", "d"],
            "tables": ["a", "b"],
            "partitions": ["", "p=1"],
            "tableObjs": ["A", "B"],
            "partitionObjs": [None, "P"],
            "files": ["f1###x ] f2###y", "f3###z"],
        }
    )
    writes = CommitTxnPayload.parse(text, "test").writes
    assert [(one.target.table, one.write_id, one.partition, one.files) for one in writes] == [
        ("a", 6, "", ("f1###x", "f2###y")),
        ("b", 3, "p=1", ("f3###z",)),
    ]


@pytest.mark.parametrize("text", [None, "", "3", "null", "{" * 100_000])
def test_damaged_payloads_are_refused(text):
    with pytest.raises(ReplError):
        Payload.parse(text, "test")
