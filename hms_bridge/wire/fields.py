"""Structs and records, both ways, from one table: each field of a record, and where it lies.

::

    lock_response_to_struct, lock_response_from_struct = both_ways(
        LockResponse,
        "LockResponse",
        lock_id="lockid",
        state=member("state", _STATES, "lock state"),
        error_message="errorMessage",
    )

A bare name means that the value is the same in both. Else an :class:`Entry` says how one becomes
the other; a reader raises ValueError with what is wrong, and the refusal that a client gets names
struct and field. A table that does not fit its struct or its record is a TypeError at first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.wire.structs import Struct, hive

RecordT = TypeVar("RecordT")
Values = dict[str, Any]
Converter = Callable[[Any], Any]
Ways = tuple[Callable[[RecordT], Struct], Callable[[Struct], RecordT]]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a value lies, and its two ways; None: as it is. ``read`` gets None for what is unset
    and raises ValueError, worded to follow the field's name."""

    attribute: str
    read: Converter | None = None
    write: Converter | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """A record within the record whose fields lie in the same struct, beside the others."""

    record: Callable[..., Any]
    entries: Mapping[str, str | Entry]


class Layout(Generic[RecordT]):
    """A table of :func:`both_ways`. C code moves all values at once, and only those that change on
    the way are touched one by one: lists of partitions are long.

    ``always``: what the struct has and the record has not. ``finish`` mends the values together,
    where one depends on another.
    """

    def __init__(
        self,
        record: type[RecordT],
        struct: str,
        entries: Mapping[str, str | Entry | Spread],
        *,
        error: type[MetaError | InvalidObjectError] = MetaError,
        always: Mapping[str, object] | None = None,
        finish: Callable[[Values], object] | None = None,
    ) -> None:
        self._record, self._struct, self._error = record, struct, error
        self._always, self._finish = always, finish
        self._made: type[Struct] | None = None
        self._spreads = [
            (name, e.record, [(part, f"{name}.{part}") for part in e.entries])
            for name, e in entries.items()
            if isinstance(e, Spread)
        ]
        flat: dict[str, str | Entry] = {}
        for name, entry in entries.items():
            if isinstance(entry, Spread):
                flat |= {f"{name}.{part}": inside for part, inside in entry.entries.items()}
            else:
                flat[name] = entry
        known = {name: Entry(e) if isinstance(e, str) else e for name, e in flat.items()}
        self._names = tuple(known)
        self._attributes = tuple(entry.attribute for entry in known.values())
        self._of_record = attrgetter(*self._names)
        self._of_struct = attrgetter(*self._attributes)
        self._writes = [(e.attribute, e.write) for e in known.values() if e.write is not None]
        self._reads = [
            (name, e.attribute, e.read) for name, e in known.items() if e.read is not None
        ]

    def to_struct(self, record: RecordT) -> Struct:
        """The struct of a record."""
        values = dict(zip(self._attributes, self._of_record(record), strict=True))
        for attribute, write in self._writes:
            values[attribute] = write(values[attribute])
        if self._always is not None:
            values.update(self._always)
        return self._type(**values)

    def from_struct(self, struct: Struct) -> RecordT:
        """The record of a struct. Raises the table's error, naming struct and field."""
        return self._record(**self.values_of(struct))

    def values_of(self, struct: Struct | None) -> Values:
        """What the record is made of. Raises as :meth:`from_struct` does."""
        if struct is None:
            raise MetaError(f"{self._struct} was not sent; set that field")
        values: Values = dict(zip(self._names, self._of_struct(struct), strict=True))
        for name, attribute, read in self._reads:
            try:
                values[name] = read(values[name])
            except ValueError as error:
                raise self._error(f"{self._struct}.{attribute} {error}") from error
        for name, record, parts in self._spreads:
            values[name] = record(**{part: values.pop(flat) for part, flat in parts})
        if self._finish is not None:
            self._finish(values)
        return values

    @property
    def _type(self) -> type[Struct]:
        """Made when it is needed: there are many structs, and few that a program sends."""
        if self._made is None:
            self.require_fit()
            self._made = getattr(hive, self._struct)
        return self._made

    def require_fit(self) -> None:
        """Raises TypeError for an entry that the struct or the record does not have."""
        in_record = {declared.name for declared in fields(self._record)}  # type: ignore[arg-type]
        in_struct = {entry[2] for entry in getattr(hive, self._struct).thrift_spec if entry}
        wrong = {name.partition(".")[0] for name in self._names} - in_record
        wrong |= {*self._attributes, *(self._always or ())} - in_struct
        if wrong:
            raise TypeError(f"table of {self._struct}: no field {', '.join(sorted(wrong))}")


