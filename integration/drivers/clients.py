"""The outside clients of the other interpreter: Trino's and pymetastore, one JSON object a line in
and out.

Started with that interpreter as `python clients.py`, so nothing of the project is imported here.
Requests: {"client": "trino", "port": …, "sql": …} and {"client": "pymetastore", "port": …,
"method": …, "arguments": […]}.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import sys


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": CLIENTS[request.pop("client")](**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}{_stack(error)}"}
        replies.write(json.dumps(answer, default=_plain) + "\n")


def ask_trino(port: int, sql: str) -> list[list[object]]:
    from trino.dbapi import connect

    connection = connect(host="127.0.0.1", port=port, user="referee", catalog="hive")
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        return [list(row) for row in cursor.fetchall()]
    finally:
        connection.close()


def ask_pymetastore(port: int, method: str, arguments: list[object]) -> object:
    from pymetastore.metastore import HMS

    with HMS.create(host="127.0.0.1", port=port) as metastore:
        return getattr(metastore, method)(*arguments)


def _stack(error: Exception) -> str:
    """Where a Trino server failed, if it says so."""
    info = getattr(error, "failure_info", None) or {}
    return "".join(f"\n  {frame}" for frame in info.get("stack", [])[:12])


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.name
    return getattr(value, "__dict__", None) or str(value)


CLIENTS = {"trino": ask_trino, "pymetastore": ask_pymetastore}

if __name__ == "__main__":
    main()
