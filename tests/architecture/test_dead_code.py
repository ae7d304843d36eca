"""What nothing in the product names is dead: tests alone keep nothing alive."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from tests.architecture.sources import PRODUCT, ROOT, parsed

SOURCES = {str(path.relative_to(ROOT)): path.read_text() for path in PRODUCT}
ALIVE = {
    "TABLE_MODULES": "imports the modules that declare the tables",
    "cleaner_of": "an entry point (pyproject.toml)",
    "configure": "programs on Spark call it (docs/spark.md)",
    "attach": "programs on Spark call it (docs/spark.md)",
}
"""What is named outside of the product's code, and by whom."""
CALLED_BY_NAME = ("hms_bridge/server/",)
"""Thrift's names find these methods (server/answers.py): what they call is called."""
DECLARED = ("hms_bridge/backend/schema/",)
"""SQLAlchemy's metadata knows each table that is declared."""
OWN_BASES = {"Protocol", "Exception", "ABC", "Generic"}
"""Bases of others whose methods nobody calls by name; a class on another base of theirs is called
by their code."""
MARKS = {
    "property", "staticmethod", "classmethod", "cached_property", "cache", "lru_cache",
    "contextmanager", "dataclass", "total_ordering", "runtime_checkable", "override",
}  # fmt: skip
"""Decorators that register nothing; what has another one (click's commands) is called by it."""


def dead(sources: Mapping[str, str]) -> list[str]:
    """Functions, classes, methods and constants that are named nowhere but in themselves.

    Names decide, whosever they are: what is called like something alive is taken for alive. A
    method that only methods of its own name call (a verb passed on through the floors) is dead.
    """
    trees = {path: parsed(text) for path, text in sources.items()}
    classes = {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    named = set(ALIVE)
    for path, tree in trees.items():
        named |= _named(tree, is_entry=path.startswith(CALLED_BY_NAME))
    return sorted(
        f"{path}: {name}"
        for path, tree in trees.items()
        if not path.startswith(DECLARED)
        for name in _defined(tree.body, classes)
        if name not in named
    )


def _named(tree: ast.AST, *, is_entry: bool = False) -> set[str]:
    """Names that are read, but within what is called so (there, too, if it ``is_entry``). An import
    alone is no reading, unless it renames."""
    found: set[str] = set()
    todo: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while todo:
        node, around = todo.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if not is_entry:
                around |= {node.name}
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                found |= {name} - around
            case ast.ImportFrom():
                found |= {item.name for item in node.names if item.asname not in (None, item.name)}
        todo += [(child, around) for child in ast.iter_child_nodes(node)]
    return found


def _defined(
    body: Sequence[ast.stmt], classes: set[str], *, is_class: bool = False
) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                is_special = node.name.startswith("__")
                if not is_special and {_last(item) for item in node.decorator_list} <= MARKS:
                    yield node.name
                if isinstance(node, ast.ClassDef) and (
                    {_last(base) for base in node.bases} <= classes | OWN_BASES
                ):
                    yield from _defined(node.body, classes, is_class=True)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not is_class:  # fields are data
                    yield name


def _last(node: ast.expr) -> str:
    """The last name of ``a.b.name[…](…)``."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_nothing_is_kept_for_tests_alone() -> None:
    assert dead(SOURCES) == []


def test_each_exception_is_needed() -> None:
    named = {name for text in SOURCES.values() for name in _named(parsed(text))}
    assert ALIVE.keys() & named == set()


def test_planted_dead_code_is_found() -> None:
    planted = """
LIMIT = 3
def recursive(): return recursive()
def used(): return Store().kept()
class Store(Protocol):
    def kept(self): ...
    def forgotten(self): ...
class Service(Store):
    def forgotten(self): return self._store.forgotten()
class Driver(library.Base):
    def called_by_the_library(self): ...
@cli.command()
def verb(): return used()
"""
    assert [place.partition(": ")[2] for place in dead({"x.py": planted})] == [
        "Driver", "LIMIT", "Service", "forgotten", "forgotten", "recursive"
    ]  # fmt: skip
