"""What a server tells of the calls that it answered."""

from __future__ import annotations

import pytest

from hms_bridge.errors import BackendError, MetastoreUnavailableError, NoSuchObjectError
from hms_bridge.model.call import AnsweredCall, CallOutcome
from hms_bridge.server.serve import MetastoreServer
from tests.support.fake_metastore import FakeMetastore
from tests.support.raw_thrift import STOP, RawClient, call, header
from tests.support.sample_records import DATABASE
from tests.support.simulated_clock import SimulatedClock

CALL = call("get_database", name="db")


def _told(answer: object, *messages: bytes) -> list[AnsweredCall]:
    """Of a server whose metastore takes 40 ms for each answer."""
    clock, told = SimulatedClock(), list[AnsweredCall]()

    def answered(*_: object) -> object:
        clock.advance_ms(40)
        if isinstance(answer, Exception):
            raise answer
        return answer

    fake = FakeMetastore(get_database=answered)
    with (
        MetastoreServer(0, fake, clock=clock, watch=told.append) as server,  # type: ignore[arg-type]
        RawClient(server.port) as client,
    ):
        for message in messages:
            client.send(message)
            client.answer()
            clock.advance_ms(500)  # between two calls the client takes its time
    return told


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (DATABASE, CallOutcome.OK),
        (NoSuchObjectError("no"), CallOutcome.REFUSED),
        (BackendError("the database is gone"), CallOutcome.FAILED),
        (MetastoreUnavailableError("nobody there"), CallOutcome.FAILED),
        (ZeroDivisionError("a bug"), CallOutcome.FAILED),
        ("no database at all", CallOutcome.FAILED),
    ],
)
def test_each_call_has_its_method_and_its_outcome(answer: object, outcome: CallOutcome) -> None:
    told = _told(answer, CALL, CALL)
    assert told == [AnsweredCall("get_database", outcome, 40)] * 2


def test_names_that_clients_make_up_are_no_methods() -> None:
    told = _told(DATABASE, header("drop_everything") + STOP, header("and_more") + STOP)
    assert told == [AnsweredCall(None, CallOutcome.REFUSED, 0)] * 2
