"""What was given for the settings, by key: checked, with references replaced and aliases found."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping

from changemanager.hadoop import PREFIXES as HADOOP_PREFIXES
from hms_bridge.config import keys
from hms_bridge.config.durations import parse_duration_ms
from hms_bridge.config.hive_site import substitute
from hms_bridge.config.keys import Key, Kind
from hms_bridge.errors import ConfigError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


# What Hive takes where nothing is set (MetastoreConf.WAREHOUSE, HiveConf.REPL_CM_ROOT, REPL_DIR).
_HIVE_PLACES = {
    keys.WAREHOUSE.name: "/user/hive/warehouse",
    keys.CM_ROOT.name: "/user/USER/cmroot",
    keys.REPL_ROOT.name: "/user/USER/repl",
}


class GivenValues:
    """Names and texts from one ``source`` (a file), which stands in every refusal.

    Every method raises ConfigError for a value that the key does not take. ``default_fs`` is to be
    set before places are asked for: bare paths are of it.
    """

    def __init__(self, given: Mapping[str, str], source: str) -> None:
        self._given = given
        self._source = source
        self.default_fs = "file:///"
        self._system = {
            **dict.fromkeys(("system:user.name", "user.name", "user"), getpass.getuser()),
            **{f"env:{name}": value for name, value in os.environ.items()},
        }

    def text(self, key: Key) -> str:
        """The value as written; the key's default where nothing was given."""
        for name in (key.name, *key.aliases):
            if name in self._given:
                return substitute(self._given[name], self._given, self._system)
        return key.default

    def items(self, key: Key) -> tuple[str, ...]:
        """Of a comma-separated list."""
        return tuple(item.strip() for item in self.text(key).split(",") if item.strip())

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
        is_given = any(name in self._given for name in (key.name, *key.aliases))
        if not is_given and not self.default_fs.startswith("file:"):
            text = _HIVE_PLACES.get(key.name, text).replace("USER", self.hadoop_user())
        return self._qualified(key, text)

    def hadoop_user(self) -> str:
        """Who HDFS takes us for where it believes names."""
        given = self.text(keys.HADOOP_USER).strip() or os.environ.get("HADOOP_USER_NAME", "")
        return given.strip() or getpass.getuser()

    def places(self, key: Key) -> tuple[str, ...]:
        """Of a list of them."""
        return tuple(self._qualified(key, text) for text in self.items(key))

    def _qualified(self, key: Key, text: str) -> str:
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
        return {name: substitute(self._given[name], self._given, self._system) for name in names}

    def flag(self, key: Key) -> bool:
        """True or false."""
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
        return int(self._within(key, value))

    def _within(self, key: Key, value: float) -> float:
        if key.minimum is not None and value < key.minimum:
            raise self.refusal(key, f"it must be at least {key.minimum:g}{_unit(key)}")
        if key.maximum is not None and value > key.maximum:
            raise self.refusal(key, f"it must be at most {key.maximum:g}{_unit(key)}")
        return value

    def refusal(self, key: Key, advice: str) -> ConfigError:
        """For a value that is malformed, or well-formed and still wrong."""
        return ConfigError(f"{self._source}: {key.name} is '{self.text(key)}'; {advice}")


def parse_web_addresses(text: str) -> Mapping[str, str]:
    """Read ``AUTHORITY=HOST:PORT`` pairs, comma-separated. Raises ConfigError."""
    found: dict[str, str] = {}
    for pair in (part.strip() for part in text.split(",") if part.strip()):
        name, separator, address = (part.strip() for part in pair.partition("="))
        host, _, port = address.rpartition(":")
        if not (separator and name and host and port.isdecimal()) or "/" in pair:
            raise ConfigError(f"write AUTHORITY=HOST:PORT, comma-separated, not '{pair}'")
        found[name] = address
    return found


def _unit(key: Key) -> str:
    return " ms" if key.kind is Kind.DURATION else ""
