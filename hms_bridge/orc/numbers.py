"""Whole numbers for Arrow's functions, without pandas.

``pa.scalar``, and each function that is given a number of Python's, imports pandas where that is
installed. That takes longer than a small compaction.
"""

from __future__ import annotations

import pyarrow as pa


def whole_number(value: int, kind: pa.DataType) -> pa.Scalar:
    """One number. Raises pa.ArrowInvalid if the type cannot hold it."""
    return pa.arange(value, value + 1).cast(kind)[0]


def repeated(value: int, kind: pa.DataType, count: int) -> pa.Array:
    """The same number ``count`` times. Raises as above."""
    return pa.repeat(whole_number(value, kind), count)
