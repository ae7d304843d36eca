"""What a client may ask of the server."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerLimits:
    """Bounds that hold before memory is given to a message; Hive's defaults where it has one.

    ``element_count``: fields and entries of a message, each about 150 bytes of memory. When all
    ``connections`` are open, that whose client we have waited for longest, and for
    ``idle_seconds``, is closed for a new one: it sends nothing, or half a message, or does not
    take its answer. The depth of structs inside structs is bounded by the thrift library (64).
    """

    message_size_bytes: int = 100 * _MIB
    container_length: int = 1_000_000
    element_count: int = 5_000_000
    connections: int = 1000
    message_timeout_seconds: float = 600.0
    idle_seconds: float = 60.0


DEFAULT_LIMITS = ServerLimits()
