"""What a mutation is: code of a function, and what stands there instead."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


class StaleMutationError(Exception):
    """The code that a mutation breaks is not there, or not once."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Code of a file and what stands there instead: an expression, or statements. `within`: the
    function or class, ``Class.method``; empty for the file. However it is laid out, the code is
    there once; nothing may take its place. The body ``...`` stands for any: ``if is_late: ...``
    becomes ``if False: ...``.
    """

    file: str
    within: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """A file's text with the code broken. Raises StaleMutationError."""
        tree = ast.parse(text)
        search = _Search(*_nodes(self.old, self.new))
        for name, node in _rooms(tree, ""):
            if name == self.within:
                search.replace_in(node)
        if search.count != 1:
            raise StaleMutationError(
                f"{self.old!r} is {search.count} times in {self.within or 'the file'} of "
                f"{self.file}; look at the code again, and write the mutation anew"
            )
        return ast.unparse(tree)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    """`test`: the test that must fail; None where only whole clusters can show it.
    `is_simulated`: the simulated cluster must find it, too; `is_handover`: in schedules in which
    sides change places; `is_scope`: in those in which the scope of tables changes; both: in those
    in which both do. `also`: code that holds the same promise, broken at the same time."""

    name: str
    file: str
    within: str
    old: str
    new: str
    test: str | None = None
    is_simulated: bool = False
    is_handover: bool = False
    is_scope: bool = False
    also: tuple[Edit, ...] = ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that is broken."""
        return (Edit(self.file, self.within, self.old, self.new), *self.also)


def _nodes(old: str, new: str) -> tuple[list[ast.AST], list[ast.AST]]:
    """Two expressions, or the statements of both."""
    wanted, given = ast.parse(old).body, ast.parse(new).body
    match wanted, given:
        case [ast.Expr(value=expression)], [ast.Expr(value=other)]:
            return [expression], [other]
    return [*wanted], [*given]


def _rooms(node: ast.AST, above: str) -> Iterator[tuple[str, ast.AST]]:
    """A file, its classes and functions, by their names."""
    yield above, node
    pending = list(ast.iter_child_nodes(node))
    while pending:
        child = pending.pop()
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _rooms(child, f"{above}.{child.name}".lstrip("."))
        else:
            pending.extend(ast.iter_child_nodes(child))


class _Search:
    """Counts what it replaces."""

    def __init__(self, old: Sequence[ast.AST], new: Sequence[ast.AST]) -> None:
        self.count = 0
        self._old, self._new = old, new

    def replace_in(self, above: ast.AST) -> None:
        """Of all that a node holds."""
        for field, value in ast.iter_fields(above):
            if isinstance(value, list):
                value[:] = self._replaced(value) or ([ast.Pass()] if field == "body" else [])
            else:
                setattr(above, field, self._replaced([value])[0])

    def _replaced(self, nodes: list[Any]) -> list[Any]:
        replaced, place = [], 0
        while place < len(nodes):
            part = nodes[place : place + len(self._old)]
            if len(part) == len(self._old) and all(map(_is_same, self._old, part)):
                self.count += 1
                replaced += [
                    _with_body_of(part[0], node) if _has_any_body(node) else node
                    for node in self._new
                ]
                place += len(part)
                continue
            if isinstance(nodes[place], ast.AST):
                self.replace_in(nodes[place])
            replaced.append(nodes[place])
            place += 1
        return replaced


def _is_same(wanted: Any, node: Any) -> bool:
    if type(wanted) is not type(node):
        return False
    if _has_any_body(wanted):
        node = _with_body_of(wanted, node)
    return ast.dump(wanted) == ast.dump(node)


def _has_any_body(node: Any) -> bool:
    match getattr(node, "body", None):
        case [ast.Expr(value=ast.Constant(value=value))]:
            return value is ...
    return False


def _with_body_of(whose: Any, node: Any) -> Any:
    """A copy of a statement whose body, and what follows it, are those of another one."""
    changed = copy.copy(node)
    changed.body = whose.body
    if hasattr(node, "orelse"):
        changed.orelse = getattr(whose, "orelse", [])
    return changed
