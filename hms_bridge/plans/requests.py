"""Questions as records, and the refusals that answer others (docs/format/plan-service.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

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

    def tree(self, name: str) -> Mapping[str, Any] | None:
        """An object, or nothing."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            raise malformed(f"'{name}' must be an object or null")
        return value


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """``read/plan``. ``is_held``: a statement runs, so what it reads is protected at once."""

    namespace: str
    name: str
    definition: str
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
            namespace=question.text("namespace").lower(),
            name=question.text("name").lower(),
            definition=question.text("definition"),
            statement=question.text("statement"),
            is_held=question.optional_text("execution") is not None,
            agent=agent_text(
                question.optional_text("application"), question.optional_text("description")
            ),
            filter=question.tree("filter"),
            parallelism=question.number("parallelism"),
            split_bytes=question.number("split_bytes"),
        )


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
