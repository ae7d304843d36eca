"""What a call's ``expr`` field says: nothing, an expression in Kryo's form, or a filter's text."""

from __future__ import annotations

from hms_bridge.model.expression import Condition, FilterText, Unread
from hms_bridge.wire.expression import read_expression
from hms_bridge.wire.kryo_input import UnreadableError

_ALL = (None, b"", b"\xff")
"""How clients say "all"; the last is HiveServer2's way."""


def read_condition(data: bytes | None) -> Condition:
    """The condition in an ``expr`` field; never raises for what it holds."""
    if data in _ALL:
        return None
    try:
        return read_expression(data or b"")
    except UnreadableError as error:
        reason = str(error)
    try:
        text = (data or b"").decode()
    except UnicodeDecodeError:
        return Unread(reason)
    # MSCK sends the text of a filter (PartitionExpressionForMetastore.convertExprToFilter).
    return FilterText(text) if text.isprintable() else Unread(reason)
