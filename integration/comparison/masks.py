"""What may differ between two engines that did the same: one table, a reason for each line.

A mask names a kind of record and a field path (a regular expression over the whole path; list
positions are `[]`). It replaces the value, or the parts of a text that `part` matches; with
`is_order`, it only puts a list into a fixed order; with `may_be_missing`, it takes the field away,
which one side may lack. What no mask covers has to be equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["row", "file", "queue", "notification"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mask:
    """One thing that is not compared."""

    kind: Kind
    path: str
    reason: str
    part: str | None = None
    replacement: str = "*"
    is_order: bool = False
    may_be_missing: bool = False


CLOCK = "when it ran, not what it did"
COUNTER = "counts everything that ever happened in that metastore, also before and beside the case"
THRIFT_OBJECT = r"MESSAGE\.\w+Json(\.\[\])?"
PROCESS = "names the machine, thread or job that did the work"

MASKS = (
    Mask(
        kind="file",
        path="path",
        part=r"_v\d+",
        replacement="_vT",
        reason=f"visibility transaction id: {COUNTER}",
    ),
    Mask(
        kind="file",
        path="path",
        part=r"(delete_delta_[^/]*/bucket_\d+)_0",
        replacement=r"\1",
        reason="Trino and Hive 3 miss delete events in files named after an attempt; ours are not",
    ),
    Mask(kind="queue", path="ID|TXN_ID|NEXT_TXN_ID", reason=COUNTER),
    Mask(kind="queue", path="ENQUEUE_TIME|START|END|COMMIT_TIME|CLEANER_START", reason=CLOCK),
    Mask(kind="queue", path="WORKER_ID|INITIATOR_ID|HADOOP_JOB_ID", reason=PROCESS),
    Mask(
        kind="queue",
        path="WORKER_VERSION|INITIATOR_VERSION",
        reason="names the program and its release; that they differ is the point of the comparison",
    ),
    Mask(kind="notification", path="EVENT_ID|NL_ID", reason=f"{COUNTER}; the order is compared"),
    Mask(
        kind="notification",
        path=r"EVENT_TIME|MESSAGE\.timestamp",
        reason=CLOCK,
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\.(txnid|fromTxnId|toTxnId|compactionId|txnIdList\.\[\])",
        reason=COUNTER,
    ),
    Mask(
        kind="notification",
        path=rf"{THRIFT_OBJECT}\.(25|28)\.i64",
        reason=f"ids of the table and of the transaction inside a thrift object: {COUNTER}",
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\.(partitions|partitionFiles|partitionListJson)",
        is_order=True,
        reason="one statement adds its partitions in several threads",
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\.files\.\[\]",
        part="(?<=##)[^#]+(?=#)",
        reason="every metastore has an archive of its own; that files name it is compared",
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\.(server|servicePrincipal)",
        reason="the address by which that metastore is reached",
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\..*\.transient_lastDdlTime",
        reason=CLOCK,
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\..*\.last_modified_time|MESSAGE\.colStatsJson\.1\.rec\.5\.i64",
        reason=CLOCK,
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\.functionObjJson\.6\.i32",
        reason=f"when a function was made: {CLOCK}",
    ),
    Mask(
        kind="notification",
        path=r"MESSAGE\.functionObjJson\.4",
        reason="the owner, when a session has no user to send: Hive then names who is connected",
        may_be_missing=True,
    ),
    Mask(
        kind="notification",
        path=rf"{THRIFT_OBJECT}\.16\.rec\.(6\.i64|7\.lst\.\[\]\.1\.rec\.(4\.i32|25\.i64))",
        reason=f"when a materialized view and its tables were made, and their ids: {CLOCK}",
    ),
    Mask(
        kind="notification",
        path=rf"{THRIFT_OBJECT}\.16\.rec\.5\.str\.validTxnList",
        reason="transaction ids, and write ids in the order of a Java hash map of table names",
    ),
    Mask(
        kind="notification",
        path=rf"{THRIFT_OBJECT}\.16\.rec\.7\.lst\.\[\]\.1\.rec\.22",
        reason="what the client may do with a view's table, which it heard from the metastore",
        may_be_missing=True,
    ),
    Mask(
        kind="notification",
        path=rf"{THRIFT_OBJECT}\.(4|5|9)\.i32",
        reason=f"create and last access time inside a thrift object: {CLOCK}",
    ),
)


def masked(kind: Kind, record: Mapping[str, Any], masks: Iterable[Mask] = MASKS) -> dict[str, Any]:
    """The record with its masked values replaced."""
    chosen = [mask for mask in masks if mask.kind == kind]
    return {key: _walk(value, key, chosen, set()) for key, value in record.items()}


def masks_that_hide(
    kind: Kind, record: Mapping[str, Any], masks: Iterable[Mask] = MASKS
) -> set[Mask]:
    """The masks that replace something in this record."""
    used: set[Mask] = set()
    _walk(record, "", [mask for mask in masks if mask.kind == kind], used)
    return used


def _walk(value: Any, path: str, masks: list[Mask], used: set[Mask]) -> Any:
    if isinstance(value, Mapping):
        paths = {key: f"{path}.{key}" if path else key for key in value}
        return {
            key: _walk(inner, paths[key], masks, used)
            for key, inner in value.items()
            if not _is_taken_away(paths[key], masks, used)
        }
    if isinstance(value, list):
        items = [_walk(inner, f"{path}.[]", masks, used) for inner in value]
        return _in_order(items, path, masks, used)
    for mask in masks:
        is_for_values = not mask.is_order and not mask.may_be_missing
        if value is not None and is_for_values and re.fullmatch(mask.path, path):
            hidden = (
                mask.replacement
                if mask.part is None
                else re.sub(mask.part, mask.replacement, value)
            )
            if hidden != value:
                used.add(mask)
                value = hidden
    return value


def _is_taken_away(path: str, masks: list[Mask], used: set[Mask]) -> bool:
    taking = [mask for mask in masks if mask.may_be_missing and re.fullmatch(mask.path, path)]
    used.update(taking)
    return bool(taking)


def _in_order(items: list[Any], path: str, masks: list[Mask], used: set[Mask]) -> list[Any]:
    for mask in masks:
        if mask.is_order and re.fullmatch(mask.path, path):
            used.add(mask)
            return sorted(items, key=json.dumps)
    return items
