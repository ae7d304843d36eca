"""``make bench``: what is slow or quick, beside a real Hive 4.2 where it does the same.

With ``--ours`` without a Hive.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.compaction import compaction_ratios
from benchmarks.own import own_ratios
from benchmarks.report import HEADING, machine
from benchmarks.tables_beside import beside_ratios
from benchmarks.transactions import transaction_ratios
from hms_bridge.spark.session import open_session
from integration.referees.processes import FAST_JAVA, Workplace


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    print(HEADING)
    with tempfile.TemporaryDirectory(prefix="hms-bridge-bench-") as folder:
        for ratio in transaction_ratios(Path(folder)):
            print(ratio.line(), flush=True)
        # Spark cannot read a part of an ACID file's columns; without this it tries.
        whole = {"spark.sql.optimizer.nestedSchemaPruning.enabled": "false"}
        spark = open_session("hms-bridge bench", settings=whole)
        for ratio in compaction_ratios(Path(folder), spark):
            print(ratio.line(), flush=True)
        has_hive = "--ours" not in sys.argv[1:]
        for line in own_ratios(Path(folder), spark, has_hive=has_hive):
            print(line.line(), flush=True)
        if has_hive:
            _print_beside(Path(folder), spark)
        spark.stop()


def _print_beside(folder: Path, spark: Any) -> None:
    workplace = Workplace(folder / "logs", java=FAST_JAVA)
    try:
        for ratio in beside_ratios(workplace, spark):
            print(ratio.line(), flush=True)
    finally:
        workplace.close()


if __name__ == "__main__":
    main()
