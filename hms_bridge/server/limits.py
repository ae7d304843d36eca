"""What a client may ask of the server."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerLimits:
    """Bounds that hold before memory is given to a message; Hive's defaults where it has one.

    The depth of structs inside structs is bounded by the thrift library (64).
    """

    message_size_bytes: int = 100 * _MIB
    container_length: int = 1_000_000
    connections: int = 1000
    message_timeout_seconds: float = 600.0


DEFAULT_LIMITS = ServerLimits()
