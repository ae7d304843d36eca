"""How many statements each of the most frequent verbs sends, so that none grows unseen.

Each is a round trip to a database server, and most of what a verb costs. A number here is not a
goal: who needs a statement more writes it into the table, with its reason; who saves one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.function import Function
from hms_bridge.service.open import open_local_metastore
from tests.conformance import objects
from tests.support.databases import SERVER_URL, fresh_url
from tests.support.ready_verbs import ReadyVerbs
from tests.support.simulated_clock import SimulatedClock

IS_POSTGRESQL = (SERVER_URL or "").startswith("postgresql")


@dataclass(frozen=True)
class Sent:
    """Statements of one call on SQLite and on PostgreSQL, and what they are; without the BEGIN and
    COMMIT of those that change something."""

    verb: str
    sqlite: int
    postgresql: int
    what: str


# To have a row returned that is changed takes SQLite longer than to read it first.
_EVENT = "an event: both its numbers, each of them moved, itself (PostgreSQL: in one)"
_ONE = "PostgreSQL: in one"
_OPEN = "row, history (PostgreSQL: the openers' lock, then in one)"
_LOCKED = "the row that its end locks"
_LOCKED_WITH_TRACES = f"{_LOCKED}, with traces (PostgreSQL: the row alone)"
TABLE = (
    Sent("open_txns", 6, 3, f"{_OPEN}; {_EVENT}"),
    Sent("open_txns, read only", 2, 2, _OPEN),
    Sent(
        "allocate_table_write_ids", 10, 5,
        "is it a replica, "
        f"{_LOCKED}, held ids, counter, row, locks before it ({_ONE} the last three); {_EVENT}",
    ),
    Sent("lock", 5, 5, f"{_LOCKED}, what it writes, id and time, earlier ones, row"),
    Sent("lock of no transaction", 3, 3, "id and time, earlier ones, row"),
    Sent("check_lock", 2, 2, "rows, sign of life"),
    Sent("check_lock that waits", 4, 4, "rows, sign of life, earlier ones, what is in the way"),
    Sent("check_lock that acquires", 4, 4, "rows, sign of life, earlier ones, state with time"),
    Sent("unlock", 1, 1, "rows"),
    Sent("heartbeat of a transaction", 1, 1, "sign of life"),
    Sent("heartbeat of both", 2, 2, "signs of life of lock and transaction"),
    Sent("heartbeat_txn_range", 1, 1, "sign of life of all"),
    Sent(
        "commit_txn, nothing done", 7, 4,
        f"{_LOCKED_WITH_TRACES}, history, state ({_ONE}; write ids, in case); {_EVENT}",
    ),
    Sent(
        "commit_txn, read only", 3, 3,
        f"{_LOCKED_WITH_TRACES}, history, state ({_ONE}; write ids, in case)",
    ),
    Sent(
        "commit_txn of an insert", 11, 4,
        f"as of nothing, and: write ids; completed components, theirs, locks ({_ONE}); {_EVENT}",
    ),
    Sent(
        "abort_txn", 13, 6,
        f"{_LOCKED}, silent writes, state and four tables of the open ({_ONE}), write ids, "
        f"replay; {_EVENT}",
    ),
    Sent("get_open_txns", 1, 1, "one snapshot"),
    Sent("get_valid_write_ids", 2, 2, "highest, rows"),
    Sent("get_table", 3, 3, "the table with its storage, parameters, lists"),
    Sent("get_partitions", 6, 6, "the table as above, partitions, parameters, lists"),
    Sent(
        "add_partitions", 24, 22,
        "looks first (table, partitions, file tasks); the table again, locked (PostgreSQL), "
        f"partitions, moves, three numbers, six rows, is it a replica; {_EVENT}",
    ),
    Sent("get_next_notification", 1, 1, "rows"),
    Sent("find_next_compaction", 3, 3, "candidates, the claim, the entry"),
    Sent(
        "update_compactor_state", 4, 4,
        f"{_LOCKED}, the entry; what is covered, as a row that is there or a new one",
    ),
    Sent("mark_compacted", 1, 1, "the entry"),
    Sent("target_marks", 1, 1, "the table, with its directory and whether a rename moves it"),
    Sent("are_listed", 1, 1, "since when tables of the database are read by those who may list"),
    Sent(
        "cleaning_views", 7, 7,
        "the watermark in two; one snapshot; highest, rows; entries; aborted ones (if there are "
        "any, their write ids)",
    ),
    Sent("mark_cleanings_started", 1, 1, "the entry"),
    Sent(
        "mark_cleaned", 6, 6,
        "clean-ups of aborts; the entry held, kept, gone; completed components, aborted ones",
    ),
)  # fmt: skip
"""On MariaDB what is numbered takes a statement more."""


@dataclass(frozen=True)
class Counted:
    """Verbs whose statements are heard."""

    verbs: ReadyVerbs
    statements: list[str] = field(default_factory=list)


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    url = fresh_url(tmp_path / "database")
    metastore = open_local_metastore(
        url, warehouse=f"file:{tmp_path}/warehouse", clock=SimulatedClock()
    )
    counted = Counted(ReadyVerbs(metastore))
    counted.verbs.add_partition("first")
    engine = metastore._transactions.database.engine

    @event.listens_for(engine, "before_cursor_execute")
    def hear(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            counted.statements.append(statement)

    yield counted
    metastore.close()


def test_a_function_is_altered_with_a_look_at_each_of_its_databases(counted: Counted) -> None:
    metastore, here = counted.verbs.metastore, counted.verbs.database
    there = objects.new_database(metastore)
    function = Function(
        name="f", database_name=here, class_name="c", owner_name="bob",
        owner_type=PrincipalType.USER,
    )  # fmt: skip
    metastore.create_function(function)
    for database, looks in ((here, 1), (there, 2)):
        counted.statements.clear()
        metastore.alter_function(here, "f", replace(function, database_name=database))
        read = [text for text in counted.statements if "DATABASE_PARAMS" in text]
        assert len(read) == looks, "\n".join(read)
    with pytest.raises(NoSuchObjectError, match="database hive.nowhere"):
        metastore.alter_function(there, "f", replace(function, database_name="nowhere"))


@pytest.mark.skipif(bool(SERVER_URL) and not IS_POSTGRESQL, reason="no numbers for this database")
@pytest.mark.parametrize("sent", TABLE, ids=lambda sent: sent.verb)
def test_a_verb_sends_what_the_table_says(counted: Counted, sent: Sent) -> None:
    call = counted.verbs.call_of(sent.verb)
    counted.statements.clear()
    call()
    seen = "\n".join(" ".join(statement.split())[:150] for statement in counted.statements)
    wanted = sent.postgresql if IS_POSTGRESQL else sent.sqlite
    assert len(counted.statements) == wanted, seen
