"""The recipe of docs/howto/replicate.md that begins anew, typed as it stands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.busy_metastore import BusyMetastore
from tests.support.documents import blocks
from tests.support.golden import CHECKOUT
from tests.support.program import process_environment
from tests.support.served_metastore import served_metastore

PAGE = CHECKOUT / "docs" / "howto" / "replicate.md"


@pytest.mark.process
def test_the_recipe_begins_a_replica_anew(busy: BusyMetastore, typed_program: Path) -> None:
    (recipe,) = [block for block in blocks(PAGE) if block.info == "sh recover"]
    # A bootstrap would wait for them.
    busy.program.ok("txns", "abort", str(busy.open_txn), str(busy.waiting_txn))
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("repl", "dump", "sales")
    unwanted = busy.program.ok("cm", "pins", "--format", "json").json
    environment = process_environment(
        {
            **busy.program.environment,
            "PATH": f"{typed_program}:{os.environ['PATH']}",
            "SOURCE": busy.program.url,
            "DUMPS": str(busy.program.dumps),
        }
    )
    environment.pop("HMS_BRIDGE_METASTORE", None)
    with served_metastore(busy.program.folder / "dr") as replica:
        done = subprocess.run(
            ["sh", "-e", "-c", recipe.text], cwd=busy.program.folder,
            env=environment | {"REPLICA": replica.uri},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stderr.count("nothing was changed") == 1
    status = busy.program.ok("repl", "status", "sales", *busy.replica, "--format", "json").json
    assert status["newest_dump_state"] == "loaded"
    assert status["missing_files"] == 0
    holders = {pin["holder"] for pin in busy.program.ok("cm", "pins", "--format", "json").json}
    assert holders != {pin["holder"] for pin in unwanted}


def test_a_partitioned_table_says_what_partitions_it_has(busy: BusyMetastore) -> None:
    answer = busy.program.run("compact", "sales.events", "major")
    assert answer.exit_code == 1
    assert "--partition a=" in answer.err
    assert "a=x/b=1" in answer.err
