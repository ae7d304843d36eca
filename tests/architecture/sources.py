"""The product's sources, parsed once for all rules that look at them."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("hms_bridge", "cleaner", "changemanager")


def product_files(checkout: Path) -> list[Path]:
    """Of any checkout."""
    return [path for package in PACKAGES for path in sorted((checkout / package).rglob("*.py"))]


PRODUCT = product_files(ROOT)


@cache
def parsed(text: str) -> ast.Module:
    """Nobody changes the tree."""
    return ast.parse(text)
