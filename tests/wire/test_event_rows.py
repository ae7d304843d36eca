"""Events as rows are what thrift's own encoder makes of their structs."""

from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.fastbinary import encode_binary

from hms_bridge.model.event import EventRow, event_of
from hms_bridge.wire.convert_event import event_rows_to_structs, event_to_struct
from hms_bridge.wire.struct_bytes import struct_pieces
from hms_bridge.wire.structs import hive

IDS = st.integers(-(2**63), 2**63 - 1)
SECONDS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.sampled_from(["", "db", "ö\U0001f600\x00", "t" * 300])
ROWS = st.tuples(
    IDS, SECONDS, TEXTS, st.none() | TEXTS, st.none() | TEXTS, st.none() | TEXTS, TEXTS, TEXTS
)


@given(rows=st.lists(ROWS, max_size=6))
def test_they_are_what_thrift_makes_of_the_structs(rows: list[EventRow]) -> None:
    plain = hive.NotificationEventResponse(events=[event_to_struct(event_of(row)) for row in rows])
    expected = encode_binary(plain, [type(plain), plain.thrift_spec])
    sent = hive.NotificationEventResponse(events=event_rows_to_structs(rows))
    assert b"".join(struct_pieces(sent)) == expected
