"""What tasks need in an executor's Python (tests/spark/test_tasks.py measures it)."""

from __future__ import annotations

from collections.abc import Mapping

PACKAGES = ("hms_bridge", "changemanager", "cleaner")
"""Our own: of the driver's very version."""

MODULES: Mapping[str, str] = {
    "pyarrow": "pyarrow",
    "numpy": "numpy",
    "fsspec": "fsspec",
    "crc32c": "crc32c",
    "google.protobuf": "protobuf",
    "requests": "requests",
}
"""What tasks import, and the distributions that have it."""

OPTIONAL_DISTRIBUTIONS = ("s3fs", "hdfs-native", "zstandard")
"""Drivers of file systems, and what else tasks use where it is there."""
