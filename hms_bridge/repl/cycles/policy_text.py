"""Policies as TOML, for people, version control and another machine."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from changemanager.masking import MASK, is_secret_name, masked_url
from hms_bridge.config.declare import keys_of
from hms_bridge.config.repl import ReplSettings
from hms_bridge.config.settings import LOAD_ROOTS
from hms_bridge.errors import ConfigError
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import PolicySide, ReplicationPolicy
from hms_bridge.repl.format.untrusted import given_name

_FROM_HIVE = keys_of(ReplSettings)["is_from_hive"].name
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_POLICY_KEYS = frozenset({"name", "root", "tables", "is_paused", "source", "target"})
_SIDE_KEYS = frozenset({"metastore", "database", "settings"})
_TARGET_KEYS = _SIDE_KEYS | {"files_from", "from_hive"}


def format_policies(policies: Sequence[ReplicationPolicy]) -> str:
    """A ``[[policy]]`` for each; :func:`parse_policies` reads it again."""
    return "\n".join(_format(policy) for policy in policies)


def parse_policies(text: str, place: str) -> tuple[ReplicationPolicy, ...]:
    """Raises ConfigError, with ``place`` (a file), for what is no such text."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{place} is no TOML: {error}") from error
    entries = content.pop("policy", None)
    if content or not isinstance(entries, list) or not entries:
        raise ConfigError(f"{place}: write a [[policy]] for each policy, and nothing else")
    policies = tuple(_parsed(entry, f"{place}, policy {at}") for at, entry in enumerate(entries, 1))
    names = [policy.name for policy in policies]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{place}: two policies are called {name}")
    return policies


def checked(policy: ReplicationPolicy) -> ReplicationPolicy:
    """The policy with database names as Hive has them. Raises ConfigError for a password in clear
    text, for settings that are empty and for patterns of tables that are none, ReplError for what
    is no name of a database."""
    policy = replace(policy, source=_checked(policy.source), target=_checked(policy.target))
    _require_no_password("the directory of dumps", policy.root)
    ReplScope.parse(policy.scope.text)
    return policy


