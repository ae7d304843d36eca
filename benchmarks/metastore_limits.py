"""What no server can pass that is asked by the program of :mod:`benchmarks.metastore`: what the
database takes for as many commits, or for the statements of our verbs, and what the program and the
protocol take.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import metastore_program as program
from benchmarks.own_statements import OwnStatements
from benchmarks.report import Limit
from integration.referees.postgresql import Database, PostgreSql


class Limits:
    """Each is the median of so many ``turns`` of so many ``seconds`` as all else. ``port``: of our
    server, whose verbs' ``statements`` are of the ``database``."""

    def __init__(
        self,
        postgresql: PostgreSql,
        database: Database,
        statements: OwnStatements,
        *,
        port: int,
        folder: Path,
        turns: int,
        seconds: float,
    ) -> None:
        self._postgresql = postgresql
        self._database = database
        self._statements = statements
        self._port = port
        self._folder = folder
        self._turns = turns
        self._seconds = seconds
        self._bare = postgresql.database("bare")
        self._bare.execute("create table bare (id bigint primary key generated always as identity)")
        self._script = folder / "pair.sql"
        self._script.write_text("insert into bare default values;\n" * 2)
        self._bare_rates: dict[int, float] = {}

    def of_open_and_commit(self, clients: int, ours: float) -> Iterator[Limit]:
        """Beside our rate of it, by so many clients."""
        by = f"{clients} client{'s' * (clients > 1)}"

        def limit(what: str, rate: float) -> Limit:
            return Limit(
                what=f"{what}, {by}",
                ours=f"{ours:.0f}/s",
                bare=f"{rate:.0f}/s",
                reached=ours / rate,
            )

        empty = self._median(
            lambda: program.rate(self._port, "two empty calls", clients, self._seconds)[0]
        )
        yield limit("two bare inserts and commits", self.bare_pairs(clients))
        yield limit("two calls of which our server does nothing", empty)
        if clients == 1:
            script = self._folder / "own.sql"
            sent = self._median(
                lambda: self._statements.rate(
                    self._postgresql, self._database, script, self._seconds
                )
            )
            yield limit("the statements of both verbs, sent by pgbench", sent)
            yield limit("these, and then two such calls", 1 / (1 / sent + 1 / empty))

    def bare_pairs(self, clients: int) -> float:
        """Pairs of inserts and commits of a row each a second, by clients that do nothing else;
        measured once."""
        if clients not in self._bare_rates:
            self._bare_rates[clients] = self._median(
                lambda: self._postgresql.scripts_per_second(
                    self._bare, self._script, clients=clients, seconds=self._seconds
                )
            )
        return self._bare_rates[clients]

    def of_locks(self, count: int, clients: int, ours: float) -> Limit:
        """Beside the seconds that ours took for so many."""
        bare = count / (2 * self.bare_pairs(clients))
        return Limit(
            what=f"{count} bare inserts and commits, {clients} clients",
            ours=f"{ours:.1f} s",
            bare=f"{bare:.1f} s",
            reached=bare / ours,
        )

    def _median(self, rate: Callable[[], float]) -> float:
        return statistics.median(rate() for _ in range(self._turns))
