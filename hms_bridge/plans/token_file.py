"""The token of a plan service that others than its process have to know: in a file of its owner."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
from pathlib import Path

from hms_bridge.errors import ConfigError

_OF_OTHERS = stat.S_IRWXO
_LENGTH_MIN = 32


def kept_token(path: Path) -> str:
    """The token of a file, so that Spark's sessions outlive a restart of the service; if there is
    none it is made, for its owner alone. Raises ConfigError, also for one that everybody reads."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise ConfigError(f"cannot write a token to {path}: {error.strerror}") from error
    token = secrets.token_urlsafe(_LENGTH_MIN)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    return token


def _read(path: Path) -> str:
    try:
        mode, token = path.stat().st_mode, path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read a token from {path}: {error}") from error
    if mode & _OF_OTHERS:
        raise ConfigError(
            f"everybody on this machine may use {path}, and who has the token reads what tables "
            f"there are; remove it for a new one, or: chmod 600 {shlex.quote(str(path))}"
        )
    if len(token) < _LENGTH_MIN or len(token.split()) != 1:
        raise ConfigError(f"{path} has no token in one line; remove it for a new one")
    return token
