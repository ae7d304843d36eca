from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from changemanager.filesystem.local import LocalVolume
from hms_bridge.errors import AcidFormatError, NotOrcError
from hms_bridge.orc import proto
from hms_bridge.orc.acid_reader import OrcFile
from hms_bridge.orc.hive_types import hive_type_text
from hms_bridge.orc.stripe_reader import ReadForm
from hms_bridge.orc.tail import Calendar, OrcTail, encode_tail, read_tail, tail_of_file
from hms_bridge.orc.timestamps import TimestampForm
from tests.support.golden import golden_roots, golden_stages

LOCAL = LocalVolume()


def small_file(**options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table({"a": [1, 2, 3]}), sink, **options)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "content", [b"", b"ORC", b"hello", b"PAR1" * 1000, bytes(100), b"x" * 20_000, b"ORC\xff"]
)
def test_what_is_no_orc_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NotOrcError, match=str(path)):
        read_tail(LOCAL, str(path))


def test_truncated_files_are_errors() -> None:
    content = small_file()
    for length in range(len(content)):
        with pytest.raises(AcidFormatError):
            tail_of_file(io.BytesIO(content[:length]))


def test_the_logical_length_decides() -> None:
    content = small_file()
    tail = tail_of_file(io.BytesIO(content + b"unflushed"), "p", len(content))
    assert (tail.row_count, tail.length_bytes) == (3, len(content))
    with pytest.raises(AcidFormatError, match="are due"):
        tail_of_file(io.BytesIO(content), "p", len(content) + 1)


def changed(content: bytes, change: Any) -> bytes:
    tail = tail_of_file(io.BytesIO(content))
    footer = proto.Footer.FromString(tail.footer_message)
    change(footer)
    return content + encode_tail(
        footer,
        proto.Metadata.FromString(tail.statistics_message),
        compression=tail.compression,
        block_size_bytes=tail.block_size_bytes,
        version=tail.version,
        writer_version=tail.writer_version,
    )


def test_unknown_fields_are_kept() -> None:
    raw = bytes([0xF8, 0x07, 5])  # field 127, varint 5
    content = changed(small_file(), lambda footer: footer.MergeFromString(raw))
    again = changed(content, lambda footer: None)
    assert raw in tail_of_file(io.BytesIO(again)).footer_message


def _rows(footer: Any, count: int) -> None:
    footer.number_of_rows = count
    footer.stripes[0].number_of_rows = count


@pytest.mark.parametrize(
    "change",
    [
        lambda footer: _rows(footer, 1 << 50),
        lambda footer: setattr(footer, "number_of_rows", 4),
        lambda footer: setattr(footer.stripes[0], "offset", 1 << 40),
        lambda footer: setattr(footer, "calendar", 9),
        lambda footer: setattr(footer.types[1], "kind", 77),
        lambda footer: footer.stripes.add().CopyFrom(footer.stripes[0]),
        lambda footer: footer.ClearField("types"),
    ],
)
def test_tails_that_contradict_themselves(change: Any) -> None:
    with pytest.raises(AcidFormatError):
        tail_of_file(io.BytesIO(changed(small_file(), change)))


def test_encrypted_files_are_refused() -> None:
    content = changed(small_file(), lambda footer: setattr(footer, "encryption", b"\x08\x01"))
    file = io.BytesIO(content)
    opened = OrcFile(file, tail_of_file(file), ReadForm())
    with pytest.raises(AcidFormatError, match="encrypted"):
        opened.read_rows(0)


def test_damage_never_surprises() -> None:
    """Whatever byte is wrong, it is an AcidFormatError or rows."""
    chance = random.Random(7)
    root = golden_roots("acid")[0]
    found = sorted(root.glob("g11_types/*/files/*/bucket_*")) or sorted(root.rglob("bucket_*"))
    content = found[-1].read_bytes()
    outcomes = set()
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 2, 5))):
            start = 0 if chance.random() < 0.3 else max(0, len(content) - 900)
            damaged[chance.randrange(start, len(content))] = chance.randrange(256)
        outcomes.add(_outcome(bytes(damaged)))
    assert {"rows", "NotOrcError", "AcidFormatError"} <= outcomes


def _outcome(content: bytes) -> str:
    file = io.BytesIO(content)
    try:
        opened = OrcFile(file, tail_of_file(file), ReadForm(timestamps=TimestampForm.PARTS))
        for number in range(opened.stripe_count):
            opened.read_events(number)
    except AcidFormatError as error:
        return type(error).__name__
    return "rows"


def _golden_files() -> list[tuple[str, dict[str, Any]]]:
    return [
        (str(stage.files / entry["path"]), entry["orc"])
        for stage in golden_stages("full_acid")
        for entry in stage.state["files"]
        if "orc" in entry
    ]


@pytest.mark.golden
def test_tails_say_what_hive_recorded() -> None:
    files = _golden_files()
    assert len(files) > 50
    for path, told in files:
        tail = read_tail(LOCAL, path)
        assert _summary(tail) == {key: told[key] for key in _summary(tail)}, path
        assert tail.calendar is Calendar.JULIAN_GREGORIAN
        assert len(tail.stripe_statistics()) == len(tail.stripes)


def _summary(tail: OrcTail) -> dict[str, Any]:
    return {
        "rows": tail.row_count,
        "stripes": len(tail.stripes),
        "schema": hive_type_text(tail.schema),
        "compression": tail.compression.name,
        "compression_block_size": tail.block_size_bytes,
        "row_index_stride": tail.row_index_stride,
        "user_metadata": {name: value.decode() for name, value in tail.user_metadata.items()},
        "writer_version": str(tail.writer_version),
        "format_version": list(tail.version),
        "software_version": f"ORC Java {tail.software_version}",
    }
