"""Requests that remember which of their fields were read."""

from __future__ import annotations

from typing import Any

from hms_bridge.wire.structs import Struct


class RecordedReads:
    """The fields that were read of the structs that it gave out, by the struct's name."""

    def __init__(self) -> None:
        self.fields: set[tuple[str, str]] = set()
        self._classes: dict[type[Struct], type[Struct]] = {}

    def recording(self, value: Any) -> Any:
        """An equal value whose structs, at any depth, are recorded."""
        if isinstance(value, Struct):
            inner = {name: self.recording(item) for name, item in vars(value).items()}
            return self._class(type(value))(**inner)
        if isinstance(value, list):
            return [self.recording(item) for item in value]
        if isinstance(value, dict):
            return {key: self.recording(item) for key, item in value.items()}
        return value

    def send(self, answer: object) -> None:
        """Read what goes back to the client as it came."""
        if isinstance(answer, Struct):
            for value in vars(answer).values():
                self.send(value)
        elif isinstance(answer, list | dict):
            for item in answer.values() if isinstance(answer, dict) else answer:
                self.send(item)

    def _class(self, cls: type[Struct]) -> type[Struct]:
        if cls not in self._classes:
            name = cls.__name__
            fields = frozenset(entry[2] for entry in cls.thrift_spec if entry)

            def read(struct: Struct, attribute: str) -> Any:
                read_now = fields if attribute == "__dict__" else fields & {attribute}
                self.fields |= {(name, field) for field in read_now}
                return object.__getattribute__(struct, attribute)

            self._classes[cls] = type(name, (cls,), {"__getattribute__": read})
        return self._classes[cls]
