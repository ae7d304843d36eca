"""What an adoption assumes where names and files do not say: notes for the admin. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hms_bridge.acid.directory import resolve
from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.acid.names import BucketFileName, OriginalFileName
from hms_bridge.adoption.checks import EVERY_TXN
from hms_bridge.errors import NotEnoughHistoryError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList


def assumptions(
    *,
    given: ValidWriteIdList | None,
    table_name: str,
    highest: WriteId,
    untyped: Sequence[str],
    listings: Sequence[DirectoryListing],
    strays: Sequence[str],
) -> tuple[str, ...]:
    """Sentences. ``highest``: the highest write id of all names; ``untyped``: partition columns."""
    return (
        *_write_id_assumptions(given, table_name, highest),
        *_partition_assumptions(untyped),
        *_compaction_assumptions(listings),
        *_insert_only_notes(listings),
        *_stranger_notes(listings, strays),
    )


def _write_id_assumptions(
    given: ValidWriteIdList | None, table_name: str, highest: WriteId
) -> Iterator[str]:
    if given is None:
        if highest > 0:
            which = "write id 1 is" if highest == 1 else f"write ids 1 to {highest} are"
            yield (
                f"{which} taken as committed, because names do not mark aborted ones; "
                "give --valid-write-ids if you know them"
            )
        return
    if given.table and given.table != table_name:
        yield f"the write-id list is of {given.table}; it is taken as that of {table_name}"
    if given.open_ids:
        ids = ", ".join(map(str, given.open_ids))
        were = "write id {} was open; it counts" if len(given.open_ids) == 1 else (
            "write ids {} were open; they count"
        )  # fmt: skip
        yield f"{were.format(ids)} as aborted now"


def _partition_assumptions(untyped: Sequence[str]) -> Iterator[str]:
    if untyped:
        is_single = len(untyped) == 1
        yield (
            f"partition {'column' if is_single else 'columns'} {', '.join(untyped)} "
            f"{'is' if is_single else 'are'} taken as string; "
            "give --partition-type COLUMN=TYPE otherwise"
        )


def _compaction_assumptions(listings: Sequence[DirectoryListing]) -> Iterator[str]:
    """What a compaction replaces goes when its transaction has committed, some time later."""
    for listing in listings:
        try:
            state = resolve(listing, txns=EVERY_TXN, write_ids=ValidWriteIdList.everything())
        except NotEnoughHistoryError:
            continue
        outputs = {
            shadowed.by.path for shadowed in state.obsolete if shadowed.by.name.visibility_txn_id
        }
        for path in sorted(outputs):
            yield (
                f"{listing.full_path(path)} stands beside what it replaces; it is taken as whole. "
                "If the metastore was lost while that compaction ran, move it away before you "
                "adopt: the rows are the same without it"
            )


def _insert_only_notes(listings: Sequence[DirectoryListing]) -> Iterator[str]:
    with_files = [
        directory
        for listing in listings
        for directory in listing.directories
        if directory.files and not directory.name.is_delete
    ]
    if with_files and all(directory.is_raw for directory in with_files):
        yield (
            "no file has ACID columns: all rows were loaded, or the table was insert-only, which "
            "is not adopted here"
        )


def _stranger_notes(listings: Sequence[DirectoryListing], strays: Sequence[str]) -> Iterator[str]:
    paths = [listing.full_path(file.path) for listing in listings for file in listing.unknown]
    for listing in listings:
        for directory in listing.directories:
            paths += [
                listing.full_path(file.path)
                for file in directory.files
                if not BucketFileName.parse(file.name) and not OriginalFileName.parse(file.name)
            ]
    paths += strays
    if paths:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        yield f"none of the ACID format, left as it is: {', '.join(sorted(paths)[:3])}{more}"
