"""What was given for the settings, by key: checked, with references replaced and aliases found."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from changemanager.hadoop import PREFIXES as HADOOP_PREFIXES
from hms_bridge.config.durations import parse_duration_ms
from hms_bridge.config.hive_site import require_resolved, substitute
from hms_bridge.errors import ConfigError

DURATION_MS_MAX = 36_500 * 86_400_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """What is declared of a setting; ``reader``: the method of GivenValues that reads it.

    ``low`` and ``high`` bound a number or a duration (in ms), whose bare numbers are in ``unit``.
    ``choices``: the only texts that it may be. ``on_cluster``: a place's default where bare paths
    are of a cluster, with USER for who asks.
    """

    name: str
    reader: Callable[[GivenValues, Key], Any]
    default: str
    doc: str
    aliases: tuple[str, ...] = ()
    unit: str = ""
    low: float | None = 0
    high: float | None = None
    choices: tuple[str, ...] = ()
    on_cluster: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All that it may be given by."""
        return (self.name, *self.aliases)

    @property
    def kind(self) -> str:
        """What its text must be, in a word."""
        return _KINDS.get(self.reader, "text")


class GivenValues:
    """Names and texts from one ``source`` (a file), which stands in every refusal; ``site``: those
    of Hadoop's own configuration, to which they may refer.

    Every method raises ConfigError for a value that the key does not take. ``default_fs`` and
    ``user`` are to be set before places are asked for: bare paths are of it, and of his.
    """

    def __init__(self, given: Mapping[str, str], source: str, site: Mapping[str, str]) -> None:
        self._given = given
        self._known = {**site, **given}
        self._source = source
        self.default_fs = "file:///"
        self.user = ""
        self._system_values: Mapping[str, str] | None = None

    @property
    def _system(self) -> Mapping[str, str]:
        if self._system_values is None:
            self._system_values = {
                **dict.fromkeys(("system:user.name", "user.name", "user"), getpass.getuser()),
                **{f"env{mark}{n}": value for n, value in os.environ.items() for mark in ":."},
            }
        return self._system_values

    def text(self, key: Key) -> str:
        """The value as written; the key's default where nothing was given."""
        for name in key.names:
            if name in self._given:
                return substitute(self._given[name], self._known, self._system)
        return key.default

    def resolved(self, name: str) -> str | None:
        """The value of any name, also of Hadoop's own configuration; None where it is not given."""
        text = self._known.get(name)
        return None if text is None else substitute(text, self._known, self._system)

    def choice(self, key: Key) -> str:
        """One of the key's choices, in small letters."""
        text = self.text(key).strip().lower()
        if text not in key.choices:
            raise self.refusal(key, f"write {', '.join(key.choices[:-1])} or {key.choices[-1]}")
        return text

    def text_or_none(self, key: Key) -> str | None:
        """None for blanks."""
        return self.text(key).strip() or None

    def items(self, key: Key) -> tuple[str, ...]:
        """Of a comma-separated list."""
        return tuple(item.strip() for item in self.text(key).split(",") if item.strip())

    def names(self, key: Key) -> frozenset[str]:
        """Of a list whose order means nothing."""
        return frozenset(self.items(key))

    def addresses(self, key: Key) -> Mapping[str, str]:
        """Of a list of ``AUTHORITY=HOST:PORT``."""
        try:
            return parse_web_addresses(self.text(key))
        except ConfigError as error:
            raise self.refusal(key, str(error)) from error

    def place(self, key: Key) -> str:
        """Of a path or URI; a bare path gets the default file system if that is not this machine.

        A relative path would be in the home directory of a user of it: refused. Our defaults are
        relative, for a trial on one machine; on a cluster they are Hive's.
        """
        text = self.text(key).strip()
        is_given = any(name in self._given for name in key.names)
        if not is_given and not self.default_fs.startswith("file:"):
            text = key.on_cluster.replace("USER", self.user) or text
        return self._qualified(key, text)

    def place_or_none(self, key: Key) -> str | None:
        """None for an empty one."""
        return self.place(key) or None

    def places(self, key: Key) -> tuple[str, ...]:
        """Of a list of them."""
        return tuple(self._qualified(key, text) for text in self.items(key))

    def _qualified(self, key: Key, text: str) -> str:
        require_resolved(text, f"{self._source}: {key.name}")
        if not text or self.default_fs.startswith("file:") or _SCHEME.match(text):
            return text
        if not text.startswith("/"):
            raise self.refusal(
                key, f"with fs.defaultFS {self.default_fs}, write a URI or an absolute path"
            )
        return self.default_fs.rstrip("/") + text

    def hadoop(self) -> Mapping[str, str]:
        """Those that are Hadoop's own, with their references replaced."""
        names = [name for name in self._given if name.startswith(HADOOP_PREFIXES)]
        return {name: substitute(self._given[name], self._known, self._system) for name in names}

    def flag(self, key: Key) -> bool:
        """Raises ConfigError for anything but ``true`` and ``false``, in any case."""
        text = self.text(key).lower()
        if text not in ("true", "false"):
            raise self.refusal(key, "write true or false")
        return text == "true"

    def number(self, key: Key) -> int:
        """A whole number within the key's limits."""
        try:
            value = int(self.text(key))
        except ValueError:
            raise self.refusal(key, "write a whole number") from None
        return int(self._within(key, value))

    def number_or_none(self, key: Key) -> int | None:
        """None for blanks."""
        return self.number(key) if self.text(key).strip() else None

    def decimal(self, key: Key) -> float:
        """A number within the key's limits."""
        try:
            value = float(self.text(key))
        except ValueError:
            raise self.refusal(key, "write a number") from None
        return self._within(key, value)

    def duration_ms(self, key: Key) -> int:
        """Milliseconds within the key's limits."""
        try:
            value = parse_duration_ms(self.text(key), key.unit)
        except ConfigError as error:
            raise self.refusal(key, str(error)) from error
        if value > DURATION_MS_MAX:  # no database counts so far
            raise self.refusal(key, "write at most 36500d, a hundred years")
        return int(self._within(key, value))

    def _within(self, key: Key, value: float) -> float:
        unit = " ms" if key.unit else ""
        if key.low is not None and value < key.low:
            raise self.refusal(key, f"it must be at least {key.low:g}{unit}")
        if key.high is not None and value > key.high:
            raise self.refusal(key, f"it must be at most {key.high:g}{unit}")
        return value

    def refusal(self, key: Key, advice: str) -> ConfigError:
        """For a value that is malformed, or well-formed and still wrong."""
        return ConfigError(f"{self._source}: {key.name} is '{self.text(key)}'; {advice}")


def parse_web_addresses(text: str) -> Mapping[str, str]:
    """Read ``AUTHORITY=HOST:PORT`` pairs, comma-separated. Raises ConfigError."""
    addresses: dict[str, str] = {}
    for pair in (part.strip() for part in text.split(",") if part.strip()):
        name, separator, address = (part.strip() for part in pair.partition("="))
        host, _, port = address.rpartition(":")
        if not (separator and name and host and port.isdecimal()) or "/" in pair:
            raise ConfigError(f"write AUTHORITY=HOST:PORT, comma-separated, not '{pair}'")
        addresses[name] = address
    return addresses


_KINDS: Mapping[Callable[[GivenValues, Key], Any], str] = {
    GivenValues.number: "integer",
    GivenValues.number_or_none: "integer",
    GivenValues.decimal: "decimal",
    GivenValues.flag: "true or false",
    GivenValues.duration_ms: "duration",
}
