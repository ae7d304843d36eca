"""The page that lists every thrift method, which releases have it, and whether it is answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hms_bridge.server.ignored_fields import IGNORED
from hms_bridge.server.serve import offered, offered_names
from hms_bridge.server.verb_classes import class_of
from hms_bridge.wire.generations import ASKED, releases_of
from hms_bridge.wire.methods import all_names

_INTRODUCTION = """# Thrift methods

The server answers on one port what clients of Hive 2, 3 and 4 call. A method that is not answered
is refused with `TApplicationException` 1 (unknown method), upon which clients take another form of
the call; see `hms_bridge/server/answers.py`. Beside each stands which releases have it in their
interface, of {releases} (others were not looked at).

The last column says which callers a method is for: everybody who reaches the port; readers of the
log (this machine, the server's own user, proxy users); trusted hosts (this machine, proxy users).
[Who may do what](../howto/cluster.md#who-may-do-what) has the settings.

Of {total} methods {offered} are answered.
"""
_NO_RELEASE = "betas of 4.0"
_REFUSED = """What none of the clients that we tried calls: indices, types, a cache of files'
metadata, a registry of schemas, delegation tokens (nobody is authenticated; tokens and keys that
others store are kept), properties, options of the service, and a form that only betas of 4.0 had.
"""
_IGNORED = """Every other field of a request has an effect, or is refused by name. A field is
written with its struct, or with a dot alone if it is an argument of the method itself; behind the @
stands the only method that ignores it. What lies in an ignored field is ignored with it.
"""


def wire_methods_page() -> str:
    """The text of ``docs/reference/wire-methods.md``."""
    names = all_names()
    *others, last = ASKED
    asked = f"{', '.join(others)} and {last}"
    lines = [_INTRODUCTION.format(total=len(names), offered=len(offered_names()), releases=asked)]
    for family, members in offered().items():
        lines += [f"## {family}", "", *_table(members)]
    lines += ["## Refused", "", _REFUSED, *_table(set(names) - offered_names())]
    lines += ["## Fields without an effect", "", _IGNORED, *_ignored()]
    return "\n".join(lines)


def _ignored() -> Iterator[str]:
    yield from ("| why | fields |", "|---|---|")
    for reason, names in IGNORED.items():
        yield f"| {reason} | {', '.join(f'`{name}`' for name in sorted(names.split()))} |"
    yield ""


def _table(names: Iterable[str]) -> Iterator[str]:
    yield from ("| method | releases | answered | for |", "|---|---|---|---|")
    for name in sorted(names, key=str.lower):
        releases = ", ".join(releases_of(name)) or _NO_RELEASE
        is_answered = "yes" if name in offered_names() else "no"
        yield f"| `{name}` | {releases} | {is_answered} | {class_of(name).value} |"
    yield ""
