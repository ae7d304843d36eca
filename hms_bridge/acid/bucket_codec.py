"""The 32-bit bucket property of a row: codec version, bucket (or writer) id, statement id.

Version 0 is the bare bucket id (before Hive 3). Version 1, from the highest bit down: 3 bits
version, 1 reserved, 12 bucket, 4 reserved, 12 statement. Source of the rule: Hive's BucketCodec
(docs/hive/acid.md §12).
"""

from __future__ import annotations

from hms_bridge.errors import AcidFormatError

BUCKET_ID_MAX = 4095
STATEMENT_ID_MAX = 4095
_VERSION_SHIFT = 29
_BUCKET_SHIFT = 16


def encode_bucket(bucket_id: int, statement_id: int | None = None) -> int:
    """The bucket property (version 1) of a writer's rows; no statement counts as statement 0.

    Raises AcidFormatError if an id needs more than 12 bits.
    """
    statement = 0 if statement_id is None or statement_id == -1 else statement_id
    if not 0 <= bucket_id <= BUCKET_ID_MAX:
        raise AcidFormatError(f"bucket id {bucket_id} is not in 0..{BUCKET_ID_MAX}")
    if not 0 <= statement <= STATEMENT_ID_MAX:
        raise AcidFormatError(f"statement id {statement} is not in 0..{STATEMENT_ID_MAX}")
    return (1 << _VERSION_SHIFT) | (bucket_id << _BUCKET_SHIFT) | statement
