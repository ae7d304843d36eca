"""What is secret in texts, and how it is left out of errors, logs and what hooks pass on.

It stands in the lowest package, so that everything can use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

_NAME = re.compile(
    r"passw|passphrase|[._-]pwd\b|secret|token|credential|(?:access|private|api)[._-]?key"
    r"|^(?:proxy-)?authorization$",
    re.IGNORECASE,
)
_SIGN_IN = re.compile(r"(?<=://)([^:/@]*):(?!PASSWORD@).*@", re.DOTALL)
_SIGN_IN_WITHOUT_SCHEME = re.compile(r"^([^:@]*):.*@", re.DOTALL)
_SIGN_IN_WITHOUT_HOST = re.compile(
    r"(?<=://)(?<!thrift://)([^:/@\[]+):(?!\d*(?:[/?,;]|$)|\*)[^/@?]*(?=[/?]|$)"
)
_PARAMETER = re.compile(r"(?i)((?:pass|pwd|secret|token|credential)\w*=)[^&;)]*")
# Of texts that clients may send: every repetition has an end, or a long one would take for ever.
_SIGN_IN_OF_TEXT = re.compile(r"(?<=://)([^:/@\s]{0,256}):(?!PASSWORD@|\d+(?:/|,|$))\S{0,512}@")
_PARAMETER_OF_TEXT = re.compile(
    r"(?i)([?&;(,][\w.-]{0,128}(?:pass|pwd|secret|token)\w{0,64}=)[^\s&;,)'\"]*"
)
_BEARER_OF_TEXT = re.compile(r"(?i)(\bbearer\s{1,8})[\w.~+/=-]{6,4096}")
_PAIR_OF_TEXT = re.compile(
    r'(?i)(\\{0,64}"[^"\\]{0,256}(?:passw|secret|token|credential|access[._-]?key)[^"\\]{0,256}'
    r'\\{0,64}"\s{0,8}:\s{0,8}\\{0,64}")[^"\\]*'
)


def is_secret_name(name: str) -> bool:
    """Whether the value of a property, or of a variable, is secret by its name:
    ``hive.sql.dbcp.password``, ``fs.s3a.secret.key``, ``AWS_SESSION_TOKEN``."""
    return _NAME.search(name) is not None


def masked_url(url: str) -> str:
    """A URL, or what was meant as a URL, without password: of the user before the host, if there is
    one, and in its parameters. The user's name stays."""
    return _without_password(url, rf"\1:{MASK}")


def typable_url(url: str) -> str:
    """A URL for a command that somebody is to type: it signs in with the password of the settings,
    or as the database's own programs do. A mask in its place would be tried as the password."""
    return _without_password(url, r"\1")


def _without_password(url: str, user: str) -> str:
    """``user``: what takes the place of the user, group 1, and the password."""
    sign_in = _SIGN_IN if "://" in url else _SIGN_IN_WITHOUT_SCHEME
    shown = _SIGN_IN_WITHOUT_HOST.sub(user, sign_in.sub(f"{user}@", url))
    return _PARAMETER.sub(rf"\1{MASK}", shown)


def masked_text(text: str) -> str:
    """A sentence, or a log's line, in which URLs may stand."""
    shown = _PARAMETER_OF_TEXT.sub(rf"\1{MASK}", _SIGN_IN_OF_TEXT.sub(rf"\1:{MASK}@", text))
    return _BEARER_OF_TEXT.sub(rf"\1{MASK}", shown)


def masked_message(value: Any) -> Any:
    """A decoded event message of Hive. Its own fields are names and partitions, which may be called
    anything; the objects in it are texts of JSON with properties, whose secrets are masked. URLs
    are, wherever they stand. Raises RecursionError."""
    return _masked(value, has_properties=False)


def masked_raw(text: str) -> str:
    """A text that should be JSON and is none that can be read."""
    return masked_text(_PAIR_OF_TEXT.sub(rf"\1{MASK}", text))


def _masked(value: Any, *, has_properties: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            name: MASK
            if has_properties and isinstance(inner, str) and is_secret_name(name)
            else _masked(inner, has_properties=has_properties)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_masked(inner, has_properties=has_properties) for inner in value]
    return _masked_value(value) if isinstance(value, str) else value


def _masked_value(text: str) -> str:
    if text[:1] not in ("{", "["):
        return masked_text(text)
    try:
        inner = json.loads(text)
    except ValueError:
        return masked_raw(text)
    masked = _masked(inner, has_properties=True)
    # Unchanged texts stay as they were written, to the blank.
    return (
        text if masked == inner else json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
    )
