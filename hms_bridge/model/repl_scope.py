"""Which tables of a database a replication covers, in Hive's form ``db.'include'.'exclude'``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hms_bridge.errors import ConfigError
from hms_bridge.model.name_pattern import name_pattern

_TEXT = re.compile(r"([^.'\"]+)(\..*)?", re.DOTALL)
_PATTERNS = re.compile(r"\.'([^']*)'(?:\.'([^']*)')?")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplScope:
    """A database, or those of its tables whose whole names the first pattern fits and the second
    does not; the case of letters counts for nothing.

    Patterns are kept as they were given and looked at when they are used: a dump of Hive may
    have one that is not understood here. Two scopes are the same if their texts are, as in Hive
    (``ReplScope.equals``; docs/hive/replication.md §34).
    """

    database_name: str
    included_pattern: str | None = None
    excluded_pattern: str | None = None

    @classmethod
    def parse(cls, text: str) -> ReplScope:
        """Read ``db``, ``db.'include'`` or ``db.'include'.'exclude'``, patterns as they stand
        between the quotes. Raises ConfigError for what is none, and for a pattern that is empty or
        not understood (name_pattern)."""
        whole = _TEXT.fullmatch(text.strip())
        patterns = None if whole is None else _PATTERNS.fullmatch(whole[2] or "")
        if whole is None or (whole[2] and patterns is None):
            raise ConfigError(
                f"{text} is no scope of a replication; write db, db.'include' or "
                "db.'include'.'exclude', where include and exclude are regular expressions for "
                "whole names of tables, each between ' and ' (in a shell: all of it between \")"
            )
        scope = cls(
            database_name=whole[1].lower(),
            included_pattern=None if patterns is None else patterns[1],
            excluded_pattern=None if patterns is None else patterns[2],
        )
        for pattern in (scope.included_pattern, scope.excluded_pattern):
            if pattern is not None:
                name_pattern(pattern)
        return scope

    @property
    def is_whole_database(self) -> bool:
        """Whether no table is left out."""
        return self.included_pattern is None and self.excluded_pattern is None

    @property
    def patterns_text(self) -> str:
        """``'include'.'exclude'``, ``'include'``, or nothing for the whole database."""
        given = [self.included_pattern, self.excluded_pattern]
        if self.included_pattern is None and self.excluded_pattern is not None:
            given[0] = ".*"
        return ".".join(f"'{pattern}'" for pattern in given if pattern is not None)

    @property
    def text(self) -> str:
        """What :meth:`parse` reads."""
        patterns = self.patterns_text
        return f"{self.database_name}.{patterns}" if patterns else self.database_name

    def contains(self, table: str) -> bool:
        """Whether a table of the database is covered (``ReplScope.tableIncludedInReplScope``).

        Raises ConfigError for a pattern that is not understood.
        """
        included, excluded = self.included_pattern, self.excluded_pattern
        if included is not None and not name_pattern(included).matches(table):
            return False
        return excluded is None or not name_pattern(excluded).matches(table)
