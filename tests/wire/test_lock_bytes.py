"""Locks as bytes are what thrift's own encoder makes of their structs."""

from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.fastbinary import encode_binary

from hms_bridge.model.lock import LockRow, lock_info
from hms_bridge.wire.convert_lock import lock_info_to_struct
from hms_bridge.wire.lock_bytes import locks_to_bytes
from hms_bridge.wire.struct_bytes import struct_pieces
from hms_bridge.wire.structs import hive

IDS = st.integers(-(2**63), 2**63 - 1)
# A few, so that locks share what is encoded once.
TEXTS = st.sampled_from(["", "db", "ö\U0001f600\x00", "t" * 300])
ROWS = st.tuples(
    IDS, IDS, IDS, IDS, st.none() | IDS, st.none() | IDS, st.none() | IDS,
    TEXTS, st.none() | TEXTS, st.none() | TEXTS, st.sampled_from("aw"), st.sampled_from("rwex"),
    TEXTS, TEXTS, st.none() | TEXTS,
)  # fmt: skip


# As many alike as are laid out together, and fewer.
RUNS = st.tuples(ROWS, st.sampled_from([1, 1, 2, 9]))


@given(runs=st.lists(RUNS, max_size=6))
def test_they_are_what_thrift_makes_of_the_structs(runs: list[tuple[LockRow, int]]) -> None:
    rows: list[LockRow] = [
        (row[0] ^ place, *row[1:]) for row, count in runs for place in range(count)
    ]
    locks = [lock_info_to_struct(lock_info(row)) for row in rows]
    plain = hive.ShowLocksResponse(locks=locks)
    expected = encode_binary(plain, [type(plain), plain.thrift_spec])
    assert b"".join(struct_pieces(hive.ShowLocksResponse(locks=locks_to_bytes(rows)))) == expected
