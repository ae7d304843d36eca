"""``python -m integration.recorded.odd_calls``: asks a real Hive 4.0.1 and a real Hive 4.2.0, each
newly made on PostgreSQL, calls of which something is missing or wrong, and writes what came of each
into tests/golden/wire/odd-calls.tsv.gz."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hms_bridge.wire.methods import method
from integration.recorded.record import IMPATIENT
from integration.referees.hive_schema import HiveSchemas
from integration.referees.java_metastore import Flavour, JavaMetastore, flavour_42, flavour_401
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace, temporary_workplace
from tests.support.odd_calls import HEADER, make, odd_calls, record
from tests.support.wire_answers import WireClient

FLAVOURS: Mapping[str, Callable[[], Flavour]] = {"4.0.1": flavour_401, "4.2.0": flavour_42}
"""By the heading of their column."""


def outcomes(workplace: Workplace, schemas: HiveSchemas, flavour: Flavour) -> Iterator[str]:
    """What a metastore that is made for it does with each call, in order."""
    database = schemas.database(flavour.version, "odd")
    server = JavaMetastore(workplace, flavour, database=database, settings=IMPATIENT)

    def send(name: str, /, **arguments: Any) -> Any:
        return client.call(name, method(name).arguments(**arguments))

    try:
        with WireClient(server.port) as client:
            make(send)
            for call in odd_calls(f"file:{server.external_warehouse}/odd"):
                yield call.outcome(send)
    finally:
        server.stop()


def main() -> None:
    """Write the file."""
    with temporary_workplace() as workplace:
        schemas = HiveSchemas(PostgreSql(workplace))
        of_401, of_42 = (
            list(outcomes(workplace, schemas, flavour())) for flavour in FLAVOURS.values()
        )
    lines = [HEADER]
    for call, *answers in zip(odd_calls("file:/odd"), of_401, of_42, strict=True):
        lines.append("\t".join((call.method, call.label, *answers)))
    record(lines)


if __name__ == "__main__":
    main()
