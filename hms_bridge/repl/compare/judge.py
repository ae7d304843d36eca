"""The verdict on one table, from both of its described sides. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hms_bridge.model.counted import counted
from hms_bridge.repl.compare.definitions import Definition, differing
from hms_bridge.repl.compare.described import (
    Circumstances,
    Compared,
    DescribedPlace,
    DescribedTable,
    Finding,
    FoundFile,
    Verdict,
)
from hms_bridge.repl.compare.layout import FilePair, unequal_files
from hms_bridge.repl.compare.seen_write_ids import ids_text, seen_on_one_side, seen_text
from hms_bridge.rows.row_sum import SeenRows

_LAID_OUT_WHY = "a compaction may be why; --rows tells whether the rows are the same"


def judge(
    name: str, source: DescribedTable, replica: DescribedTable, circumstances: Circumstances
) -> tuple[tuple[Finding, ...], Compared]:
    """All findings on a table, and how much was compared; one finding says that all of it is equal
    if nothing is different or undecided."""
    common = sorted(source.places.keys() & replica.places.keys())
    findings = [
        *_definitions(name, None, source.definition, replica.definition),
        *_constraints(name, source, replica, circumstances),
        *_missing_partitions(name, source, replica, circumstances),
    ]
    for part in common:  # "" is a table without partitions
        findings += _place(name, part or None, source.places[part], replica.places[part])
        findings += _statistics(
            name, part or None, source.places[part], replica.places[part], circumstances
        )
    # Last: what the files say decides what an id means whose end nobody remembers.
    findings += _write_ids(name, source, replica, circumstances, findings)
    compared = _compared(source, common)
    is_equal = not any(
        finding.verdict in (Verdict.DIFFERENT, Verdict.UNDECIDED) for finding in findings
    )
    if is_equal:
        what = _what_is_equal(source, common, compared)
        findings.insert(0, Finding(verdict=Verdict.EQUAL, table=name, what=what))
    return tuple(findings), compared


def _compared(source: DescribedTable, common: list[str]) -> Compared:
    places = [source.places[part] for part in common]
    return Compared(
        tables=1,
        partitions=sum(part != "" for part in common),
        files=sum(len(place.found.files) for place in places if place.found is not None),
        rows=sum(place.rows.count for place in places if place.rows is not None),
        constraints=len(source.constraints),
    )


def _what_is_equal(source: DescribedTable, common: list[str], compared: Compared) -> str:
    """Only what was looked at."""
    places = [source.places[part] for part in common]
    parts = ["definition"]
    if source.constraints:
        parts.append(counted(len(source.constraints), "constraint"))
    if any(common):
        parts.append(counted(compared.partitions, "partition"))
    if source.write_ids is not None:
        parts.append(f"write ids {seen_text(source.write_ids)}")
    if any(place.found is not None for place in places):
        parts.append(counted(compared.files, "file"))
    if any(place.rows is not None for place in places):
        parts.append(counted(compared.rows, "row"))
    columns = sum(len(place.statistics) for place in places)
    if columns:
        parts.append(f"statistics of {counted(columns, 'column')}")
    return ", ".join(parts)


def _definitions(
    table: str, partition: str | None, source: Definition, replica: Definition
) -> Iterator[Finding]:
    for what, ours, theirs in differing(source, replica):
        yield Finding(
            verdict=Verdict.DIFFERENT,
            table=table,
            partition=partition,
            what=what,
            source=ours,
            replica=theirs,
        )


def _constraints(
    table: str, source: DescribedTable, replica: DescribedTable, circumstances: Circumstances
) -> Iterator[Finding]:
    for what, ours, theirs in differing(source.constraints, replica.constraints):
        verdict, why = circumstances.excused.get(what, (Verdict.DIFFERENT, ""))
        yield Finding(verdict=verdict, table=table, what=what, source=ours, replica=theirs, why=why)


def _missing_partitions(
    table: str, source: DescribedTable, replica: DescribedTable, circumstances: Circumstances
) -> Iterator[Finding]:
    for part in sorted(source.places.keys() ^ replica.places.keys()):
        changed = circumstances.changed_partitions.get(part)
        yield Finding(
            verdict=Verdict.DIFFERENT if changed is None else Verdict.UNDECIDED,
            table=table,
            partition=part,
            what="partition",
            source="there" if part in source.places else "missing",
            replica="there" if part in replica.places else "missing",
            why="" if changed is None else f"the source made it since: {changed}",
        )


def _place(
    table: str, partition: str | None, source: DescribedPlace, replica: DescribedPlace
) -> Iterator[Finding]:
    yield from _definitions(table, partition, source.definition, replica.definition)
    yield from _files(table, partition, source, replica)
    for path in sorted({*source.strays, *replica.strays}):
        yield Finding(
            verdict=Verdict.NOT_COMPARED,
            table=table,
            partition=partition,
            what=f"file {path}",
            source="there" if path in source.strays else "missing",
            replica="there" if path in replica.strays else "missing",
            why="no writer of ACID tables names a file so, and no reader opens it",
        )
    yield from _rows(table, partition, source, replica)


def _rows(
    table: str, partition: str | None, source: DescribedPlace, replica: DescribedPlace
) -> Iterator[Finding]:
    if source.fault or replica.fault:
        yield Finding(
            verdict=Verdict.DIFFERENT,
            table=table,
            partition=partition,
            what="rows",
            source=source.fault or "can be read",
            replica=replica.fault or "can be read",
        )
    elif source.unread or replica.unread:
        yield Finding(
            verdict=Verdict.UNDECIDED,
            table=table,
            partition=partition,
            what="files and rows",
            why=source.unread or replica.unread,
        )
    elif source.rows is not None and replica.rows is not None and source.rows != replica.rows:
        yield Finding(
            verdict=Verdict.DIFFERENT,
            table=table,
            partition=partition,
            what="rows",
            source=_rows_text(source.rows, replica.rows),
            replica=_rows_text(replica.rows, source.rows),
        )


def _rows_text(seen: SeenRows, other: SeenRows) -> str:
    text = counted(seen.count, "row")
    return text if seen.count != other.count else f"{text} with sum {seen.checksum:032x}"


def _statistics(
    table: str,
    partition: str | None,
    source: DescribedPlace,
    replica: DescribedPlace,
    circumstances: Circumstances,
) -> Iterator[Finding]:
    changed = circumstances.changed_statistics
    for what, ours, theirs in differing(source.statistics, replica.statistics):
        yield Finding(
            verdict=Verdict.DIFFERENT if changed is None else Verdict.UNDECIDED,
            table=table,
            partition=partition,
            what=what,
            source=ours,
            replica=theirs,
            why="" if changed is None else f"the source changed them since, by {changed}",
        )


def _files(
    table: str, partition: str | None, source: DescribedPlace, replica: DescribedPlace
) -> Iterator[Finding]:
    """A layout of its own is worth a line only where the rows were not read."""
    if source.found is None or replica.found is None:
        return
    pairs = unequal_files(source.found, replica.found)
    for pair in pairs:
        if not pair.is_explained:
            yield _file(table, partition, pair)
    laid_out = [pair for pair in pairs if pair.is_explained]
    if laid_out and (source.rows is None or replica.rows is None):
        yield Finding(
            verdict=Verdict.LAID_OUT,
            table=table,
            partition=partition,
            what="files",
            source=counted(sum(pair.source is not None for pair in laid_out), "file"),
            replica=counted(sum(pair.replica is not None for pair in laid_out), "file"),
            why=_LAID_OUT_WHY,
        )


def _file(table: str, partition: str | None, pair: FilePair) -> Finding:
    file = pair.source or pair.replica
    return Finding(
        verdict=Verdict.DIFFERENT,
        table=table,
        partition=partition,
        what=f"file {file.path if file else ''}",
        source=_file_text(pair.source),
        replica=_file_text(pair.replica),
    )


def _file_text(file: FoundFile | None) -> str:
    if file is None:
        return "missing"
    text = counted(file.size_bytes, "byte")
    return text if file.checksum is None else f"{text}, checksum {file.checksum}"


def _write_ids(
    table: str,
    source: DescribedTable,
    replica: DescribedTable,
    circumstances: Circumstances,
    findings: list[Finding],
) -> Iterator[Finding]:
    """An id whose end nobody remembers says nothing by itself: what was aborted and cleaned up is
    listed nowhere. Files or rows tell whether there is something under it."""
    ours, theirs = source.write_ids, replica.write_ids
    if ours is None or theirs is None:
        return
    unlike = seen_on_one_side(ours, theirs)
    known = [write_id for write_id in unlike if write_id not in circumstances.forgotten]
    if known:
        yield Finding(
            verdict=Verdict.DIFFERENT,
            table=table,
            what=f"write ids {ids_text(known)}",
            source=seen_text(ours),
            replica=seen_text(theirs),
        )
    elif unlike and any(finding.verdict is Verdict.LAID_OUT for finding in findings):
        yield Finding(
            verdict=Verdict.UNDECIDED,
            table=table,
            what=f"write ids {ids_text(unlike)}",
            source=seen_text(ours),
            replica=seen_text(theirs),
            why="one side knows no more whether they were committed; --rows tells",
        )
