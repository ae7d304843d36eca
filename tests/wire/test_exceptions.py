"""Errors become the exceptions that a method declares, and errors again."""

from typing import Any

import pytest

from hms_bridge import errors
from hms_bridge.wire.exceptions import (
    EXCEPTIONS,
    error_from_exception,
    error_from_text,
    exception_for,
)
from hms_bridge.wire.structs import hive

LEAVES = [
    error
    for base in (errors.MetastoreError, errors.InvalidObjectError)
    for error in base.__subclasses__()
    if error is not errors.MetastoreUnavailableError
]


def test_every_error_of_a_metastore_has_its_exceptions() -> None:
    assert set(EXCEPTIONS) == set(LEAVES)
    for names in EXCEPTIONS.values():
        for name in names:
            assert hasattr(hive, name)


@pytest.mark.parametrize("error", LEAVES)
@pytest.mark.parametrize("declared", [True, False])
def test_errors_come_back_as_they_went(error: Any, declared: bool) -> None:
    allowed = [EXCEPTIONS[error][0]] if declared else ["MetaException"]
    name, message = exception_for(error("what: and where"), allowed)
    assert name is not None
    back = error_from_exception(getattr(hive, name)(message=message))
    assert type(back) is error
    assert str(back) == "what: and where"


@pytest.mark.parametrize("error", LEAVES)
def test_errors_of_methods_that_declare_nothing_come_back_too(error: Any) -> None:
    name, message = exception_for(error("why"), [])
    assert name is None
    assert type(error_from_text(message)) is error


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        # get_table, alter_table, add_partition, get_fields of a missing table, as Hive answers
        (("MetaException", "NoSuchObjectException"), "NoSuchObjectException"),
        (("InvalidOperationException", "MetaException"), "InvalidOperationException"),
        (("InvalidObjectException", "AlreadyExistsException", "MetaException"),
         "InvalidObjectException"),
        (("MetaException", "UnknownTableException", "UnknownDBException"),
         "UnknownTableException"),
        (("MetaException", "InvalidOperationException", "UnknownDBException"),
         "UnknownDBException"),
    ],
)  # fmt: skip
def test_the_best_declared_exception_is_taken(declared: Any, expected: str) -> None:
    assert exception_for(errors.NoSuchObjectError("x"), declared) == (expected, "x")


def test_other_errors_are_named_in_the_message() -> None:
    name, message = exception_for(errors.BackendError("disk full"), ["MetaException"])
    assert (name, message) == ("MetaException", "BackendError: disk full")
    assert type(error_from_text("Internal error processing lock")) is errors.MetaError


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("UnknownTableException", errors.NoSuchObjectError),
        ("InvalidInputException", errors.InvalidInputError),
        ("ConfigValSecurityException", errors.MetaError),
        ("CompactionAbortedException", errors.MetaError),
        ("InvalidPartitionException", errors.InvalidObjectError),
    ],
)
def test_exceptions_without_an_error_of_their_own(name: str, error: Any) -> None:
    assert type(error_from_exception(getattr(hive, name)(message=None))) is error
