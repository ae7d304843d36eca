"""How a MySQL server begins a connection that it does not want."""

from __future__ import annotations

NO_ENTRY = "no entry"


def refusal(code: int) -> bytes:
    """An error in place of a greeting: length, number of the packet, code and text."""
    said = b"\xff" + code.to_bytes(2, "little") + b"#28000" + NO_ENTRY.encode()
    return len(said).to_bytes(3, "little") + b"\0" + said
