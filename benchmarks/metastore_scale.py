"""That an answer takes as long as what is in it, whatever lies beside it: of much against little,
and of much against Hive's.

Nothing of a kind is made through the servers that would take hours, as a hundred thousand
partitions: both databases are given the same rows of Hive's own tables.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hive_metastore import ttypes

from benchmarks import metastore_program as program
from benchmarks.report import Ratio
from integration.referees.postgresql import Database

CALLS = 5
LINEAR = 0.8
"""Times as fast a thing of many is to be answered as one of few; 1 is just as fast."""
FIRST_EVENT = 10_000_000
_FIRST_PARTITION = 100_000_000
"""Numbers above those that the servers give meanwhile."""

EVENTS_ASKED = 1000
_DATABASE, _TABLE, _PARTITIONED = program.DATABASE, program.TABLE, program.PARTITIONED

Read = Callable[[Any, "Sizes"], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """How much of each kind a metastore has."""

    partitions: int
    txns: int
    events: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A call: how many things are in its answer, and of how many they are."""

    what: str
    read: Read
    count: Callable[[Sizes], int]
    of: Callable[[Sizes], int]


def _partitions(sizes: Sizes) -> int:
    return sizes.partitions


def _txns(sizes: Sizes) -> int:
    return sizes.txns


def write_events(database: Database, count: int) -> None:
    """A log of events as if it had been written long ago."""
    database.execute(
        'insert into "NOTIFICATION_LOG" ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE", '
        '"CAT_NAME", "DB_NAME", "TBL_NAME", "MESSAGE", "MESSAGE_FORMAT") '
        f"select {FIRST_EVENT} + n, {FIRST_EVENT} + n, extract(epoch from now())::int, "
        f"'COMMIT_TXN', 'hive', '{_DATABASE}', '{_TABLE}', repeat('m', 300), "
        f"'json-0.2' from generate_series(1, {count}) as n"
    )
    _tidy(database)


def write_partitions(database: Database, count: int) -> None:
    """Give the partitioned table more partitions, all like its partition 0."""
    like = (
        f'select {_FIRST_PARTITION} + n as n, p."CREATE_TIME", p."TBL_ID", s."CD_ID", '
        's."INPUT_FORMAT", s."OUTPUT_FORMAT", s."LOCATION", v."SLIB" '
        f"from generate_series(1, {count}) as n "
        'join "PARTITIONS" p on p."PART_NAME" = \'ds=0\' '
        'join "SDS" s on s."SD_ID" = p."SD_ID" join "SERDES" v on v."SERDE_ID" = s."SERDE_ID"'
    )
    for table, columns, values in (
        ("SERDES", '"SERDE_ID", "SLIB"', 'n, "SLIB"'),
        (
            "SERDE_PARAMS",
            '"SERDE_ID", "PARAM_KEY", "PARAM_VALUE"',
            "n, 'serialization.format', '1'",
        ),
        (
            "SDS",
            '"SD_ID", "CD_ID", "SERDE_ID", "INPUT_FORMAT", "OUTPUT_FORMAT", "LOCATION", '
            '"NUM_BUCKETS", "IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES"',
            'n, "CD_ID", n, "INPUT_FORMAT", "OUTPUT_FORMAT", "LOCATION" || n, -1, false, false',
        ),
        (
            "PARTITIONS",
            '"PART_ID", "SD_ID", "TBL_ID", "PART_NAME", "CREATE_TIME", "LAST_ACCESS_TIME"',
            'n, n, "TBL_ID", \'ds=\' || n, "CREATE_TIME", 0',
        ),
        ("PARTITION_KEY_VALS", '"PART_ID", "PART_KEY_VAL", "INTEGER_IDX"', "n, n::text, 0"),
        (
            "PARTITION_PARAMS",
            '"PART_ID", "PARAM_KEY", "PARAM_VALUE"',
            "n, 'transient_lastDdlTime', \"CREATE_TIME\"::text",
        ),
    ):
        database.execute(f'insert into "{table}" ({columns}) select {values} from ({like}) as rows')
    _tidy(database)


