"""Protective lines, each broken once: what `make mutants` proves that a test would see.

They are rows of `mutation_rows/*.tsv`, a file a room: the mutation's name; file and function (or
class) of the code, the code, and what stands there instead (`mutation.Edit`; ⏎ begins a new line);
the test that must fail; the simulated clusters that must find it, too (`simulated`, `handover`,
`scope`). A row without a name is more code that the mutation above it breaks.

Not for the simulated cluster, because another line holds the same promise there: the gate covers
for what the cleaner makes of old readers and of compactions under them (and the reverse, so both
are broken at once, too), CQ_NEXT_TXN_ID for the look at the compaction's transaction, the name of
its transaction for a worker that publishes too late and for a base beyond an open write, the look
at the archive before a deletion for the archiving itself (and the reverse), the abort record for
aborted files that go too early, repl.last.id and the dump's own marks for a load that lost its
lease or comes again. And no writer of the simulated cluster mixes aborted rows with others in one
directory, as streams do, and no two workers there compact one range, as those of Hive may.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.simulation.mutation import Edit, Mutation

_ROOMS = Path(__file__).with_name("mutation_rows")


def _of_room(room: Path) -> Iterator[Mutation]:
    mutation: Mutation | None = None
    with room.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE, restval=""):
            fields = {column: field.replace("⏎", "\n") for column, field in row.items()}
            name, test, clusters = (fields.pop(column) for column in ("name", "test", "clusters"))
            if not name:
                assert mutation, f"{room}: the first row needs a name"
                mutation = replace(mutation, also=(*mutation.also, Edit(**fields)))
                continue
            if mutation:
                yield mutation
            is_found = {f"is_{cluster}": True for cluster in clusters.split()}
            mutation = Mutation(name=name, test=test or None, **fields, **is_found)
    if mutation:
        yield mutation


MUTATIONS = tuple(mutation for room in sorted(_ROOMS.glob("*.tsv")) for mutation in _of_room(room))
