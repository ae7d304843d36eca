import csv
import re

import pytest

from hms_bridge.model.lock import DataOperation, LockComponent, LockType
from hms_bridge.model.target import Scope
from hms_bridge.txn.lock_rules import BLOCKERS, LockTarget, blocks
from tests.support.golden import golden_roots
from tests.support.txns import Txns, component

PLACES = {
    "db": (None, None),
    "table": ("p1", None),
    "part": ("p1", "ds=a/hr=1"),
    "other": ("p1", "ds=b/hr=1"),
}


def _golden_rows() -> list[dict[str, str]]:
    name = "lock-matrix-4.0.1.tsv"
    root = next(root for root in golden_roots("wire") if (root / name).exists())
    with (root / name).open() as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


ROWS = _golden_rows()
SCOPES = sorted({row["scope"] for row in ROWS})


def _component(place: str, kind: str) -> LockComponent:
    table, partition = PLACES[place]
    return component(
        LockType[kind], DataOperation.NO_TXN, database="lmx", table=table, partition=partition
    )


def _masked(text: str) -> str:
    return re.sub(r"(lockid|txnid):\d+", r"\1:N", text)


def test_the_golden_matrix_is_whole() -> None:
    assert len(ROWS) == len(SCOPES) * 16 == 128


@pytest.mark.golden
@pytest.mark.parametrize("scope", SCOPES)
def test_second_lock_as_in_hive(txns: Txns, scope: str) -> None:
    held_place, requested_place = scope.split("/")
    for row in (row for row in ROWS if row["scope"] == scope):
        for is_zero_wait in (False, True):
            first, second = txns.open(2)
            assert txns.lock(first, _component(held_place, row["held"])).state.name == "ACQUIRED"
            answer = txns.lock(
                second,
                _component(requested_place, row["requested"]),
                is_zero_wait_read=is_zero_wait,
            )
            seen = answer.state.name
            if answer.error_message:
                seen += f":{answer.error_message}"
            expected = row["zeroWaitRead" if is_zero_wait else "state"]
            assert _masked(seen) == _masked(expected), row
            txns.abort_many([first, second])


@pytest.mark.golden
def test_pure_rules_as_in_hive() -> None:
    for row in ROWS:
        held_place, requested_place = row["scope"].split("/")
        held = LockTarget(LockType[row["held"]], Scope("lmx", *PLACES[held_place]))
        requested = LockTarget(LockType[row["requested"]], Scope("lmx", *PLACES[requested_place]))
        assert blocks(held, requested) is (row["state"] == "WAITING"), row


def test_other_databases_and_tables_never_block() -> None:
    strong = LockType.EXCLUSIVE
    assert not blocks(LockTarget(strong, Scope("a")), LockTarget(strong, Scope("b")))
    assert not blocks(LockTarget(strong, Scope("a", "x")), LockTarget(strong, Scope("a", "y")))
    assert blocks(LockTarget(strong, Scope("a")), LockTarget(strong, Scope("a", "y", "p=1")))


def test_who_blocks_a_type_is_symmetric() -> None:
    # The only asymmetries are about whole databases.
    for requested, held in ((one, other) for one in LockType for other in LockType):
        assert (held in BLOCKERS[requested]) is (requested in BLOCKERS[held])
