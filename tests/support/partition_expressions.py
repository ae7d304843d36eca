"""The expressions that a real Hive sent, and what it made of them (tests/golden/wire)."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hms_bridge.model.catalog import Column

_FILE = Path(__file__).parents[1] / "golden" / "wire" / "partition-expressions-4.2.0.jsonl.gz"
UNSERVED = ("regexp", "+ 1", "upper(", "substr(", "year(", "concat(", "length(", "% 2",
            "date_add(", "COALESCE(", "unix_timestamp(", "div 2")  # fmt: skip
"""What an expression's text holds if it calls a function that we do not have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SentExpression:
    """One expression; ``answers`` by the values of a partition: ``+`` ``-`` or ``?``."""

    statement: str
    text: str
    columns: tuple[Column, ...]
    data: bytes
    answers: dict[tuple[str, ...], str]

    @property
    def is_served(self) -> bool:
        return not any(part in self.text for part in UNSERVED)


@cache
def sent_expressions() -> Sequence[SentExpression]:
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [
        SentExpression(
            statement=record["statement"],
            text=record["text"],
            columns=tuple(Column(name=name, type=kind) for name, kind in record["columns"]),
            data=base64.b64decode(record["expression"]),
            answers=dict(zip(itertools.product(*record["values"]), record["answers"], strict=True)),
        )
        for record in records
    ]


def sent_for(text: str) -> SentExpression:
    """The expression with this text of Hive's."""
    return next(one for one in sent_expressions() if one.text == text)
