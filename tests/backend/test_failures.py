"""Whose fault a failure of the database is."""

from __future__ import annotations

from sqlalchemy.exc import OperationalError

from hms_bridge.backend.failures import translate
from hms_bridge.errors import BackendError, InvalidObjectError


def test_a_text_that_no_column_can_be_asked_for_is_the_callers() -> None:
    """As MariaDB says it of a value and of several; of two columns it is a fault of ours."""

    def kind(code: int, what: str) -> type:
        cause = Exception(code, f"Illegal mix of collations {what}")
        return type(translate(OperationalError("SELECT", {}, cause), "db", is_committing=False))

    assert kind(1267, "(latin1_bin,IMPLICIT) and (utf8mb4_bin,COERCIBLE)") is InvalidObjectError
    assert kind(1271, "for operation ' IN '") is InvalidObjectError
    assert kind(1267, "(latin1_bin,IMPLICIT) and (utf8mb4_bin,IMPLICIT)") is BackendError
