"""Writes samples into a file for node_exporter's textfile collector."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hms_bridge.metrics.metric import Sample, openmetrics_text


def write_textfile(path: Path, samples: Sequence[Sample]) -> None:
    """Put the file there as a whole: a reader sees the old one or the new one. Raises OSError.

    What is being written has another ending than ``.prom``, so the collector passes over it; the
    rights are those of any new file, because the collector is another user.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(openmetrics_text(samples))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
