"""Addresses of metastores: ``thrift://host:port``, several separated by commas."""

from __future__ import annotations

from dataclasses import dataclass

from changemanager.masking import masked_url
from hms_bridge.config.metastore_url import SERVER
from hms_bridge.errors import ConfigError

DEFAULT_PORT = 9083


@dataclass(frozen=True, slots=True)
class Address:
    """Where one metastore listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SERVER}{host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Addresses that are tried in turn. Raises ConfigError for a malformed one."""
    addresses = tuple(_parse(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise ConfigError("no metastore address was given; write thrift://host:port")
    return addresses


def _parse(text: str) -> Address:
    rest = text.removeprefix(SERVER).rstrip("/")
    if "://" in rest or not rest:
        raise ConfigError(f"{masked_url(text)!r} is no metastore address; write thrift://host:port")
    if "@" in rest:
        raise ConfigError(
            f"{masked_url(text)!r} has a user, and nobody signs in to a metastore by its address; "
            "write thrift://host:port"
        )
    host, separator, port = rest.rpartition(":")
    if not separator or rest.endswith("]"):
        host, port = rest, str(DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536 or not host:
        raise ConfigError(f"{masked_url(text)!r} has no usable port; write thrift://host:port")
    return Address(host.strip("[]"), int(port))
