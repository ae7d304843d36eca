"""Reads ``hive-site.xml``: Hadoop's configuration format, with ``${name}`` references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from hms_bridge.errors import ConfigError

_REFERENCE = re.compile(r"\$\{([^}${]+)\}")
_DEPTH_MAX = 20
_SIZE_BYTES_MAX = 4 * 1024 * 1024


def read_hive_site(path: Path) -> dict[str, str]:
    """Names and values as written. Raises ConfigError, naming the file and what is wrong."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; check --config") from error
    if len(text) > _SIZE_BYTES_MAX or b"<!ENTITY" in text:
        raise ConfigError(f"{path} is too large or declares XML entities; write plain properties")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ConfigError(f"{path} is not XML: {error}; mend the file") from error
    if root.tag != "configuration":
        raise ConfigError(
            f"{path} begins with <{root.tag}>; a hive-site.xml has properties in <configuration>"
        )
    values = {}
    for element in root.iter("property"):
        name = (element.findtext("name") or "").strip()
        if not name:
            raise ConfigError(f"{path} has a property without a name; give it one")
        values[name] = (element.findtext("value") or "").strip()
    return values


def read_hadoop_site(environment: Mapping[str, str]) -> dict[str, str]:
    """Properties of core-site.xml and hdfs-site.xml in ``HADOOP_CONF_DIR``; none if it is not set.

    Raises ConfigError for a directory that is not there, and for a file that cannot be read.
    """
    folder = environment.get("HADOOP_CONF_DIR", "")
    if not folder:
        return {}
    if not Path(folder).is_dir():
        raise ConfigError(f"HADOOP_CONF_DIR is {folder}, which is no directory; mend or unset it")
    found: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml"):
        path = Path(folder) / name
        if path.exists():
            found |= read_hive_site(path)
    system = {f"env.{name}": value for name, value in environment.items()}
    return {name: substitute(value, found, system) for name, value in found.items()}


def substitute(text: str, values: Mapping[str, str], system: Mapping[str, str]) -> str:
    """Replace ``${name}``, ``${system:user.name}`` and ``${env:X}``; unknown ones stay.

    Raises ConfigError for references that never end.
    """
    known = {**values, **system}
    for _ in range(_DEPTH_MAX):
        replaced = _REFERENCE.sub(lambda m: known.get(m.group(1), m.group(0)), text)
        if replaced == text:
            return text
        text = replaced
    raise ConfigError(f"'{text}' refers to itself; break the circle of ${{…}} references")
