"""Our errors and Hive's thrift exceptions: one table, both ways.

A method can only throw what its interface declares. For each of our errors the table has the
exceptions that say the same, best first; Hive itself picks this way, e.g. altering a missing
table is an InvalidOperationException, since alter_table declares no NoSuchObjectException. If a
method declares none of them the message starts with the name of the best one, in a MetaException
or else in a TApplicationException, and our client reads it back from there (docs/hive/metastore.md
§3).
"""

from __future__ import annotations

from collections.abc import Collection

from hms_bridge.errors import (
    AlreadyExistsError,
    HmsBridgeError,
    InvalidInputError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    MetastoreError,
    NoSuchCompactionError,
    NoSuchLockError,
    NoSuchObjectError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnOpenError,
)
from hms_bridge.wire.structs import ThriftError

META_EXCEPTION = "MetaException"

EXCEPTIONS: dict[type[MetastoreError], tuple[str, ...]] = {
    MetaError: (META_EXCEPTION, "ConfigValSecurityException"),
    NoSuchObjectError: (
        "NoSuchObjectException",
        "UnknownTableException",
        "UnknownDBException",
        "InvalidOperationException",
        "InvalidObjectException",
    ),
    AlreadyExistsError: ("AlreadyExistsException", "InvalidOperationException"),
    InvalidObjectError: (
        "InvalidObjectException",
        "InvalidOperationException",
        "InvalidInputException",
    ),
    InvalidInputError: ("InvalidInputException", "InvalidObjectException"),
    InvalidOperationError: ("InvalidOperationException",),
    NoSuchTxnError: ("NoSuchTxnException",),
    TxnAbortedError: ("TxnAbortedException",),
    TxnOpenError: ("TxnOpenException",),
    NoSuchLockError: ("NoSuchLockException",),
    NoSuchCompactionError: ("NoSuchCompactionException",),
}
"""For each error the thrift exceptions that say the same, best first."""

_ERRORS: dict[str, type[MetastoreError]] = {
    "UnknownTableException": NoSuchObjectError,
    "UnknownDBException": NoSuchObjectError,
    "UnknownPartitionException": NoSuchObjectError,
    "InvalidPartitionException": InvalidObjectError,
    "ConfigValSecurityException": MetaError,
    "CompactionAbortedException": MetaError,
    **{names[0]: error for error, names in EXCEPTIONS.items()},
}


def exception_for(error: HmsBridgeError, declared: Collection[str]) -> tuple[str | None, str]:
    """Which of a method's declared exceptions says it (None: none does), and the message."""
    names = EXCEPTIONS.get(type(error), ()) if isinstance(error, MetastoreError) else ()
    for name in names:
        if name in declared:
            return name, str(error)
    best = names[0] if names else type(error).__name__
    message = f"{best}: {error}"
    return (META_EXCEPTION if META_EXCEPTION in declared else None), message


def error_from_exception(exception: ThriftError) -> MetastoreError:
    """Our error for a thrift exception that a metastore threw."""
    name, message = type(exception).__name__, exception.message or ""
    if name == META_EXCEPTION:
        return error_from_text(message)
    return _ERRORS.get(name, MetaError)(message)


def error_from_text(message: str) -> MetastoreError:
    """Our error for a message that may start with the name of a thrift exception."""
    name, separator, rest = message.partition(": ")
    if separator and name in _ERRORS:
        return _ERRORS[name](rest)
    return MetaError(message)
