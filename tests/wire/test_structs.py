"""Structs are derived from the published bindings, and say what was set."""

from typing import Any

import hive_metastore.ttypes as published
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.lock import DataOperation, LockState, LockType
from hms_bridge.model.txn import TxnType
from hms_bridge.wire.additions import FIELDS, STRUCTS
from hms_bridge.wire.structs import Struct, ThriftError, hive
from tests.support.rules import holds_for

PUBLISHED = sorted(
    name
    for name, value in vars(published).items()
    if isinstance(value, type) and hasattr(value, "thrift_spec")
)


def _encoded(struct: Any, protocol: Any = TBinaryProtocolAccelerated) -> bytes:
    buffer = TMemoryBuffer()
    struct.write(protocol(buffer))
    return buffer.getvalue()


def _decoded(cls: Any, data: bytes, protocol: Any = TBinaryProtocolAccelerated) -> Any:
    struct = cls()
    struct.read(protocol(TMemoryBuffer(data)))
    return struct


@holds_for(PUBLISHED)
def test_every_published_struct_has_a_class_of_ours(name: str) -> None:
    ours, theirs = getattr(hive, name), getattr(published, name)
    added = {field.name for field in FIELDS.get(name, ())}
    assert ours is not theirs
    assert {e[2] for e in ours.thrift_spec if e} == {e[2] for e in theirs.thrift_spec if e} | added


def test_the_published_package_stays_as_it_is() -> None:
    getattr(hive, "LockRequest")  # noqa: B009
    component = published.LockComponent(type=1, level=1, dbname="d")
    assert component.isTransactional is False
    spec = published.LockRequest.thrift_spec
    assert spec[1][3][1][0] is published.LockComponent
    assert not hasattr(published.LockRequest(), "locklessReadsEnabled")
    decoded = _decoded(published.LockComponent, _encoded(component))
    assert decoded == component


def test_unset_can_be_told_from_default() -> None:
    # What a Java client sends that sets nothing but the required fields.
    data = _encoded(hive.LockComponent(type=1, level=1, dbname="d"))
    seen = _decoded(hive.LockComponent, data)
    assert (seen.isTransactional, seen.operationType) == (None, None)
    told = _decoded(hive.LockComponent, _encoded(hive.LockComponent(isTransactional=False)))
    assert told.isTransactional is False
    commit = _decoded(hive.CommitTxnRequest, _encoded(hive.CommitTxnRequest(txnid=1)))
    assert commit.exclWriteEnabled is None


def test_added_fields_travel() -> None:
    request = hive.CompactionRequest(
        dbname="d", tablename="t", type=3, poolName="p", numberOfBuckets=4, orderByClause="id"
    )
    assert _decoded(hive.CompactionRequest, _encoded(request)) == request


def test_fields_of_other_generations_are_skipped() -> None:
    request = hive.CompactionRequest(dbname="d", tablename="t", type=3, poolName="p")
    old = _decoded(published.CompactionRequest, _encoded(request))
    assert (old.dbname, old.type) == ("d", 3)


def test_structs_within_structs_keep_their_classes() -> None:
    response = hive.AbortCompactResponse(
        abortedcompacts={7: hive.AbortCompactionResponseElement(compactionId=7, status="s")}
    )
    seen = _decoded(hive.AbortCompactResponse, _encoded(response))
    assert seen == response
    assert type(seen.abortedcompacts[7]) is hive.AbortCompactionResponseElement


@pytest.mark.parametrize("protocol", [TBinaryProtocol, TBinaryProtocolAccelerated])
def test_lists_may_be_keys_of_maps(protocol: Any) -> None:
    skew = hive.SkewedInfo(skewedColValueLocationMaps={("a", "b"): "there"})
    assert _decoded(hive.SkewedInfo, _encoded(skew, protocol), protocol) == skew


def test_a_struct_can_hold_itself() -> None:
    expression = hive.SourceTable.thrift_spec[1][3][0]
    assert expression is hive.Table


def test_exceptions_can_be_raised_and_sent() -> None:
    error: Any = hive.NoSuchObjectException(message="gone")
    assert isinstance(error, ThriftError)
    with pytest.raises(ThriftError, match="gone"):
        raise error
    assert _decoded(hive.NoSuchObjectException, _encoded(error)).message == "gone"
    assert hive.NoSuchCompactionException(message="x").message == "x"


def test_structs_show_and_compare_what_is_set() -> None:
    assert repr(hive.FieldSchema(name="a", comment=None)) == "FieldSchema(name='a')"
    assert hive.FieldSchema(name="a") == hive.FieldSchema(name="a", comment=None)
    assert hive.FieldSchema(name="a") != hive.FieldSchema(name="b")
    assert hive.FieldSchema(name="a") != hive.Order(col="a")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="NoSuchStruct"):
        getattr(hive, "NoSuchStruct")  # noqa: B009
    with pytest.raises(AttributeError, match="no field"):
        getattr(hive.Order(), "nothing")  # noqa: B009


@holds_for(sorted(STRUCTS))
def test_added_structs_round_trip_empty(name: str) -> None:
    cls = getattr(hive, name)
    assert issubclass(cls, Struct)
    assert _decoded(cls, _encoded(cls())) == cls()


def _numbers(enum: Any) -> set[int]:
    return {value for key, value in vars(enum).items() if key.isupper() and isinstance(value, int)}


def test_records_know_every_enum_value_of_the_interface() -> None:
    assert _numbers(published.TxnType) <= {int(one) for one in TxnType}
    assert _numbers(published.CompactionType) <= {one.number for one in CompactionType}
    assert _numbers(published.LockType) == {one.number for one in LockType}
    assert _numbers(published.LockState) == {one.number for one in LockState}
    assert _numbers(published.DataOperationType) <= {one.number for one in DataOperation}
