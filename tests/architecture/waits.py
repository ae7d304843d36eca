"""Waits of the product: each has a limit of its own, or a row in `waits.tsv` says how it ends.

What is found, by names, whosever they are: locks, conditions, events and semaphores; threads,
processes and results of threads; queues; sockets, HTTP and pollers; subprocesses; statements that
libpq waits for by itself. Not found: whatever a library waits for inside of a call that is named
otherwise. Those that reach another host are opened in one place each, which sets their limits
(databases `backend/engine.py`, metastores `client/caller.py`, HDFS and S3 `filesystem/`).
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.sources import parsed

TABLE = Path(__file__).with_name("waits.tsv")
LIMITED_FROM = {
    "acquire": 2, "wait": 1, "join": 1, "get": 1, "result": 1, "exception": 1, "communicate": 2,
    "poll": 1, "select": 1, "create_connection": 2, "as_completed": 2, "urlopen": 3,
}  # fmt: skip
"""Calls whose limit is an argument of their own: with so many of them there is one."""
NEVER_LIMITED = {
    "accept", "check_call", "check_output", "connect", "exec_", "exec_params", "exec_prepared",
    "flock", "get_result", "getresponse", "lockf", "Popen", "prepare", "recv", "recv_bytes",
    "recv_into", "recvfrom", "request", "sendall", "serve_forever", "shutdown",
    "ThreadPoolExecutor", "waitpid",
}  # fmt: skip
"""Those that have none, unless it is named; a socket's is set beside them."""
OF_SUBPROCESS = {"run", "call"}
DOES_NOT_WAIT = {
    "_AROUND.get()", "TaskContext.get()", "captured.get()",  # values of a context
    "described.result()", "result()",  # structs of thrift
    "state.outcome.exception()",  # of what has ended
    "process.poll()", "kept.ready.poll()",  # whether anything is there now
    "select.poll()",  # makes a poller
    "self.prepare()", "archive.prepare()", "_Acquisition(metastore, clock, request).acquire()",
}  # fmt: skip
_LOCKS = {"Lock", "RLock", "Condition"}
_TURNS = {"Semaphore", "BoundedSemaphore"}


@dataclass(frozen=True, slots=True)
class Wait:
    """``within``: function or method, with its class."""

    file: str
    within: str
    text: str
    line: int

    @property
    def place(self) -> tuple[str, str, str]:
        """Whatever line it is on."""
        return self.file, self.within, self.text


def waits_without_limit(file: str, text: str) -> Iterator[Wait]:
    """Those that need a row. A lock that is held while nothing is waited for needs none."""
    tree = parsed(text)
    made = _made(tree)
    for within, node in _nodes(tree):
        if isinstance(node, ast.Call) and _is_endless(node):
            yield Wait(file, within, ast.unparse(node), node.lineno)
        for item in node.items if isinstance(node, ast.With) else ():
            name = ast.unparse(item.context_expr)
            kind = made.get(name)
            if kind in _TURNS or (kind in _LOCKS and any(map(_waits, _calls(node.body)))):
                yield Wait(file, within, f"with {name}", node.lineno)


def rows() -> Mapping[tuple[str, str, str], tuple[str, str]]:
    """By place: for whom it waits, and when that ends."""
    with TABLE.open(encoding="utf-8", newline="") as text:
        return {
            (row["file"], row["within"], row["wait"]): (row["waits for"], row["ends when"])
            for row in csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
        }


def _is_endless(call: ast.Call) -> bool:
    name, text = _name(call), ast.unparse(call)
    given = {keyword.arg for keyword in call.keywords}
    if text in DOES_NOT_WAIT or "timeout" in given or "MSG_DONTWAIT" in text:
        return False
    if "blocking=False" in text or "wait=False" in text or "SHUT_" in text:
        return False
    if name in LIMITED_FROM:
        return len(call.args) < LIMITED_FROM[name] and isinstance(call.func, ast.Attribute)
    if name in OF_SUBPROCESS:
        return text.startswith("subprocess.")
    return name in NEVER_LIMITED


def _waits(call: ast.Call) -> bool:
    """Also with a limit: whoever else wants the lock waits as long. Not a condition's own wait,
    which lets go of the lock."""
    return _name(call) in {*NEVER_LIMITED, "acquire", "sleep", "result"} and _is_endless(call)


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _made(tree: ast.Module) -> dict[str, str]:
    """Which names of a file are locks, and of which kind."""
    return {
        ast.unparse(target): _name(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
    }


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        yield from (node for node in ast.walk(statement) if isinstance(node, ast.Call))


def _nodes(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        within, node = todo.pop()
        yield within, node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            within = f"{within}.{node.name}".lstrip(".")
        todo += [(within, child) for child in ast.iter_child_nodes(node)]
