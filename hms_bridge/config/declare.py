"""Declares a setting at the field that holds it: its name, default and meaning, in one place.

``port: int = setting(GivenValues.number, "metastore.thrift.port", "9083", "The port.")`` is all
there is to write. The field's type is what the reader returns (mypy sees to it); its default is
written as people write it and goes through the same reader; docs/reference is made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, TypeVar

from hms_bridge.config.values import GivenValues, Key

T = TypeVar("T")

_KEY = "key"
_NOTHING_GIVEN = GivenValues({}, "the default", {})


def setting(
    reader: Callable[[GivenValues, Key], T],
    name: str,
    default: str,
    doc: str,
    *aliases: str,
    is_secret: bool = False,
    **more: Any,
) -> T:
    """A field of a frozen record. ``more``: what else :class:`Key` has. A secret is not shown."""
    key = Key(name=name, reader=reader, default=default, doc=doc, aliases=aliases, **more)
    value = reader(_NOTHING_GIVEN, key)
    return field(default_factory=lambda: value, metadata={_KEY: key}, repr=not is_secret)


def keys_of(group: type[Any]) -> dict[str, Key]:
    """The settings that are declared in a record, by their fields, in the order of these."""
    return {
        declared.name: declared.metadata[_KEY]
        for declared in fields(group)
        if _KEY in declared.metadata
    }


def read(group: type[T], values: GivenValues, **others: object) -> T:
    """The record with its settings as given; ``others`` are its fields that are none.

    Raises ConfigError for a value that a setting does not take.
    """
    own = {name: key.reader(values, key) for name, key in keys_of(group).items()}
    return group(**own, **others)
