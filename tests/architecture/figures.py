"""Figures of the house: how long, how dense, how often the same is written.

``python -m tests.architecture.figures [CHECKOUT]`` prints them of a checkout, by default of this
one; ``--names`` also what was counted.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from tests.architecture.sources import parsed, product_files

DENSEST = 40
DENSE_LINES_MIN = 60
"""A shorter file is dense by chance."""
_DRIVERS = {"fsspec", "s3fs", "hdfs_native"}
# The port itself, and what makes the source's transactions again, which end when those do.
_PORT_AND_REPLAYS = tuple(
    f"hms_bridge/{room}/"
    for room in ("client", "server", "service", "txn", "repl/load", "repl/events")
)
_PRAGMAS = ("noqa", "type:", "fmt:", "pragma")
_DATABASE, _TABLE = {"database", "database_name"}, {"table", "table_name"}
_PARTITION = {"partition", "partition_name", "partition_values"}
_NOUNS = {"Target", "Scope"}
"""The records that the others have a field of."""
_BRANCHES = (
    ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.match_case, ast.BoolOp,
    ast.comprehension,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the product; ``name`` is its path below the checkout."""

    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """Also the empty ones."""
        return len(self.text.splitlines())

    @property
    def density(self) -> float:
        """Decisions a line."""
        return sum(isinstance(node, _BRANCHES) for node in ast.walk(self.tree)) / self.lines

    @property
    def comments(self) -> int:
        """Lines with a comment that is for people; docstrings are none."""
        return sum(
            token.type == tokenize.COMMENT and not token.string.lstrip("# ").startswith(_PRAGMAS)
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline)
        )

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Methods and inner functions, too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def classes(self) -> Iterator[ast.ClassDef]:
        """All of them."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; ``names``: each thing that was counted, where a list says more."""

    name: str
    value: str
    names: tuple[str, ...] = ()


def product(checkout: Path) -> tuple[Module, ...]:
    """Its files that have lines."""
    paths = product_files(checkout)
    texts = {path.relative_to(checkout).as_posix(): path.read_text() for path in paths}
    return tuple(Module(name, text, parsed(text)) for name, text in texts.items() if text)


def figures(modules: Sequence[Module]) -> Iterator[Figure]:
    """Those that can be read off the text."""
    yield Figure("product lines", str(sum(module.lines for module in modules)))
    yield _length("file", {module.name: module.lines for module in modules})
    yield _length(
        "function",
        {
            f"{module.name}:{function.lineno} {function.name}": _lines(function)
            for module in modules
            for function in module.functions()
        },
    )
    yield _comments(modules)
    yield _counted("verbs that only pass on", pass_through_verbs(modules))
    yield _counted("importers of fsspec outside of changemanager", importers_of_drivers(modules))
    yield _counted("files at the top of repl/", files_at_top(modules, "hms_bridge/repl/"))
    yield _counted("records that repeat database, table, partition", repeating_records(modules))
    yield _counted("openers of transactions", openers(modules))


def pass_through_verbs(modules: Sequence[Module]) -> Iterator[str]:
    """Public methods of ``service/`` that open a transaction for one call, and do nothing else;
    not those that ask a part of their family, which no function of the transaction could."""
    for module in modules:
        if module.name.startswith("hms_bridge/service/"):
            for owner in module.classes():
                for method in owner.body:
                    if isinstance(method, ast.FunctionDef) and _passes_on(method):
                        yield f"{module.name}:{method.lineno} {owner.name}.{method.name}"


def importers_of_drivers(modules: Sequence[Module]) -> Iterator[str]:
    """Files that see the libraries below the volumes."""
    for module in modules:
        if not module.name.startswith("changemanager/") and _imported(module) & _DRIVERS:
            yield module.name


def files_at_top(modules: Sequence[Module], room: str) -> Iterator[str]:
    """Those of a room that are in none of its folders."""
    for module in modules:
        rest = module.name.removeprefix(room)
        if rest != module.name and "/" not in rest and rest != "__init__.py":
            yield module.name


def repeating_records(modules: Sequence[Module]) -> Iterator[str]:
    """Classes with a field each for database, table and partition."""
    for module in modules:
        for record in module.classes():
            fields = {
                node.target.id
                for node in record.body
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            }
            repeats = all(fields & names for names in (_DATABASE, _TABLE, _PARTITION))
            if repeats and record.name not in _NOUNS:
                yield f"{module.name}:{record.lineno} {record.name}"


def openers(modules: Sequence[Module]) -> Iterator[str]:
    """Files that ask a metastore for a transaction of their own."""
    for module in modules:
        called = {
            node.func.attr
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        if "open_txns" in called and not module.name.startswith(_PORT_AND_REPLAYS):
            yield module.name


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _length(what: str, lines: dict[str, int]) -> Figure:
    longest = max(lines, key=lambda name: lines[name])
    value = f"median {statistics.median(lines.values()):.0f}, longest {lines[longest]} ({longest})"
    return Figure(f"lines of a {what}", value)


def _counted(what: str, names: Iterator[str]) -> Figure:
    counted = tuple(names)
    return Figure(what, str(len(counted)), counted)


def _comments(modules: Sequence[Module]) -> Figure:
    dense = sorted(
        (module for module in modules if module.lines >= DENSE_LINES_MIN),
        key=lambda module: module.density,
        reverse=True,
    )[:DENSEST]
    return Figure(
        f"comments per 1,000 lines in the {DENSEST} files with most decisions a line",
        f"{_comments_per_1000(dense):.1f} (everywhere {_comments_per_1000(modules):.1f})",
        tuple(f"{module.name}: {module.comments} in {module.lines}" for module in dense),
    )


def _comments_per_1000(modules: Sequence[Module]) -> float:
    return 1000 * sum(m.comments for m in modules) / sum(m.lines for m in modules)


def _passes_on(method: ast.FunctionDef) -> bool:
    if method.name.startswith("_"):
        return False
    body = method.body[1:] if ast.get_docstring(method) is not None else method.body
    *before, last = body or [ast.Pass()]
    value = last.value if isinstance(last, ast.Return | ast.Expr) else None
    return (
        not before
        and isinstance(value, ast.Call)
        and ast.unparse(value.func) in ("self._transactions.read", "self._transactions.write")
        and len(_calls(value)) <= 2  # the transaction, and what is done in it
        and "self._files" not in ast.unparse(value)
    )


def _calls(node: ast.AST) -> list[ast.Call]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _imported(module: Module) -> set[str]:
    names = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= {item.name.partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").partition(".")[0])
    return names


def main(arguments: Sequence[str]) -> None:
    """Print a line a figure."""
    places = [argument for argument in arguments if argument != "--names"]
    checkout = Path(places[0]) if places else Path(__file__).parents[2]
    for figure in figures(product(checkout)):
        click.echo(f"{figure.name}: {figure.value}")
        if "--names" in arguments:
            for name in figure.names:
                click.echo(f"    {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
