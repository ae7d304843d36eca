"""What the comparison asks of an engine, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

Row = tuple[str, ...]
Fields = Mapping[str, Any]
CompactorThread = Literal["Initiator", "Worker", "Cleaner"]


class Engine(Protocol):
    """A program that runs Hive SQL on ACID tables and keeps a metastore.

    An engine owns one database. Whatever it returns is its own raw truth; masking is not its
    business, save that it gives only rows about its database and what happened since it was opened.
    """

    @property
    def name(self) -> str:
        """Named in reports of differences."""

    @property
    def database(self) -> str:
        """The database that the statements work in; they call it `${db}`."""

    @property
    def own_names(self) -> Mapping[str, str]:
        """Texts that only this engine has, such as its warehouse, and what they are called in
        comparisons.
        """

    def sql(self, statement: str) -> list[Row]:
        """Rows in Hive's text form; raises StatementError when the engine refuses."""

    def list_files(self, table: str) -> list[str]:
        """Every path under the table's folder, relative to it, directories with a slash at the
        end.
        """

    def queue_rows(self) -> list[Fields]:
        """Rows of COMPACTION_QUEUE and COMPLETED_COMPACTIONS by id, columns without their prefix,
        and `QUEUE`.
        """

    def notification_rows(self) -> list[Fields]:
        """Rows of NOTIFICATION_LOG by event id, MESSAGE decoded down to the JSON inside its
        strings.
        """

    def run(self, thread: CompactorThread) -> None:
        """One turn of a compactor thread."""
