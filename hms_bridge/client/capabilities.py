"""What a client says that it understands; a Hive 4 metastore hides or refuses things otherwise
(docs/hive/metastore.md §7)."""

from __future__ import annotations

from typing import Any

from hms_bridge.wire.structs import Struct, hive

INSERT_ONLY_TABLES = 2

PROCESSOR_CAPABILITIES = (
    "EXTWRITE",
    "EXTREAD",
    "HIVEBUCKET2",
    "HIVEFULLACIDREAD",
    "HIVEFULLACIDWRITE",
    "HIVECACHEINVALIDATE",
    "HIVEMANAGESTATS",
    "HIVEMANAGEDINSERTWRITE",
    "HIVEMANAGEDINSERTREAD",
    "HIVESQL",
    "HIVEMQT",
    "HIVEONLYMQTWRITE",
    "ACCEPTS_UNMODIFIED_METADATA",
)
"""What Hive's own engine says. Without HIVEFULLACIDWRITE a Hive 4 metastore creates no ACID
table, and turns a managed one into an external one (tests/golden/wire)."""

PROCESSOR = "hms-bridge"


def client_capabilities() -> Struct:
    """A ClientCapabilities struct: insert-only tables are understood."""
    return hive.ClientCapabilities(values=[INSERT_ONLY_TABLES])


def said_of_us() -> dict[str, Any]:
    """The fields of a request that say who asks, and what it understands."""
    return {
        "processorCapabilities": list(PROCESSOR_CAPABILITIES),
        "processorIdentifier": PROCESSOR,
    }
