"""``make bench``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.compaction import compaction_ratios
from benchmarks.report import machine
from benchmarks.transactions import transaction_ratios
from hms_bridge.spark.session import open_session


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    print("what | ours | theirs | ratio | target | verdict")
    with tempfile.TemporaryDirectory(prefix="hms-bridge-bench-") as folder:
        for ratio in transaction_ratios(Path(folder)):
            print(ratio.line(), flush=True)
        # Spark cannot read a part of an ACID file's columns; without this it tries.
        whole = {"spark.sql.optimizer.nestedSchemaPruning.enabled": "false"}
        spark = open_session("hms-bridge bench", settings=whole)
        for ratio in compaction_ratios(Path(folder), spark):
            print(ratio.line(), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
