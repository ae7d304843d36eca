"""From the log of a real metastore, the event directories that its REPL DUMP wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hms_bridge.repl.dump.event_source import concerns
from hms_bridge.repl.dump.events import EventWriter
from hms_bridge.repl.format.dump_metadata import DumpMetadata
from hms_bridge.repl.format.event_payload import CommitTxnPayload
from hms_bridge.repl.format.files_list import format_files
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.stored_message import message_json

DUMPS = {"07": 328, "11": 253, "14": 114, "17": 105, "19": 60}


def unordered(value):
    """Thrift JSON keeps maps in the order of a Java HashMap, which means nothing."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return unordered(json.loads(value))
        except ValueError:
            return value
    if isinstance(value, dict):
        return {key: unordered(one) for key, one in value.items()}
    if isinstance(value, list):
        return [unordered(one) for one in value]
    return value


def meaning(path: str, text: str):
    if path.endswith("_dumpmetadata"):
        columns = text.split("\t")
        return [*columns[:5], unordered(columns[5]), *columns[6:]]
    return unordered(text)


def written(cycle, number: str) -> dict[str, str]:
    hive = cycle.dump(number) / "hive"
    metadata = DumpMetadata.parse((hive / "_dumpmetadata").read_text())
    writer = EventWriter(database_name="src", cm_root=metadata.cm_root)
    found: dict[str, str] = {}
    for event_id in range(metadata.from_event_id + 1, metadata.to_event_id + 1):
        event = cycle.events[event_id]
        if not concerns(event, "src"):
            continue
        writes = ()
        if event.type == "COMMIT_TXN":
            commit = CommitTxnPayload.parse(message_json(event), "test")
            writes = cycle.write_events.get(commit.txn_id, ())
        paths = DumpPaths(str(hive.parent)).event(event_id, batch=1)
        texts = writer.write(event, paths, writes)
        if texts is not None:
            found.update(texts.texts)
            found.update({one.path: format_files(one.files) for one in texts.lists})
    return found


@pytest.mark.golden
@pytest.mark.parametrize("number", DUMPS)
def test_event_directories_are_those_of_real_hive(cycle, number):
    above = cycle.dump(number) / "hive" / "events_batch_1"
    real = {str(path): path.read_text() for path in above.rglob("*") if path.is_file()}
    ours = written(cycle, number)
    assert sorted(ours) == sorted(real)
    assert len(ours) == DUMPS[number]
    for path, text in real.items():
        assert meaning(path, ours[path]) == meaning(path, text), path


@pytest.mark.golden
def test_most_event_files_are_byte_for_byte_those_of_real_hive(cycle):
    equal = total = 0
    for number in DUMPS:
        for path, text in written(cycle, number).items():
            equal += Path(path).read_bytes() == text.encode()
            total += 1
    assert (equal, total) == (798, 860)
