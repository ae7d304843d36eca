"""Names of ACID directories and of the files in them, parsed and formatted.

::

    base          base_W[_vT]
    delta         delta_W_W[_S][_vT]             both ends of the range belong to it
    delete delta  delete_delta_W_W[_S][_vT]
    bucket file   bucket_N[_attempt]
    original      N_attempt[_copy_n]             no ACID columns: loaded, or from before ACID

W write id, S statement, T transaction of the compaction that made it. Both dialects are read: with
and without `_vT`, padded or not. Source of the rules: Hive's AcidUtils (docs/hive/acid.md §1, §2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from hms_bridge.model.ids import MAX_ID, NO_TXN, TxnId, WriteId

FLUSH_LENGTH_SUFFIX = "_flush_length"
"""Side file of a streaming writer: how much of the bucket file is readable."""

ORIGINALS_BASE = WriteId(-(2**63))
"""Number of a base that was compacted from nothing but originals (Java's Long.MIN_VALUE)."""

_INT_MAX = 2**31 - 1
"""Java's: Hive cannot read a name with a higher statement, bucket or attempt."""

_BASE = re.compile(r"base_(-?[0-9]+)(?:_v([0-9]+))?")
_DELTA = re.compile(r"(delta|delete_delta)_([0-9]+)_([0-9]+)(?:_([0-9]+))?(?:_v([0-9]+))?")
_BUCKET_FILE = re.compile(r"bucket_([0-9]+)(?:_([0-9]+))?")
_ORIGINAL_FILE = re.compile(r"([0-9]+)_([0-9]+)(?:_copy_([0-9]+))?")


class DirectoryKind(Enum):
    """What an ACID directory holds; the value is its name's first part."""

    BASE = "base"
    DELTA = "delta"
    DELETE_DELTA = "delete_delta"


_PREFIXES = tuple(f"{kind.value}_" for kind in DirectoryKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryName:
    """A base, delta or delete delta, as its name says.

    The range includes both ends. A base holds everything up to `max_write_id`; its `min_write_id`
    is the same number. `statement_id` None: the name has none (compaction output, streaming batch).
    `visibility_txn_id` 0: seen whatever transactions a reader knows.
    """

    kind: DirectoryKind
    min_write_id: WriteId
    max_write_id: WriteId
    statement_id: int | None = None
    visibility_txn_id: TxnId = NO_TXN

    @classmethod
    def base(cls, write_id: WriteId, visibility_txn_id: TxnId = NO_TXN) -> DirectoryName:
        """The name of a base."""
        return cls(
            kind=DirectoryKind.BASE,
            min_write_id=write_id,
            max_write_id=write_id,
            visibility_txn_id=visibility_txn_id,
        )

    @classmethod
    def delta(
        cls,
        min_write_id: WriteId,
        max_write_id: WriteId,
        statement_id: int | None = None,
        visibility_txn_id: TxnId = NO_TXN,
    ) -> DirectoryName:
        """The name of a delta (insert events)."""
        return cls(
            kind=DirectoryKind.DELTA,
            min_write_id=min_write_id,
            max_write_id=max_write_id,
            statement_id=statement_id,
            visibility_txn_id=visibility_txn_id,
        )

    @classmethod
    def delete_delta(
        cls,
        min_write_id: WriteId,
        max_write_id: WriteId,
        statement_id: int | None = None,
        visibility_txn_id: TxnId = NO_TXN,
    ) -> DirectoryName:
        """The name of a delete delta (delete events)."""
        delta = cls.delta(min_write_id, max_write_id, statement_id, visibility_txn_id)
        return replace(delta, kind=DirectoryKind.DELETE_DELTA)

    @classmethod
    def parse(cls, name: str) -> DirectoryName | None:
        """Read a directory's name; None if it is no ACID directory's."""
        if match := _BASE.fullmatch(name):
            directory = cls.base(WriteId(int(match[1])), TxnId(int(match[2] or 0)))
        elif match := _DELTA.fullmatch(name):
            directory = cls(
                kind=DirectoryKind(match[1]),
                min_write_id=WriteId(int(match[2])),
                max_write_id=WriteId(int(match[3])),
                statement_id=None if match[4] is None else int(match[4]),
                visibility_txn_id=TxnId(int(match[5] or 0)),
            )
        else:
            return None
        return directory if directory._is_possible() else None

    def format(self) -> str:
        """The name as Hive writes it: write and transaction ids to 7 digits, statements to 4."""
        text = f"{self.kind.value}_{self.min_write_id:07d}"
        if self.kind is not DirectoryKind.BASE:
            text += f"_{self.max_write_id:07d}"
        if self.statement_id is not None:
            text += f"_{self.statement_id:04d}"
        if self.visibility_txn_id:
            text += f"_v{self.visibility_txn_id:07d}"
        return text

    def _is_possible(self) -> bool:
        return (
            ORIGINALS_BASE <= self.min_write_id <= self.max_write_id <= MAX_ID
            and self.visibility_txn_id <= MAX_ID
            and (self.statement_id or 0) <= _INT_MAX
        )

    @property
    def is_base(self) -> bool:
        """Whether it has all rows up to its write id."""
        return self.kind is DirectoryKind.BASE

    @property
    def is_delete(self) -> bool:
        """Whether this is a delete delta."""
        return self.kind is DirectoryKind.DELETE_DELTA


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFileName:
    """`bucket_NNNNN`, with the attempt that Hive 4 appends."""

    bucket_id: int
    attempt_id: int | None = None

    @classmethod
    def parse(cls, name: str) -> BucketFileName | None:
        """Read a file's name; None if it is no bucket file's (side files are none)."""
        match = _BUCKET_FILE.fullmatch(name)
        if match is None or max(int(match[1]), int(match[2] or 0)) > _INT_MAX:
            return None
        return cls(bucket_id=int(match[1]), attempt_id=None if match[2] is None else int(match[2]))

    def format(self) -> str:
        """The name as Hive writes it."""
        attempt = "" if self.attempt_id is None else f"_{self.attempt_id}"
        return f"bucket_{self.bucket_id:05d}{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalFileName:
    """`000000_0` or `000000_0_copy_1`: a file that was written without ACID columns."""

    bucket_id: int
    attempt_id: int
    copy_number: int | None = None

    @classmethod
    def parse(cls, name: str) -> OriginalFileName | None:
        """Read a file's name; None if it is not of this pattern."""
        match = _ORIGINAL_FILE.fullmatch(name)
        if match is None or int(match[1]) > _INT_MAX:
            return None
        return cls(
            bucket_id=int(match[1]),
            attempt_id=int(match[2]),
            copy_number=None if match[3] is None else int(match[3]),
        )

    def format(self) -> str:
        """The name as Hive writes it."""
        copy = "" if self.copy_number is None else f"_copy_{self.copy_number}"
        return f"{self.bucket_id:06d}_{self.attempt_id}{copy}"


def is_named_like_directory(name: str) -> bool:
    """Whether Hive takes it for a base or delta by how it begins, and fails on it where the rest
    is none of the format."""
    return name.startswith(_PREFIXES)


def is_hidden(name: str) -> bool:
    """Whether a file or directory is none of the table's data (markers, staging, checksums)."""
    return name.startswith(("_", "."))


def is_side_file(name: str) -> bool:
    """Whether a file only says how much of a streaming bucket file is readable."""
    return name.startswith("bucket_") and name.endswith(FLUSH_LENGTH_SUFFIX)


def side_file_of(path: str) -> str:
    """Path of the side file that a streaming writer keeps for a bucket file."""
    return path + FLUSH_LENGTH_SUFFIX
