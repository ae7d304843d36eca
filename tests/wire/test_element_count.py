"""What a message holds is counted while it arrives, however its bytes are cut."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TProtocolException

from hms_bridge.wire.element_count import ElementCounter
from tests.support.golden_wire import recorded_calls
from tests.support.raw_thrift import STOP, header, string_field

NUMBERS = {2: "!b", 3: "!b", 6: "!h", 8: "!i", 10: "!q", 4: "!d"}

# A value is (type, bytes, elements inside it); written by the rules of the binary protocol.
Value = tuple[int, bytes, int]


def _list_of(kind: int, entry: Value, count: int) -> Value:
    return 15, struct.pack("!bi", entry[0], count) + entry[1] * count, count * (1 + entry[2])


def _struct_of(fields: list[Value]) -> Value:
    body = b"".join(
        struct.pack("!bh", kind, place + 1) + data
        for place, (kind, data, _) in enumerate(fields)
    )  # fmt: skip
    return 12, body + STOP, sum(1 + inside for _, _, inside in fields)


def _map_of(key: Value, value: Value, count: int) -> Value:
    data = struct.pack("!bbi", key[0], value[0], count) + (key[1] + value[1]) * count
    return 13, data, count * (2 + key[2] + value[2])


_LEAVES = st.one_of(
    st.sampled_from([(kind, struct.pack(form, 1), 0) for kind, form in NUMBERS.items()]),
    st.binary(max_size=40).map(lambda text: (11, struct.pack("!i", len(text)) + text, 0)),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(_struct_of),
        st.builds(_list_of, st.just(15), inner, st.integers(0, 5)),
        st.builds(_map_of, inner, inner, st.integers(0, 3)),
    ),
    max_leaves=12,
)


@given(
    fields=st.lists(_VALUES, max_size=4),
    following=st.binary(max_size=9),
    lengths=st.lists(st.integers(1, 7), min_size=1),
)
def test_every_field_and_entry_counts_once(
    fields: list[Value], following: bytes, lengths: list[int]
) -> None:
    _, data, count = _struct_of(fields)
    _feed(ElementCounter(count), data + following, lengths)
    if count:
        with pytest.raises(TProtocolException, match=f"more than {count - 1} elements"):
            _feed(ElementCounter(count - 1), data + following, lengths)


def _feed(counter: ElementCounter, data: bytes, lengths: list[int]) -> None:
    place = turn = 0
    while place < len(data):
        length = lengths[turn % len(lengths)]
        counter.feed(data[place : place + length])
        place, turn = place + length, turn + 1


def test_real_requests_are_followed_to_their_end() -> None:
    """What comes behind it, counts no more: the list would be too much."""
    too_much = _struct_of([_list_of(15, (2, b"\1", 0), 100_000)])[1]
    for call in recorded_calls():
        if call.request:
            start = len(header(call.method))
            _feed(ElementCounter(10_000), call.request[start:] + too_much, [4096])


@pytest.mark.parametrize(
    "data",
    [
        b"\x0f\0\1\x0c\xff\xff\xff\xff",
        b"\x0b\0\1\x80\0\0\0",
        b"\x07\0\1",
        b"\x0f\0\1\x07\0\0\0\1",
    ],
)
def test_what_is_malformed_is_left_to_the_decoder(data: bytes) -> None:
    counter = ElementCounter(2)
    _feed(counter, data + b"\x0f\0\1\2\0\0\1\0" * 1000, [5])


def test_a_small_message_costs_nothing() -> None:
    ElementCounter(0).feed(STOP)
    with pytest.raises(TProtocolException):
        ElementCounter(0).feed(string_field(1, b"x") + STOP)