def with_environment(text: str, environment: Mapping[str, str]) -> str:
    """A URL or setting with each ``${NAME}`` filled in. Raises ConfigError for an unknown one."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ConfigError(
                f"the policy asks for ${{{match[1]}}}, which the environment has not; set it for "
                "hms-bridge repl run"
            )
        return environment[match[1]]

    return _VARIABLE.sub(value, text)


def missing_variable(side: PolicySide, environment: Mapping[str, str]) -> str | None:
    """A ``${NAME}`` of a side that an environment has not; None if it has all."""
    for text in (side.metastore or "", *side.settings.values()):
        for match in _VARIABLE.finditer(text):
            if match[1] not in environment:
                return match[1]
    return None


def _checked(side: PolicySide) -> PolicySide:
    if side.metastore is not None:
        _require_url(side.metastore)
        _require_no_password("the URL of a metastore", side.metastore)
    for key, value in side.settings.items():
        if is_secret_name(key) and not _VARIABLE.fullmatch(value):
            raise _clear_text(key)
        _require_no_password(key, value)
    return replace(side, database=given_name(side.database, "database"))


def _require_url(text: str) -> None:
    try:
        urlsplit(text)
    except ValueError as error:
        raise ConfigError(f"'{masked_url(text)}' is no URL of a metastore: {error}") from error


def _require_no_password(what: str, text: str) -> None:
    """Raises ConfigError for a URL with a password that is no ``${NAME}``."""
    shown = _VARIABLE.sub(MASK, text)
    if "://" in shown and masked_url(shown) != shown:
        raise _clear_text(what)


def _clear_text(what: str) -> ConfigError:
    return ConfigError(
        f"{what} has a password in clear text, which everyone who reads policies would see; write "
        "${NAME} there, and set NAME in the environment of hms-bridge repl run"
    )


def _parsed(entry: object, place: str) -> ReplicationPolicy:
    given = _table(entry, _POLICY_KEYS, place)
    is_paused = given.get("is_paused", False)
    if not isinstance(is_paused, bool):
        raise ConfigError(f"{place}: is_paused is true or false")
    patterns = _text(given, "tables", place) if "tables" in given else ""
    scope = ReplScope.parse(f"db.{patterns}" if patterns else "db")
    return checked(
        ReplicationPolicy(
            name=_text(given, "name", place),
            root=_text(given, "root", place),
            source=_side(given.get("source"), f"{place}, source", _SIDE_KEYS),
            target=_side(given.get("target"), f"{place}, target", _TARGET_KEYS),
            is_paused=is_paused,
            included_tables=scope.included_pattern,
            excluded_tables=scope.excluded_pattern,
        )
    )


def _side(entry: object, place: str, known: frozenset[str]) -> PolicySide:
    given = _table(entry, known, place)
    settings = given.get("settings", {})
    if not isinstance(settings, dict) or not all(isinstance(v, str) for v in settings.values()):
        raise ConfigError(f'{place}: settings are texts: {{ "hive.repl.cmrootdir" = "…" }}')
    return PolicySide(
        database=_text(given, "database", place),
        metastore=_text(given, "metastore", place) if "metastore" in given else None,
        settings={**settings, **_origin(given, settings, place)},
    )


def _origin(given: Mapping[str, Any], settings: Mapping[str, str], place: str) -> Mapping[str, str]:
    """``files_from`` and ``from_hive`` of a target, as the settings that they are. Raises
    ConfigError for a setting that is given twice."""
    roots, is_from_hive = given.get("files_from", []), given.get("from_hive", False)
    if not isinstance(roots, list) or not all(isinstance(root, str) and root for root in roots):
        raise ConfigError(
            f'{place}: files_from is a list of directories: ["hdfs://nn:8020/warehouse"]'
        )
    if any("," in root for root in roots):
        raise ConfigError(f"{place}: a directory of files_from has a comma, which separates them")
    if not isinstance(is_from_hive, bool):
        raise ConfigError(f"{place}: from_hive is true or false")
    origin = {LOAD_ROOTS.name: ",".join(roots)} if roots else {}
    origin |= {_FROM_HIVE: "true"} if is_from_hive else {}
    for key in origin:
        if key in settings:
            raise ConfigError(f"{place}: {key} is among its settings, too; leave it out there")
    return origin


def _table(entry: object, known: frozenset[str], place: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError(f"{place} is missing; see hms-bridge repl policy export")
    unknown = sorted(entry.keys() - known)
    if unknown:
        raise ConfigError(
            f"{place}: there is no {unknown[0]}; there are {', '.join(sorted(known))}"
        )
    return entry


def _text(given: Mapping[str, Any], key: str, place: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{place}: {key} is missing, or no text")
    return value


def _format(policy: ReplicationPolicy) -> str:
    lines = ["[[policy]]", _line("name", policy.name), _line("root", policy.root)]
    if not policy.scope.is_whole_database:
        lines.append(_line("tables", policy.scope.patterns_text))
    if policy.is_paused:
        lines.append("is_paused = true")
    for title, side in (("source", policy.source), ("target", policy.target)):
        lines += ["", f"[policy.{title}]"]
        if side.metastore is not None:
            lines.append(_line("metastore", side.metastore))
        lines.append(_line("database", side.database))
        settings = dict(side.settings)
        if title == "target":
            lines += _origin_lines(settings)
        if settings:
            lines += ["", f"[policy.{title}.settings]"]
            lines += [_line(_quoted(key), value) for key, value in sorted(settings.items())]
    return "\n".join(lines) + "\n"


def _origin_lines(settings: dict[str, str]) -> list[str]:
    """The settings that have keys of their own, which are taken out; a text that is not as the keys
    would make it stays a setting."""
    lines = []
    roots = settings.get(LOAD_ROOTS.name, "").split(",")
    if all(root and root == root.strip() for root in roots):
        del settings[LOAD_ROOTS.name]
        lines.append(f"files_from = [{', '.join(map(_quoted, roots))}]")
    if settings.get(_FROM_HIVE) == "true":
        del settings[_FROM_HIVE]
        lines.append("from_hive = true")
    return lines


def _line(key: str, value: str) -> str:
    return f"{key} = {_quoted(value)}"


def _quoted(text: str) -> str:
    """TOML's basic strings have JSON's escapes, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
