"""The small files beside the data: format version, kind of base, flush lengths.

Source of the rules: Hive's AcidUtils.MetaDataFile and OrcAcidVersion (docs/hive/acid.md §4).
"""

from __future__ import annotations

import json
from enum import Enum

from hms_bridge.errors import AcidFormatError

ACID_VERSION_FILE = "_orc_acid_version"
"""In most full-ACID directories; absent in loaded, truncated and rebalanced ones."""

ACID_VERSION = b"2"
"""Content of the version file."""

METADATA_FILE = "_metadata_acid"
"""What kind of base a directory is."""

_METADATA_VERSION = "0"
_LONG_BYTES = 8


class DataFormat(Enum):
    """What `_metadata_acid` says of a base."""

    COMPACTED = "compacted"
    TRUNCATED = "truncated"
    DROPPED = "dropped"


def parse_metadata(content: bytes, path: str = METADATA_FILE) -> DataFormat:
    """Read `_metadata_acid`. Raises AcidFormatError if it is of another version or malformed."""
    try:
        fields = json.loads(content)
        version, data_format = fields["thisFileVersion"], fields["dataFormat"]
    except (ValueError, KeyError, TypeError) as error:
        raise AcidFormatError("is not a JSON object with a version and a format", path) from error
    if version != _METADATA_VERSION:
        raise AcidFormatError(f"has version {version!r}, only '0' is known", path)
    try:
        return DataFormat(str(data_format).lower())
    except ValueError as error:
        raise AcidFormatError(f"has the unknown data format {data_format!r}", path) from error


def format_metadata(data_format: DataFormat) -> bytes:
    """Content of `_metadata_acid`, byte for byte as Hive writes it."""
    fields = {"thisFileVersion": _METADATA_VERSION, "dataFormat": data_format.value}
    return json.dumps(fields, separators=(",", ":")).encode()


def parse_flush_length(content: bytes, path: str) -> int:
    """How many bytes of a streaming bucket file may be read: the side file's last whole long.

    The long is big-endian; a partly written one at the end is not counted. Raises AcidFormatError
    if there is none: the writer's state cannot be guessed (Hive: AcidUtils.getLogicalLength;
    docs/hive/acid.md §18).
    """
    end = len(content) - len(content) % _LONG_BYTES
    if end == 0:
        raise AcidFormatError(
            "side file holds no flush length; wait for its writer or remove the aborted delta", path
        )
    length = int.from_bytes(content[end - _LONG_BYTES : end], "big", signed=True)
    if length < 0:
        raise AcidFormatError(f"side file holds the impossible length {length}", path)
    return length
