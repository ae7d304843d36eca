"""The program with a policy, which the replica's metastore keeps."""

from __future__ import annotations

from typing import Any

from tests.support.busy_metastore import BusyMetastore
from tests.support.program import Answer

STORE = "sqlite:///dr/metastore.db"


class Replication:
    """The program, with policies kept in the replica's metastore."""

    def __init__(self, busy: BusyMetastore) -> None:
        self.busy = busy
        self.program = busy.program
        self.settings = busy.replica[2:]

    def run(self, *words: str) -> Answer:
        return self.program.run("repl", *words, "--metastore", STORE)

    def ok(self, *words: str) -> Answer:
        return self.program.ok("repl", *words, "--metastore", STORE)

    def add(self, *words: str, name: str = "sales") -> Answer:
        dr = self.program.folder / "dr"
        return self.run(
            "policy", "add", name, *words, "--source", self.program.url,
            "--target-set", f"hive.metastore.warehouse.dir={dr}/warehouse",
            "--target-set", f"hive.repl.cmrootdir={dr}/cmroot",
        )  # fmt: skip

    def history(self, *words: str) -> list[dict[str, Any]]:
        return self.ok("history", *words, "--format", "jsonl").json_lines

    def end_writers(self) -> None:
        """Tables that come whole wait for them."""
        for txn_id in (self.busy.open_txn, self.busy.waiting_txn):
            self.program.ok("txns", "abort", str(txn_id))
