"""The page that lists every thrift method, and whether it is answered."""

from __future__ import annotations

from hms_bridge.server.serve import offered, offered_names
from hms_bridge.wire.additions import METHODS
from hms_bridge.wire.methods import OLDER_METHODS, all_names

_INTRODUCTION = """# Thrift methods

The server answers on one port what clients of Hive 2, 3 and 4 call. A method that is not answered
is refused with `TApplicationException` 1 (unknown method), upon which clients take another form of
the call; see `hms_bridge/server/answers.py`. Methods marked 4.x are not in the published Python
bindings; those marked ≤ 3 were dropped by Hive 4.

Of {total} methods {offered} are answered.
"""


def wire_methods_page() -> str:
    """The text of ``docs/reference/wire-methods.md``."""
    names = all_names()
    lines = [_INTRODUCTION.format(total=len(names), offered=len(offered_names()))]
    for family, members in offered().items():
        lines += [f"## {family}", ""]
        lines += [f"- `{name}`{_generation(name)}" for name in sorted(members, key=str.lower)]
        lines.append("")
    lines += ["## Refused", ""]
    refused = sorted(set(names) - offered_names(), key=str.lower)
    lines += [f"- `{name}`{_generation(name)}" for name in refused]
    return "\n".join(lines) + "\n"


def _generation(name: str) -> str:
    if name in OLDER_METHODS:
        return " (≤ 3)"
    return " (4.x)" if any(addition.name == name for addition in METHODS) else ""
