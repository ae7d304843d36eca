"""Reads ``hive-site.xml``: Hadoop's configuration format, with ``${name}`` references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from hms_bridge.errors import ConfigError

HIVE_SITES = ("hive-site.xml", "hivemetastore-site.xml", "metastore-site.xml")
"""What Hive's metastore reads from its folder, in this order (MetastoreConf.newMetastoreConf)."""

_SITE_FOLDERS = ("HIVE_CONF_DIR", "METASTORE_CONF_DIR")
"""Variables, the first before the second (MetastoreConf.findConfigFile)."""

_REFERENCE = re.compile(r"\$\{([^}${]+)\}")
_WITH_DEFAULT = re.compile(r"env\.([^:-]+)(:?-)(.*)", re.DOTALL)
_INCLUDES = ("include", "{http://www.w3.org/2001/XInclude}include")
_DEPTH_MAX = 20
_SIZE_BYTES_MAX = 4 * 1024 * 1024


def hive_sites(path: Path) -> tuple[Path, ...]:
    """A hive-site.xml with the files beside it that go after it; any other file alone."""
    later = HIVE_SITES[HIVE_SITES.index(path.name) + 1 :] if path.name in HIVE_SITES else ()
    return path, *(other for name in later if (other := path.with_name(name)).is_file())


def site_of_environment(environment: Mapping[str, str]) -> Path | None:
    """Hive's own configuration, the first file of it, where a variable names its folder."""
    folders = [folder for name in _SITE_FOLDERS if (folder := environment.get(name))]
    paths = (Path(folder) / name for folder in folders for name in HIVE_SITES)
    return next((path for path in paths if path.is_file()), None)


def read_hive_site(path: Path) -> dict[str, str]:
    """Names and values as written, of :func:`hive_sites`. Raises ConfigError, naming the file and
    what is wrong."""
    values: dict[str, str] = {}
    final: set[str] = set()
    for site in hive_sites(path):
        _read_into(values, final, site)
    return values


def _read_into(values: dict[str, str], final: set[str], path: Path) -> None:
    """A later value replaces an earlier one, unless that is final (Configuration.loadProperty)."""
    for element in _root(path).iter("property"):
        name = (_part(element, "name") or "").strip()
        value = _part(element, "value")
        if not name:
            raise ConfigError(f"{path} has a property without a name; give it one")
        if name not in final and value is not None:
            values[name] = value.strip()
        if (_part(element, "final") or "").strip().lower() == "true":
            final.add(name)


def _part(element: ElementTree.Element, part: str) -> str | None:
    """Of a property: an element of it, else an attribute (Configuration.Parser)."""
    text = element.findtext(part)
    return element.get(part) if text is None else text


def _root(path: Path) -> ElementTree.Element:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; check --config") from error
    # Entities inside of entities make gigabytes of a small file.
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
    for element in root.iter():
        if element.tag in _INCLUDES:
            raise ConfigError(
                f"{path} includes {element.get('href') or 'another file'}, and includes are not "
                "followed; write the properties of that file into it"
            )
    return root


def read_hadoop_site(environment: Mapping[str, str]) -> dict[str, str]:
    """Properties of core-site.xml and hdfs-site.xml in ``HADOOP_CONF_DIR``, or if that is not set
    in ``HIVE_CONF_DIR``, which Hive's programs have on their class path, too.

    Raises ConfigError for a directory that is not there, and for a file that cannot be read.
    """
    folder = environment.get("HADOOP_CONF_DIR", "")
    if folder and not Path(folder).is_dir():
        raise ConfigError(f"HADOOP_CONF_DIR is {folder}, which is no directory; mend or unset it")
    folder = folder or environment.get("HIVE_CONF_DIR", "")
    if not folder:
        return {}
    values: dict[str, str] = {}
    final: set[str] = set()
    # In Hadoop's order: what core-site.xml calls final, hdfs-site.xml cannot change.
    for name in ("core-site.xml", "hdfs-site.xml"):
        path = Path(folder) / name
        if path.exists():
            _read_into(values, final, path)
    system = {f"env.{name}": value for name, value in environment.items()}
    return {name: substitute(value, values, system) for name, value in values.items()}


def substitute(text: str, values: Mapping[str, str], system: Mapping[str, str]) -> str:
    """Replace ``${name}``, ``${system:user.name}``, ``${env:X}``, ``${env.X}`` and its forms with a
    default, ``${env.X:-y}`` (also for an empty one) and ``${env.X-y}``; unknown ones stay.

    Raises ConfigError for references that never end.
    """
    known = {**values, **system}
    for _ in range(_DEPTH_MAX):
        replaced = _REFERENCE.sub(lambda m: _value_of(m.group(1), m.group(0), known), text)
        if replaced == text:
            return text
        text = replaced
    raise ConfigError(f"'{text}' refers to itself; break the circle of ${{…}} references")


def require_resolved(text: str, what: str) -> None:
    """Raises ConfigError for a reference that is left: it would be a name of a directory."""
    left = _REFERENCE.search(text)
    if left is not None:
        raise ConfigError(
            f"{what} is '{text}', and nothing says what {left.group(0)} is; set it, or write the "
            "value in full"
        )


def _value_of(name: str, written: str, known: Mapping[str, str]) -> str:
    match = _WITH_DEFAULT.fullmatch(name)
    if name in known or match is None:
        return known.get(name, written)
    value = known.get(f"env.{match[1]}")
    is_default = value is None or (match[2] == ":-" and not value)
    return match[3] if is_default or value is None else value
