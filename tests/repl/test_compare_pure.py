"""The comparison of what was described, without any files."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.acid.names import DirectoryName
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.compare.definitions import IGNORED_PREFIXES, IGNORED_PROPERTIES
from hms_bridge.repl.compare.described import (
    Circumstances,
    DescribedPlace,
    DescribedTable,
    FoundDirectory,
    FoundFile,
    FoundFiles,
    Verdict,
)
from hms_bridge.repl.compare.judge import judge
from hms_bridge.repl.compare.layout import unequal_files
from hms_bridge.repl.compare.seen_write_ids import (
    seen_at_event,
    seen_on_one_side,
    seen_text,
)
from hms_bridge.repl.whole_lists import ids_text
from hms_bridge.rows.row_sum import SeenRows

IDS = st.sets(st.integers(1, 12))


def write_ids(high: int, opened: set[int], aborted: set[int]) -> ValidWriteIdList:
    return ValidWriteIdList(
        table="d.t",
        high_watermark=WriteId(high),
        open_ids=tuple(WriteId(one) for one in opened if one <= high),
        aborted_ids=tuple(WriteId(one) for one in aborted if one <= high),
    )


LISTS = st.builds(write_ids, st.integers(0, 12), IDS, IDS)


def seen(ids: ValidWriteIdList) -> set[int]:
    return {one for one in range(1, 20) if ids.is_valid(WriteId(one))}


@given(LISTS, LISTS)
def test_ids_that_one_side_sees(one: ValidWriteIdList, other: ValidWriteIdList) -> None:
    assert set(seen_on_one_side(one, other)) == seen(one) ^ seen(other)
    assert seen_on_one_side(one, other) == seen_on_one_side(other, one)
    assert (seen_text(one) == seen_text(other)) == (seen(one) == seen(other))


@given(LISTS, IDS, st.none() | LISTS)
def test_what_came_later_is_unseen_unless_the_replica_shows_it(
    now: ValidWriteIdList, later: set[int], replica: ValidWriteIdList | None
) -> None:
    at_event = seen_at_event(now, later={WriteId(one) for one in later}, replica=replica)
    shown = set() if replica is None else seen(replica)
    assert seen(at_event) == seen(now) - (later - shown)


def test_ids_are_named_up_to_a_number() -> None:
    assert ids_text([3, 5]) == "3, 5"
    assert ids_text(range(1, 24)).endswith("20 and 3 more")


# -- files


def written(write_id: int, size: int = 10, *, is_delete: bool = False) -> FoundFile:
    make = DirectoryName.delete_delta if is_delete else DirectoryName.delta
    directory = FoundDirectory(name=make(WriteId(write_id), WriteId(write_id), 0))
    return FoundFile(
        path=f"{directory.name.format()}/bucket_00000", size_bytes=size, directory=directory
    )


def found(*files: FoundFile) -> FoundFiles:
    directories = {file.directory for file in files if file.directory is not None}
    return FoundFiles(files=files, directories=tuple(directories))


def compacted(first: int, last: int, *, is_own: bool = True, is_base: bool = False) -> FoundFile:
    name = (
        DirectoryName.base(WriteId(last))
        if is_base
        else DirectoryName.delta(WriteId(first), WriteId(last))
    )
    directory = FoundDirectory(name=name, is_compacted=True, is_own=is_own)
    return FoundFile(path=f"{name.format()}/bucket_00000", size_bytes=99, directory=directory)


WRITES = st.sets(st.integers(1, 9), min_size=1)


@given(WRITES, st.data())
def test_a_file_is_missed_wherever_no_compaction_explains_it(
    ids: set[int], data: st.DataObject
) -> None:
    lost = data.draw(st.sampled_from(sorted(ids)))
    whole = found(*(written(one) for one in ids))
    less = found(*(written(one) for one in ids - {lost}))
    assert unequal_files(whole, whole) == ()
    for pairs in (unequal_files(whole, less), unequal_files(less, whole)):
        assert [pair.is_explained for pair in pairs] == [False]


@given(WRITES, st.integers(1, 9), st.booleans(), st.booleans())
def test_a_compaction_explains_what_it_took_up(
    ids: set[int], last: int, is_base: bool, is_at_source: bool
) -> None:
    plain = found(*(written(one) for one in ids))
    kept = [written(one) for one in ids if one > last]
    taken = [one for one in ids if one <= last]
    merged = found(*kept, *([compacted(1, last, is_base=is_base)] if taken else []))
    pairs = unequal_files(merged, plain) if is_at_source else unequal_files(plain, merged)
    assert all(pair.is_explained for pair in pairs)
    assert len(pairs) == len(taken) + bool(taken)


def test_what_no_compaction_explains() -> None:
    base = compacted(1, 5, is_base=True)
    # The replica has nothing of it at all.
    assert not unequal_files(found(base), found())[0].is_explained
    assert not unequal_files(found(base, written(6)), found(written(6)))[0].is_explained
    # A later write than the compaction reaches; deletes, which a delta of inserts does not hold.
    late = unequal_files(found(base, written(6)), found(written(1)))
    assert [pair.is_explained for pair in late] == [True, True, False]
    deletes = unequal_files(found(written(2, is_delete=True)), found(compacted(1, 5)))
    assert {pair.is_explained for pair in deletes} == {False}
    # A copy of what was compacted is as long as what it was made of.
    copy = compacted(1, 5, is_base=True, is_own=False)
    short = found(replace(copy, size_bytes=98))
    assert not unequal_files(found(base), short)[0].is_explained
    assert unequal_files(found(base), found(replace(base, size_bytes=98)))[0].is_explained


def test_a_base_without_rows_explains_what_it_took_up() -> None:
    directory = FoundDirectory(name=DirectoryName.base(WriteId(5)), is_compacted=True, is_own=True)
    emptied = FoundFiles(files=(), directories=(directory,))
    assert unequal_files(emptied, found(written(3)))[0].is_explained
    assert not unequal_files(emptied, found(written(6)))[0].is_explained
    original = FoundFile(path="000000_0", size_bytes=3)
    assert unequal_files(emptied, found(original))[0].is_explained
    assert not unequal_files(found(), found(original))[0].is_explained


# -- all together


def test_every_difference_is_a_line() -> None:
    ids = write_ids(3, set(), set())
    place = DescribedPlace(
        definition={"columns": "a int"},
        found=found(written(1)),
        rows=SeenRows(count=1, checksum=7),
    )
    source = DescribedTable(definition={"owner": "x"}, write_ids=ids, places={"p=1": place})
    replica = DescribedTable(
        definition={"owner": "y", "property a": "b"},
        write_ids=write_ids(3, {2}, set()),
        places={
            "p=1": replace(
                place, definition={"columns": "a bigint"}, rows=SeenRows(count=1, checksum=8)
            ),
            "p=2": place,
        },
    )
    nothing = Circumstances()
    findings, compared = judge("t", source, replica, nothing)
    assert {one.verdict for one in findings} == {Verdict.DIFFERENT}
    assert [(one.partition, one.what) for one in findings] == [
        (None, "owner"), (None, "property a"), ("p=2", "partition"), ("p=1", "columns"),
        ("p=1", "rows"), (None, "write ids 2"),
    ]  # fmt: skip
    assert (compared.partitions, compared.files, compared.rows) == (1, 1, 1)
    turned, _ = judge("t", replica, source, nothing)
    assert [(one.source, one.replica) for one in turned] == [
        (one.replica, one.source) for one in findings
    ]
    (equal,) = judge("t", source, source, nothing)[0]
    assert equal.what == "definition, 1 partition, write ids up to 3, 1 file of the source, 1 row"


def test_each_ignored_property_has_a_reason() -> None:
    assert all(IGNORED_PROPERTIES.values())
    assert all(IGNORED_PREFIXES.values())