def _tidy(database: Database) -> None:
    """After many rows: else the server does it, and writes them to the disk, while calls are
    measured."""
    database.execute("vacuum analyze")
    database.execute("checkpoint")


def _snapshot(client: Any) -> str:
    opened = client.get_open_txns()
    ids = ",".join(map(str, opened.open_txns))
    return f"{opened.txn_high_water_mark}:{opened.min_open_txn}:{ids}:"


def _valid_write_ids(client: Any, _sizes: Sizes) -> object:
    names = [f"{_DATABASE}.{_TABLE}"]
    return client.get_valid_write_ids(
        ttypes.GetValidWriteIdsRequest(fullTableNames=names, validTxnList=_snapshot(client))
    )


def _events(client: Any, sizes: Sizes) -> object:
    last = FIRST_EVENT + (sizes.events - EVENTS_ASKED) // 2
    return client.get_next_notification(
        ttypes.NotificationEventRequest(lastEvent=last, maxEvents=EVENTS_ASKED)
    )


PARTITION_READS = (
    Asked(
        what="get_partition_names",
        read=lambda client, _: client.get_partition_names(_DATABASE, _PARTITIONED, -1),
        count=_partitions,
        of=_partitions,
    ),
    Asked(
        what="get_partitions",
        read=lambda client, _: client.get_partitions(_DATABASE, _PARTITIONED, -1),
        count=_partitions,
        of=_partitions,
    ),
    Asked(
        what="get_partitions_by_filter",
        read=lambda client, _: client.get_partitions_by_filter(
            _DATABASE, _PARTITIONED, 'ds = "500"', -1
        ),
        count=lambda _: 1,
        of=_partitions,
    ),
)
TXN_READS = (
    Asked(
        what="get_open_txns", read=lambda client, _: client.get_open_txns(), count=_txns, of=_txns
    ),
    Asked(
        what="get_open_txns and get_valid_write_ids", read=_valid_write_ids, count=_txns, of=_txns
    ),
    Asked(
        what="show_locks",
        read=lambda client, _: client.show_locks(ttypes.ShowLocksRequest()),
        count=_txns,
        of=_txns,
    ),
    Asked(
        what="get_next_notification",
        read=_events,
        count=lambda _: EVENTS_ASKED,
        of=lambda sizes: sizes.events,
    ),
)


def medians(sides: Sequence[tuple[Any, Sizes]], read: Read, calls: int = CALLS) -> list[float]:
    """Milliseconds of one call, of each side; they are asked in turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(calls):
        for (client, sizes), found in zip(sides, times, strict=True):
            found.append(_milliseconds(partial(read, client, sizes)))
    return [statistics.median(found) for found in times]


def linear_ratios(
    much: tuple[int, Sizes], little: tuple[int, Sizes], reads: Sequence[Asked]
) -> Iterator[Ratio]:
    """Of two of our servers, by their ports."""
    with program.connected(much[0]) as first, program.connected(little[0]) as second:
        for asked in reads:
            sides = ((first, much[1]), (second, little[1]))
            times = medians(sides, asked.read)
            counts = [asked.count(sizes) for _, sizes in sides]
            of_each = [took / count for took, count in zip(times, counts, strict=True)]
            yield Ratio(
                what=f"{asked.what}, each of {counts[0]} of {asked.of(much[1])} against each of "
                f"{counts[1]} of {asked.of(little[1])}",
                ours=f"{of_each[0] * 1000:.1f} us",
                theirs=f"{of_each[1] * 1000:.1f} us",
                ratio=of_each[1] / of_each[0],
                target=LINEAR,
            )


def _milliseconds(work: Callable[[], object]) -> float:
    """Without the client's search for garbage, and until the answer is here: to let go of a hundred
    thousand objects takes long, too."""
    gc.disable()
    started = time.perf_counter()
    answer = work()
    took = (time.perf_counter() - started) * 1000
    gc.enable()
    del answer
    return took
