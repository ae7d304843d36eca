"""Texts by their kinds: what Hive is asked to write, what damage makes of it, what ours reads.

The first two are drawn from the numbers that are given, so that one seed brings the same again.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hms_bridge.acid.bucket_codec import encode_bucket
from hms_bridge.acid.names import (
    BucketFileName,
    DirectoryName,
    OriginalFileName,
    is_hidden,
    is_side_file,
)
from hms_bridge.model.catalog import Column
from hms_bridge.model.ids import MAX_ID, TxnId, WriteId
from hms_bridge.model.partition_name import escape, parse_partition_name, partition_name, unescape
from hms_bridge.model.valid_ids import (
    ValidTxnList,
    ValidTxnWriteIdList,
    ValidWriteIdList,
    WriteIdView,
)

Fields = dict[str, Any]
RANGE_MAX = 10**4
LETTERS = [*string.printable, *"\x00\x01\x1f\x7f %%%/=éßİ٣中\U0001f600\u2028"]
_NUMBERS = [*"0x٣", "007", "-1", "+5", "41", "1_0", str(2**31), str(MAX_ID), str(MAX_ID + 1)]
LISTED = [*_NUMBERS, *":::,,,--$$ \t.", "::", ",,", "3-5", "9-7", "null", "NULL", "$d.t:7:3:3:2"]
NAMED = [*_NUMBERS, *"___v-= .%~", "__", "_v", "_v0", "_copy_1", "_flush_length", "base_", "delta_"]
SPELLED = [*LETTERS, *"%%%%//==:", "%2F", "%2f", "%zz", "%+f", "%-1", "%-0", "%٣٣", "%%41", "/a="]


def write_list(numbers: random.Random, **also: object) -> Fields:
    """Some ids up to 40, in rows of one state."""
    ids = sorted(numbers.sample(range(1, 41), numbers.randrange(41)))
    view = numbers.choice(["reader", "compactor"])
    opened, bits, is_aborted = [], 0, view == "compactor"
    for at, one in enumerate(ids):
        is_aborted ^= view == "reader" and numbers.random() < 0.1
        bits |= is_aborted << at
        opened += [] if is_aborted else [one]
    return {
        "ids": ids, "aborted": [bits], "high": numbers.randint(40, 50),
        "min": min(opened, default=MAX_ID), "view": view, **also,
    }  # fmt: skip


def write_txns(numbers: random.Random) -> Fields:
    return write_list(numbers, ask="write txns")


def write_ids(numbers: random.Random) -> Fields:
    return write_list(numbers, ask="write ids", table=numbers.choice([None, "d.t", "c.Db.t_1"]))


def write_tables(numbers: random.Random) -> Fields:
    tables = numbers.sample(["d.t", "d.u", "e.t", "d.t_1"], numbers.randrange(4))
    lists = [write_list(numbers, table=table) for table in tables]
    return {"ask": "write tables", "txn": numbers.randrange(99), "lists": lists}


def write_partition(numbers: random.Random) -> Fields:
    keys = numbers.sample(["dt", "Hr", "a b", "Ünïcode", "x=y", "p/q", "5%"], numbers.randint(1, 3))
    values = ["".join(numbers.choices(LETTERS, k=numbers.randrange(6))) for _ in keys]
    return {"ask": "write partition", "keys": keys, "values": values}


def write_file(numbers: random.Random) -> Fields:
    first, last = sorted(numbers.choices([*range(1, 20), 10_000_001, MAX_ID], k=2))
    is_original, is_base = numbers.random() < 0.4, numbers.random() < 0.3
    return {
        "ask": "write file",
        "original": is_original,
        "base": is_base,
        "delete": not is_original and numbers.random() < 0.4,
        "min": first,
        "max": last,
        "statement": numbers.choice([-1, 0, 1, 4095]),
        "visibility": numbers.choice([0, 0, 7, 12345678]),
        "bucket": numbers.choice([0, 1, 4095, numbers.randrange(4096)]),
        "attempt": numbers.choice([None, 0, 3]),
        "copy": numbers.choice([None, 1, 12]) if is_original else None,
    }


def damaged(text: str, numbers: random.Random, pieces: Sequence[str]) -> str:
    """Cut, doubled, in another case, or with other pieces or numbers in it; once or twice."""
    for _ in range(numbers.randint(1, 2)):
        at = numbers.randrange(len(text) + 1)
        upto = min(len(text), at + numbers.randint(1, 4))
        head, middle, tail = text[:at], text[at:upto], text[upto:]
        other = re.sub(r"[0-9]+", numbers.choice(_NUMBERS), text, count=numbers.randint(1, 2))
        text = numbers.choice([
            head, tail, head + tail, head + middle * 2 + tail, head + middle.swapcase() + tail,
            head + numbers.choice(pieces) + middle + tail, other,
        ])  # fmt: skip
    return text


def takes_too_long(text: str) -> bool:
    """Whether Hive would make a list of more ids than a test has time and memory for."""
    ends = re.findall(r"(\d+)-\+?(\d+)", text)
    return any(int(last) - int(first) > RANGE_MAX for first, last in ends)


def question(kind: str, text: str, numbers: random.Random) -> Fields:
    """What a reader of this kind is asked about a text: ids and ranges near its numbers."""
    near = [int(one) + numbers.randint(-1, 1) for one in re.findall(r"[0-9]{1,5}", text)]
    probes = {one for one in [*near, *numbers.choices(range(1, 60), k=4)] if one > 0}
    views = [view.value for view in WriteIdView]
    if text.count(":") > 2 and text.split(":")[3]:
        views.remove("compactor")  # to whom nothing is open: its list ends below
    return {
        "ask": f"read {kind}", "text": text, "probes": sorted(probes),
        "ranges": [sorted(numbers.choices(range(1, 55), k=2)) for _ in range(4)],
        "view": numbers.choice(views),
        "tables": sorted({part.partition(":")[0] for part in text.split("$")[1:]} - {""}),
    }  # fmt: skip


def _txns(text: str, request: Fields) -> Fields:
    ids, probes = ValidTxnList.parse(text), [TxnId(one) for one in request["probes"]]
    return _described(ids) | {
        "valid": [one for one in probes if ids.is_valid(one)],
        "aborted": [one for one in probes if ids.is_aborted(one)],
    }


def _ids(text: str, request: Fields) -> Fields:
    ids = replace(ValidWriteIdList.parse(text), view=WriteIdView(request["view"]))
    probes = [WriteId(one) for one in request["probes"]]
    ranges = [(WriteId(first), WriteId(last)) for first, last in request["ranges"]]
    return _described(ids) | {
        "table": ids.table,
        "valid": [one for one in probes if ids.is_valid(one)],
        "aborted": [one for one in probes if ids.is_aborted(one)],
        "base": [one for one in probes if ids.is_base_valid(one)],
        "ranges valid": [ids.range_valid(*ends).name for ends in ranges],
        "ranges aborted": [ids.range_aborted(*ends).name for ends in ranges],
    }


def _tables(text: str, request: Fields) -> Fields:
    whole = ValidTxnWriteIdList.parse(text)
    found = {table: whole.of(table) for table in request["tables"]}
    lists = {table: _described(ids) | {"table": ids.table} for table, ids in found.items() if ids}
    return {"txn": whole.txn_id, **lists}


def _described(ids: ValidTxnList | ValidWriteIdList) -> Fields:
    lowest = None if ids.min_open == MAX_ID else ids.min_open
    invalid = sorted({one for of in (ids.open_ids, ids.aborted_ids) for one in of[:RANGE_MAX]})
    return {"high": ids.high_watermark, "min": lowest, "invalid": invalid}


def _partition(text: str, _: Fields) -> Fields:
    pairs = parse_partition_name(text)
    return {"spec": [list(pair) for pair in pairs], "values": [value for _, value in pairs]}


def _value(text: str, _: Fields) -> Fields:
    return {"plain": unescape(text), "escaped": escape(text)}


def _directory(text: str, _: Fields) -> Fields:
    name = DirectoryName.parse(text)
    if name is None:
        return {"refused": "no directory of the format"}
    first, last, statement = name.min_write_id, name.max_write_id, name.statement_id
    kind, visibility = name.kind.value, name.visibility_txn_id
    return {
        "kind": kind, "min": first, "max": last, "statement": statement, "visibility": visibility
    }  # fmt: skip


def _file(text: str, _: Fields) -> Fields:
    directory, _, name = text.rpartition("/")
    found = OriginalFileName.parse(name) or BucketFileName.parse(name)
    of = DirectoryName.parse(directory)
    answer: Fields = {
        "bucket": found.bucket_id if found else -1,
        "attempt": found.attempt_id if isinstance(found, BucketFileName) else None,
        "original": isinstance(found, OriginalFileName),
        "task": found.bucket_id if isinstance(found, OriginalFileName) else None,
        "hidden": is_hidden(name),
        "side": is_side_file(name),
    }
    if found:
        answer["property"] = encode_bucket(found.bucket_id, of.statement_id if of else None)
        answer["decoded"] = found.bucket_id
    return answer


def _file_again(text: str) -> str:
    directory, _, name = text.rpartition("/")
    found = OriginalFileName.parse(name) or BucketFileName.parse(name)
    assert found
    return f"{_directory_again(directory)}/{found.format()}"


def _directory_again(text: str) -> str:
    name = DirectoryName.parse(text)
    assert name
    return name.format()


def _partition_again(text: str) -> str:
    pairs = parse_partition_name(text)
    columns = [Column(name=key, type="string") for key, _ in pairs]
    return partition_name(columns, [value for _, value in pairs])


@dataclass(frozen=True, slots=True)
class Kind:
    """`again`: what ours writes of what it read, None where that may be another text. `part`: what
    of a written text is of this kind."""

    write: Callable[[random.Random], Fields]
    read: Callable[[str, Fields], Fields]
    pieces: Sequence[str]
    again: Callable[[str], str] | None
    part: Callable[[str], str] = str

    def damage(self, text: str, numbers: random.Random) -> str:
        """What is left of a text; of a path the directory stays whole."""
        if self.pieces is not NAMED:
            return damaged(text, numbers, self.pieces)
        directory, slash, name = text.rpartition("/")
        left = damaged(name, numbers, NAMED)
        return f"{directory}{slash}{left if left.strip('.') else 'x'}"  # no path of another place


KINDS = {
    "txns": Kind(write_txns, _txns, LISTED, None),
    "ids": Kind(write_ids, _ids, LISTED, lambda text: ValidWriteIdList.parse(text).format()),
    "tables": Kind(
        write_tables, _tables, LISTED, lambda text: ValidTxnWriteIdList.parse(text).format()
    ),
    "partition": Kind(write_partition, _partition, SPELLED, _partition_again),
    "value": Kind(
        write_partition,
        _value,
        SPELLED,
        lambda text: escape(unescape(text)),
        lambda text: text.partition("/")[0].partition("=")[2],
    ),
    "directory": Kind(
        write_file, _directory, NAMED, _directory_again, lambda text: text.partition("/")[0]
    ),
    "file": Kind(write_file, _file, NAMED, _file_again),
}
