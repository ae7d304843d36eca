"""Directory listings written down as paths."""

from __future__ import annotations

from hms_bridge.acid.directory import AcidState
from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.markers import DataFormat
from hms_bridge.acid.obsolete import CleaningPlan
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList


def tree(*paths: str, formats: dict[str, DataFormat] | None = None) -> DirectoryListing:
    """A listing of files (`a/b`) and directories (`a/`), each file of 10 bytes.

    `formats`: what `_metadata_acid` of a base says, by the base's name.
    """
    known = formats or {}
    files = [path for path in paths if not path.endswith("/")]
    files += [f"{base}/_metadata_acid" for base in known]
    return DirectoryListing.build(
        "/t",
        files=[ListedFile(path=path, size_bytes=10) for path in files],
        directories=[path.rstrip("/") for path in paths if path.endswith("/")],
        data_format=lambda path: known[path.partition("/")[0]],
    )


def txns(text: str = "1000:9223372036854775807::") -> ValidTxnList:
    return ValidTxnList.parse(text)


def write_ids(text: str) -> ValidWriteIdList:
    """`hwm:min:open:aborted`, without the table."""
    return ValidWriteIdList.parse(f"d.t:{text}")


def current(state: AcidState) -> list[str]:
    return [one.path for one in state.current]


def obsolete(state: AcidState) -> list[str]:
    return sorted(one.path for one in state.obsolete)


def victims(plan: CleaningPlan) -> list[str]:
    return [one.path for one in plan.victims]


def kept(plan: CleaningPlan) -> dict[str, str]:
    return {one.path: one.reason.name for one in plan.kept}
