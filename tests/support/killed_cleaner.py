"""A cleaner's pass in a process of its own, which is killed (SIGKILL) at one of its steps.

    python -m tests.support.killed_cleaner DATABASE_URL FOLDER STEP

STEP is a number (which change of manifest or file system), or a label such as
`after advance_intents`. The process prints `survived` if it came to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from cleaner.daemon import make_cleaner
from hms_bridge.config.settings import ArchiveSettings, CompactorSettings, Settings
from hms_bridge.connect import open_local
from tests.support.faults import CrashError, FaultPlan, FaultyManifest, faulty


class KillingPlan(FaultPlan):
    """Dies for good."""

    def point(self, label: str) -> None:
        try:
            super().point(label)
        except CrashError:
            os.kill(os.getpid(), signal.SIGKILL)


def settings_of(folder: Path) -> Settings:
    return Settings(
        warehouse=str(folder / "warehouse"),
        archive=ArchiveSettings(root=str(folder / "cmroot")),
        compactor=CompactorSettings(aborted_txn_threshold=0, abort_retention_ms=0),
    )


def main(url: str, folder: Path, step: str) -> None:
    faults = KillingPlan()
    if step.isdecimal():
        faults.crash_at = int(step)
    else:
        faults.crash_label = step
    store = open_local(url, settings_of(folder))
    dying = replace(
        store,
        resolver=faulty(store.resolver, faults),
        manifest=FaultyManifest(store.manifest, faults),
    )
    make_cleaner(dying).run_once()
    sys.stdout.write("survived\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
