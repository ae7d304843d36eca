"""What PostgreSQL itself takes for the statements of our own verbs: a limit of any server that is
to leave in its tables what ours does, however little time it takes itself.

The statements are those that the verbs send, values and messages included; PostgreSQL's own program
(pgbench) sends them again, for one new transaction after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from benchmarks.transactions import commit, open_one
from hms_bridge.backend.pipeline import PipelineAnswer, PipelinedConnection
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import OpenTxnsRequest
from integration.referees.postgresql import Database, PostgreSql

_WARM_UPS = 20
"""After so many pairs of calls a metastore knows what to expect, as it does under load."""

_IDS_BEFORE = 1000
"""So many transactions go before: the id of one is then no other number of its statements."""

_TXN = "txn"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnStatements:
    """A script of pgbench that opens a transaction and commits it, and the values of its
    statements by their names; the id, which it counts, is given by who runs it."""

    script: str
    variables: dict[str, str]

    def rate(self, postgresql: PostgreSql, database: Database, path: Path, seconds: float) -> float:
        """Pairs a second of one client. Raises RefereeError where a statement fails, as each does
        that finds something else than the verb found."""
        path.write_text(self.script)
        (last,) = database.query(
            "select pg_sequence_last_value("
            """pg_get_serial_sequence('"TXNS"', 'TXN_ID')::regclass) as id"""
        )
        variables = {**self.variables, _TXN: str(last["id"])}
        return postgresql.scripts_per_second(
            database, path, clients=1, seconds=seconds, variables=variables
        )


def own_statements(database: Database, warehouse: Path) -> OwnStatements:
    """Of a database that has our schema, asked by a metastore in this process."""
    # Not the main thread, which the verbs that are done together leave alone.
    with ThreadPoolExecutor(1) as threads:
        opens, commits, txn_id = threads.submit(_recorded, database, warehouse).result()
    variables: dict[str, str] = {}
    script = f"\\set {_TXN} :{_TXN} + 1\n"
    for statements in (opens, commits):
        script += "\\startpipeline\n"
        script += "".join(_line(asked, txn_id, variables) for asked in statements)
        script += "\\endpipeline\n"
    return OwnStatements(script=script, variables=variables)


def _recorded(
    database: Database, warehouse: Path
) -> tuple[list[PipelineAnswer], list[PipelineAnswer], TxnId]:
    settings = Settings(warehouse=f"file://{warehouse}")
    with connected(database.sqlalchemy_url, settings) as metastore:
        before = metastore.open_txns(OpenTxnsRequest(user="bench", host="here", count=_IDS_BEFORE))
        metastore.abort_txns(before)
        for _ in range(_WARM_UPS):
            commit(metastore, open_one(metastore))
        with _recording() as opens:
            txn_id = open_one(metastore)
        with _recording() as commits:
            commit(metastore, txn_id)
    return opens, commits, txn_id


@contextmanager
def _recording() -> Iterator[list[PipelineAnswer]]:
    """All that is sent meanwhile, in its order."""
    recorded: list[PipelineAnswer] = []
    send = PipelinedConnection._send

    def remember(connection: PipelinedConnection, held: Sequence[PipelineAnswer]) -> None:
        recorded.extend(held)
        send(connection, held)

    with mock.patch.object(PipelinedConnection, "_send", remember):
        yield recorded


def _line(asked: PipelineAnswer, txn_id: TxnId, variables: dict[str, str]) -> str:
    """Each value as a variable, as it was a parameter: its plan is made as the verb's is."""

    def named(found: re.Match[str]) -> str:
        value = asked.values[int(found[1]) - 1]
        if value is None:
            return "NULL"
        text = bytes(value).decode()
        if text == str(txn_id):
            return f":{_TXN}"
        name = f"v{len(variables)}"
        variables[name] = text
        return f":{name}"

    return " ".join(re.sub(r"\$(\d+)", named, asked.text.sql.decode()).split()) + ";\n"
