"""Questions as records, and the refusals that answer others (docs/format/plan-service.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

from hms_bridge.acid.bucket_codec import BUCKET_ID_MAX
from hms_bridge.errors import HmsBridgeError

_NUMBER_MAX = 2**63 - 1


class Refusal(Enum):
    """The kind that an answer names, and its HTTP status."""

    UNAUTHORIZED = ("Unauthorized", HTTPStatus.UNAUTHORIZED)
    NO_SUCH_VERB = ("NoSuchVerb", HTTPStatus.NOT_FOUND)
    MALFORMED = ("Malformed", HTTPStatus.BAD_REQUEST)
    TOO_LARGE = ("TooLarge", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    FAILED = ("Failed", HTTPStatus.INTERNAL_SERVER_ERROR)
    VERSION = ("Version", HTTPStatus.CONFLICT)
    NO_SUCH_NAMESPACE = ("NoSuchNamespace", HTTPStatus.CONFLICT)
    NO_SUCH_TABLE = ("NoSuchTable", HTTPStatus.CONFLICT)
    REFUSED = ("Refused", HTTPStatus.CONFLICT)
    TABLE_CHANGED = ("TableChanged", HTTPStatus.CONFLICT)
    SNAPSHOT_GONE = ("SnapshotGone", HTTPStatus.CONFLICT)
    WRITE_GONE = ("WriteGone", HTTPStatus.CONFLICT)

    @property
    def text(self) -> str:
        """As the answer says it."""
        return self.value[0]

    @property
    def status(self) -> HTTPStatus:
        """Of the answer."""
        return self.value[1]


class PlanError(HmsBridgeError):
    """A question that is not answered."""

    def __init__(self, kind: Refusal, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def malformed(message: str) -> PlanError:
    """A question that says something else than the page allows."""
    return PlanError(Refusal.MALFORMED, message)


class Question:
    """The JSON object that a client sent; each field is read as what it must be."""

    def __init__(self, fields: object) -> None:
        if not isinstance(fields, dict):
            raise malformed("a question is a JSON object")
        self._fields: Mapping[str, Any] = fields

    def text(self, name: str, default: str | None = None) -> str:
        """Raises PlanError for anything else; so do the others."""
        value = self._fields.get(name, default)
        if not isinstance(value, str):
            raise malformed(f"'{name}' must be a text")
        return value

    def optional_text(self, name: str) -> str | None:
        """None for null, and for what was not sent; a number counts as its text."""
        value = self._fields.get(name)
        if value is None:
            return None
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
        raise malformed(f"'{name}' must be a text, a number or null")

    def number(self, name: str) -> int:
        """A whole number above 0."""
        value = self._fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _NUMBER_MAX:
            raise malformed(f"'{name}' must be a whole number above 0")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._fields.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise malformed(f"'{name}' must be a list of texts")
        return tuple(value)

    def entries(self, name: str) -> Sequence[object]:
        """Anything in a list."""
        value = self._fields.get(name)
        if not isinstance(value, list):
            raise malformed(f"'{name}' must be a list")
        return value

    def tree(self, name: str) -> Mapping[str, Any] | None:
        """An object, or nothing."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            raise malformed(f"'{name}' must be an object or null")
        return value


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRequest:
    """A table, as a statement has loaded it."""

    namespace: str
    name: str
    definition: str

    @classmethod
    def of(cls, question: Question) -> TableRequest:
        """Raises PlanError for a field that is not what the page says; so do the others."""
        return cls(
            namespace=question.text("namespace").lower(),
            name=question.text("name").lower(),
            definition=question.text("definition"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteRequest:
    """``write/begin``."""

    table: TableRequest
    agent: str

    @classmethod
    def of(cls, question: Question) -> WriteRequest:
        """As :meth:`TableRequest.of`."""
        return cls(table=TableRequest.of(question), agent=_agent_of(question))


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenFile:
    """A file that a task reports with ``write/commit``."""

    path: str
    partition: tuple[Any, ...]
    bucket: int
    statement: int
    row_count: int
    size_bytes: int

    @classmethod
    def all_of(cls, question: Question) -> list[WrittenFile]:
        """As :meth:`TableRequest.of`."""
        return [cls._of(entry) for entry in question.entries("files")]

    @classmethod
    def _of(cls, entry: object) -> WrittenFile:
        match entry:
            case [str(path), list(values), int(bucket), int(statement), int(rows), int(size)]:
                numbers = (bucket, statement, rows, size)
                is_sane = all(type(n) is int and 0 <= n <= _NUMBER_MAX for n in numbers)
                if is_sane and max(bucket, statement) <= BUCKET_ID_MAX:
                    return cls(
                        path=path,
                        partition=tuple(values),
                        bucket=bucket,
                        statement=statement,
                        row_count=rows,
                        size_bytes=size,
                    )
        raise malformed(f"'files' has {entry!r}, which is no file")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """``read/plan``. ``is_held``: a statement runs, so what it reads is protected at once."""

    table: TableRequest
    statement: str
    is_held: bool
    agent: str
    filter: Mapping[str, Any] | None
    parallelism: int
    split_bytes: int

    @classmethod
    def of(cls, question: Question) -> PlanRequest:
        """Raises PlanError for a field that is not what the page says."""
        return cls(
            table=TableRequest.of(question),
            statement=question.text("statement"),
            is_held=question.optional_text("execution") is not None,
            agent=_agent_of(question),
            filter=question.tree("filter"),
            parallelism=question.number("parallelism"),
            split_bytes=question.number("split_bytes"),
        )


def _agent_of(question: Question) -> str:
    return agent_text(question.optional_text("application"), question.optional_text("description"))


_AGENT_LENGTH_MAX = 128
"""What TXNS.TXN_AGENT_INFO and HIVE_LOCKS.HL_AGENT_INFO hold."""


def agent_text(application: str | None, description: str | None) -> str:
    """``spark APPLICATION: DESCRIPTION``, as much as the column holds, without line breaks.

    In ASCII: on MySQL Hive's own schema holds no other character set for sure.
    """
    text = f"spark {application or ''}".strip()
    if description:
        text = f"{text}: {description}"
    words = " ".join(text.encode("ascii", "replace").decode().split())
    return "".join(c for c in words if c.isprintable())[:_AGENT_LENGTH_MAX]
