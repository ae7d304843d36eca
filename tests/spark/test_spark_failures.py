"""The line of a Spark error that says something."""

from __future__ import annotations

import pytest

from hms_bridge.spark.failures import first_line

FRAMES = """Traceback (most recent call last):
  File "data_source.py", line 189, in read
    if partition.value:
       ^^^^^^^^^^^^^^^
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[TABLE_NOT_FOUND] no t\n  'Project [*]", "[TABLE_NOT_FOUND] no t"),
        (
            f"From the Python worker:\n{FRAMES}AttributeError: 'P' has none",
            "AttributeError: 'P' has none",
        ),
        (
            f"Lost task: PythonException: {FRAMES}KeyError: 1\n\n\tat org.apache.spark.A(A:1)\n",
            "KeyError: 1",
        ),
        (
            f"Python worker:\n{FRAMES}KeyError: 1\n\nDuring handling"
            f" of the above exception, another occurred:\n\n{FRAMES}ValueError: two\nmore of it",
            "ValueError: two",
        ),
        (f"Python worker:\n{FRAMES}hms_bridge.errors.DmlError: read again", "read again"),
        (f"Python worker:\n{FRAMES}", "Python worker:"),
        ("", "RuntimeError"),
    ],
)
def test_the_line_that_says_something(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line