def both_ways(
    record: type[RecordT],
    struct: str,
    /,
    *,
    always: Mapping[str, object] | None = None,
    error: type[MetaError | InvalidObjectError] = MetaError,
    finish: Callable[[Values], object] | None = None,
    **entries: str | Entry | Spread,
) -> Ways[RecordT]:
    """The functions from a record to its struct and back, which raises ``error``."""
    layout = Layout(record, struct, entries, always=always, error=error, finish=finish)
    return layout.to_struct, layout.from_struct


def spread(record: Callable[..., Any], /, **entries: str | Entry) -> Spread:
    """A record within the record, in fields of the same struct."""
    return Spread(record, entries)


def required(attribute: str) -> Entry:
    """What must be sent."""
    return Entry(attribute, sent)


def filled(attribute: str) -> Entry:
    """What must be sent, and not be empty."""
    return Entry(attribute, _filled)


def name(attribute: str) -> Entry:
    """A name, in small letters; it must be sent."""
    return Entry(attribute, lambda value: _filled(value).lower())


def name_or_none(attribute: str) -> Entry:
    """A name, in small letters; None for none and for an empty one."""
    return Entry(attribute, lambda value: value.lower() if value else None)


def or_none(attribute: str) -> Entry:
    """None for an empty text and for 0."""
    return Entry(attribute, lambda value: value or None)


def or_else(attribute: str, default: object, write: Converter | None = None) -> Entry:
    """A default for what is unset, empty or 0."""
    return Entry(attribute, lambda value: value or default, write)


def zero(attribute: str) -> Entry:
    """None in the record is 0 in the struct."""
    return Entry(attribute, lambda value: value or None, lambda value: value or 0)


def texts(attribute: str) -> Entry:
    """Texts by name; none where it is unset."""
    return Entry(attribute, lambda values: dict(values or ()), dict)


def truth(attribute: str) -> Entry:
    """True or false; false where it is unset."""
    return Entry(attribute, bool)


def items(attribute: str) -> Entry:
    """A list and a tuple."""
    return Entry(attribute, lambda values: tuple(values or ()), list)


def items_or_unset(attribute: str) -> Entry:
    """A list and a tuple; an empty one is not sent."""
    return Entry(attribute, lambda values: tuple(values or ()), lambda values: list(values) or None)


def optional_items(attribute: str) -> Entry:
    """A list and a tuple; None where it is unset, which an empty one is not."""
    return Entry(
        attribute,
        lambda values: None if values is None else tuple(values),
        lambda values: None if values is None else list(values),
    )


def member(attribute: str, members: Mapping[Any, object], what: str) -> Entry:
    """One of several, by what stands for it in the struct: None there for what is unset. Where
    several stand for the same, the last of them is written."""
    written = {value: sign for sign, value in members.items()}

    def read(sign: object) -> object:
        if sign not in members:
            known = ", ".join(str(known) for known in members if known is not None)
            raise ValueError(f"is {sign}, which is no {what}; send one of {known}")
        return members[sign]

    return Entry(attribute, read, written.__getitem__)


def inner(attribute: str, ways: Ways[Any]) -> Entry:
    """A struct within the struct, or None."""
    write, read = ways
    return Entry(
        attribute,
        lambda struct: None if struct is None else read(struct),
        lambda record: None if record is None else write(record),
    )


def inner_required(attribute: str, ways: Ways[Any]) -> Entry:
    """A struct within the struct that must be sent."""
    write, read = ways
    return Entry(attribute, lambda struct: read(sent(struct)), write)


def inner_or(attribute: str, ways: Ways[Any], unset: object) -> Entry:
    """A struct within the struct; ``unset`` stands for none."""
    write, read = ways
    return Entry(attribute, lambda struct: unset if struct is None else read(struct), write)


def each(attribute: str, ways: Ways[Any], *, is_sent_empty: bool = False) -> Entry:
    """A list of structs within the struct."""
    write, read = ways
    return Entry(
        attribute,
        lambda structs: tuple(map(read, structs or ())),
        lambda records: list(map(write, records)) or ([] if is_sent_empty else None),
    )


def sent(value: Any) -> Any:
    """What is not None. Raises ValueError."""
    if value is None:
        raise ValueError("was not sent; set that field")
    return value


def _filled(value: Any) -> Any:
    if not value:
        raise ValueError("was not sent or is empty; set that field")
    return value
