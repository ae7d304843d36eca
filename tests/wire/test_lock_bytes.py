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


# Some alike, and some but for their agents.
RUNS = st.tuples(ROWS, st.lists(st.none() | TEXTS, min_size=1, max_size=3))


@given(runs=st.lists(RUNS, max_size=6))
def test_they_are_what_thrift_makes_of_the_structs(
    runs: list[tuple[LockRow, list[str | None]]],
) -> None:
    rows: list[LockRow] = [
        (row[0] ^ place, *row[1:14], agent)
        for row, agents in runs
        for place, agent in enumerate(agents)
    ]
    locks = [lock_info_to_struct(lock_info(row)) for row in rows]
    plain = hive.ShowLocksResponse(locks=locks)
    expected = encode_binary(plain, [type(plain), plain.thrift_spec])
    assert b"".join(struct_pieces(hive.ShowLocksResponse(locks=locks_to_bytes(rows)))) == expected
