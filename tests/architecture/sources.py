"""The product's sources, parsed once for all rules that look at them."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("hms_bridge", "cleaner", "changemanager")
PRODUCT = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def parsed(text: str) -> ast.Module:
    """Nobody changes the tree."""
    return ast.parse(text)
