"""Which database took the place of a source, as a property of it (SUCCESSOR): its dumps are of what
nobody follows any more, so none is made, whoever asks."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.repl.format.texts import compact_json
from hms_bridge.repl.remedies import gone_over
from hms_bridge.repl.target_objects import SUCCESSOR, is_fenced


@dataclass(frozen=True, kw_only=True, slots=True)
class Successor:
    """``policy`` promoted ``database``; ``metastore``: its URL, None: the one that keeps the
    policy."""

    policy: str
    database: str
    metastore: str | None = None

    def format(self) -> str:
        """JSON without blanks, which :meth:`of` reads from a database."""
        fields = {"policy": self.policy, "database": self.database, "metastore": self.metastore}
        return compact_json(fields)

    @classmethod
    def of(cls, database: Database) -> Successor | None:
        """What a database says of its successor; None if it has none. Raises ReplError for a value
        that is none."""
        text = database.parameters.get(SUCCESSOR, "")
        if not text:
            return None
        try:
            fields = json.loads(text)
            metastore = fields["metastore"]
            return cls(
                policy=str(fields["policy"]),
                database=str(fields["database"]),
                metastore=None if metastore is None else str(metastore),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ReplError(
                f"{SUCCESSOR} of database {database.name} is damaged ({error}): another database "
                "took its place, and nobody can tell which. 'repl failback POLICY' of the policy "
                f"that promoted it ends this, or ALTER DATABASE {database.name} SET DBPROPERTIES "
                f"('{SUCCESSOR}'='')"
            ) from error


def successor_text(database: Database) -> str | None:
    """Who took a source's place, and the commands that lead on; None if nobody did. Raises
    ReplError."""
    successor = Successor.of(database)
    if successor is None:
        return None
    metastore = successor.metastore or f"the metastore that keeps policy {successor.policy}"
    return gone_over(
        database.name,
        policy=successor.policy,
        successor=f"database {successor.database} of {metastore}",
        is_fenced=is_fenced(database),
    )


def require_no_successor(database: Database) -> None:
    """Raises ReplError for a source whose place another database took."""
    text = successor_text(database)
    if text is not None:
        raise ReplError(text)
