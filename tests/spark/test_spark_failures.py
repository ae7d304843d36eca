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
        (
            "An error occurred while calling o101.collectToPython.\n: org.apache.spark."
            "SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, "
            "most recent failure: Lost task 0.3 in stage 1.0 (TID 4) (10.0.0.2 executor 1): "
            'java.io.IOException: Cannot run program "/x/python": error=2, No such file or '
            "directory\n\tat java.lang.A(A:1)\nCaused by: java.io.IOException: error=2, No such "
            "file or directory\n\t... 3 more\n\nDriver stacktrace:\n\tat A(A:1)",
            "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0"
            " failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 4) (10.0.0.2 "
            'executor 1): java.io.IOException: Cannot run program "/x/python": error=2, No such '
            "file or directory",
        ),
        (
            "An error occurred while calling o1.load.\n: java.lang.RuntimeException: outer\n\tat "
            "A\nCaused by: B: middle\n\tat B\nCaused by: java.net.ConnectException: refused\n",
            "java.lang.RuntimeException: outer: java.net.ConnectException: refused",
        ),
    ],
)
def test_the_line_that_says_something(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line
