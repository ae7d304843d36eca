"""`_hms_bridge_scope`: what an incremental dump of ours says of scopes beside Hive's own line.

Hive says that a scope was changed, and its load then drops every table of the target that is
outside (docs/hive/replication.md §34). Ours drops what the dump names, and only if a load made it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from changemanager.location import Resolver
from hms_bridge.errors import ConfigError, ReplError
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.side_texts import parsing
from hms_bridge.repl.format.texts import read_text_if_there
from hms_bridge.repl.format.untrusted import checked_name

_TEXT_BYTES_MAX = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ScopeNote:
    """``before``: the scope of the replica that the dump goes on from. ``names``: tables that come
    whole, or go, by the scope alone, because it was changed or a rename crossed its edge."""

    before: ReplScope
    names: frozenset[str] = field(default_factory=frozenset)

    def format(self) -> str:
        """A line of JSON: patterns of the scope before, and names in order."""
        fields = {"before": self.before.patterns_text, "tables": sorted(self.names)}
        return json.dumps(fields) + "\n"

    @classmethod
    def parse(cls, text: str, path: str, database: str) -> ScopeNote:
        """Read the file's text. Raises ReplError, naming ``path``."""
        with parsing("note of a scope", path):
            fields = json.loads(text)
            patterns, names = fields["before"], fields["tables"]
            if not isinstance(patterns, str) or not isinstance(names, list):
                raise TypeError
            checked = frozenset(checked_name(str(name), "table") for name in names)
        try:
            before = ReplScope.parse(f"{database}.{patterns}" if patterns else database)
        except ConfigError as error:
            raise ReplError(f"{path}: {error}; copy the dump again") from error
        return cls(before=before, names=checked)


def read_scope_note(resolve: Resolver, paths: DumpPaths, now: ReplScope) -> ScopeNote:
    """That of a dump; one without goes on from the scope that it has itself."""
    text = read_text_if_there(resolve(paths.scope_note), _TEXT_BYTES_MAX)
    if text is None:
        return ScopeNote(before=now)
    return ScopeNote.parse(text, paths.scope_note, now.database_name)
