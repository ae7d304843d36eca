"""Transactions of our own are opened, kept alive and ended in one room."""

import ast

from tests.architecture.sources import PRODUCT, ROOT, parsed

VERBS = {"open_txns", "commit_txn", "abort_txn", "heartbeat", "heartbeat_txn_range"}
# The port itself, and the load, whose transactions are the source's and end when those do.
OTHERS = ("client", "server", "service", "txn", "repl/load")


def test_only_sessions_open_and_end_transactions() -> None:
    found = set()
    for path in PRODUCT:
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(tuple(f"hms_bridge/{room}/" for room in OTHERS)):
            continue
        for node in ast.walk(parsed(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and node.func.attr in VERBS:
                found.add(name)
    assert found == {"hms_bridge/session/heartbeat.py", "hms_bridge/session/transaction.py"}
