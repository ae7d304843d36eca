"""The verdict on one table, from both of its described sides. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

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
from hms_bridge.repl.compare.layout import unequal_files
from hms_bridge.repl.compare.seen_write_ids import seen_on_one_side, seen_text
from hms_bridge.repl.whole_lists import ids_text
from hms_bridge.rows.row_sum import SeenRows

_STRAY_WHY = "no writer of ACID tables names a file so, and no reader opens it"
_LAID_OUT_WHY = "a compaction may be why; --rows tells whether the rows are the same"


def judge(
    name: str, source: DescribedTable, replica: DescribedTable, circumstances: Circumstances
) -> tuple[tuple[Finding, ...], Compared]:
    """All findings on a table, and how much was compared; one finding says that all of it is equal
    if nothing is different or undecided."""
    common = sorted(source.places.keys() & replica.places.keys())
    whole = _Judged(name)
    findings = [
        *_definitions(whole, source.definition, replica.definition),
        *_constraints(whole, source, replica, circumstances),
        *_missing_partitions(name, source, replica, circumstances),
    ]
    for part in common:  # "" is a table without partitions
        at, places = _Judged(name, part or None), (source.places[part], replica.places[part])
        findings += _place(at, *places)
        findings += _statistics(at, *places, circumstances)
    # Last: what the files say decides what an id means whose end nobody remembers.
    findings += _write_ids(whole, source, replica, circumstances, findings)
    compared = _compared(source, common)
    is_equal = not any(
        finding.verdict in (Verdict.DIFFERENT, Verdict.UNDECIDED) for finding in findings
    )
    if is_equal:
        what = _what_is_equal(source, common, compared)
        findings.insert(0, whole.finding(what, verdict=Verdict.EQUAL))
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
        parts.append(f"{counted(compared.files, 'file')} of the source")
    if any(place.rows is not None for place in places):
        parts.append(counted(compared.rows, "row"))
    columns = sum(len(place.statistics) for place in places)
    if columns:
        parts.append(f"statistics of {counted(columns, 'column')}")
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class _Judged:
    """Where something was looked at: a table, or one of its partitions."""

    table: str
    partition: str | None = None

    def finding(
        self,
        what: str,
        source: str | None = None,
        replica: str | None = None,
        verdict: Verdict = Verdict.DIFFERENT,
        why: str = "",
    ) -> Finding:
        return Finding(
            verdict=verdict,
            table=self.table,
            partition=self.partition,
            what=what,
            source=source,
            replica=replica,
            why=why,
        )

    def unless(
        self, why: str | None, what: str, source: str | None, replica: str | None
    ) -> Finding:
        """A difference; undecided where the source did since what may explain it."""
        if why is None:
            return self.finding(what, source, replica)
        return self.finding(what, source, replica, Verdict.UNDECIDED, why)


def _definitions(at: _Judged, source: Definition, replica: Definition) -> Iterator[Finding]:
    return (at.finding(*difference) for difference in differing(source, replica))


def _constraints(
    at: _Judged, source: DescribedTable, replica: DescribedTable, circumstances: Circumstances
) -> Iterator[Finding]:
    for what, ours, theirs in differing(source.constraints, replica.constraints):
        verdict, why = circumstances.excused.get(what, (Verdict.DIFFERENT, ""))
        yield at.finding(what, ours, theirs, verdict, why)


def _missing_partitions(
    table: str, source: DescribedTable, replica: DescribedTable, circumstances: Circumstances
) -> Iterator[Finding]:
    for part in sorted(source.places.keys() ^ replica.places.keys()):
        change = circumstances.changed_partitions.get(part)
        why = None if change is None else f"the source made it since: {change}"
        sides = _presence(part, source.places), _presence(part, replica.places)
        yield _Judged(table, part).unless(why, "partition", *sides)


def _presence(name: str, names: Container[str]) -> str:
    return "there" if name in names else "missing"


def _place(at: _Judged, source: DescribedPlace, replica: DescribedPlace) -> Iterator[Finding]:
    yield from _definitions(at, source.definition, replica.definition)
    yield from _files(at, source, replica)
    for path in sorted({*source.strays, *replica.strays}):
        sides = _presence(path, source.strays), _presence(path, replica.strays)
        yield at.finding(f"file {path}", *sides, Verdict.NOT_COMPARED, _STRAY_WHY)
    yield from _rows(at, source, replica)


def _rows(at: _Judged, source: DescribedPlace, replica: DescribedPlace) -> Iterator[Finding]:
    if source.fault or replica.fault:
        sides = source.fault or "can be read", replica.fault or "can be read"
        yield at.finding("rows", *sides)
    elif source.unread or replica.unread:
        why = source.unread or replica.unread
        yield at.finding("files and rows", verdict=Verdict.UNDECIDED, why=why)
    elif source.rows is not None and replica.rows is not None and source.rows != replica.rows:
        sides = _rows_text(source.rows, replica.rows), _rows_text(replica.rows, source.rows)
        yield at.finding("rows", *sides)


def _rows_text(seen: SeenRows, other: SeenRows) -> str:
    text = counted(seen.count, "row")
    return text if seen.count != other.count else f"{text} with sum {seen.checksum:032x}"


def _statistics(
    at: _Judged, source: DescribedPlace, replica: DescribedPlace, circumstances: Circumstances
) -> Iterator[Finding]:
    change = circumstances.changed_statistics
    why = None if change is None else f"the source changed them since, by {change}"
    for difference in differing(source.statistics, replica.statistics):
        yield at.unless(why, *difference)


def _files(at: _Judged, source: DescribedPlace, replica: DescribedPlace) -> Iterator[Finding]:
    """A layout of its own is worth a line only where the rows were not read."""
    if source.found is None or replica.found is None:
        return
    pairs = unequal_files(source.found, replica.found)
    for pair in pairs:
        if not pair.is_explained:
            file = pair.source or pair.replica
            what = f"file {file.path if file else ''}"
            yield at.finding(what, _file_text(pair.source), _file_text(pair.replica))
    laid_out = [pair for pair in pairs if pair.is_explained]
    if laid_out and (source.rows is None or replica.rows is None):
        ours = counted(sum(pair.source is not None for pair in laid_out), "file")
        theirs = counted(sum(pair.replica is not None for pair in laid_out), "file")
        yield at.finding("files", ours, theirs, Verdict.LAID_OUT, _LAID_OUT_WHY)


def _file_text(file: FoundFile | None) -> str:
    if file is None:
        return "missing"
    text = counted(file.size_bytes, "byte")
    return text if file.checksum is None else f"{text}, checksum {file.checksum}"


def _write_ids(
    at: _Judged,
    source: DescribedTable,
    replica: DescribedTable,
    circumstances: Circumstances,
    findings: list[Finding],
) -> Iterator[Finding]:
    """An id whose end a side may have forgotten says nothing by itself: what was aborted and
    cleaned up is listed nowhere. Files or rows show whether there is something under it."""
    ours, theirs = source.write_ids, replica.write_ids
    if ours is None or theirs is None:
        return
    unlike = seen_on_one_side(ours, theirs)
    known = [write_id for write_id in unlike if write_id not in circumstances.forgotten]
    sides = seen_text(ours), seen_text(theirs)
    if known:
        yield at.finding(f"write ids {ids_text(known)}", *sides)
    elif unlike and any(finding.verdict is Verdict.LAID_OUT for finding in findings):
        why = "one side knows no more whether they were committed; --rows tells"
        yield at.finding(f"write ids {ids_text(unlike)}", *sides, Verdict.UNDECIDED, why)
