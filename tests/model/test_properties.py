"""Hive's names of properties stand in one place."""

from __future__ import annotations

import ast
from pathlib import Path

from hms_bridge.model import properties
from tests.architecture.sources import PRODUCT, ROOT, parsed

NAMES = {
    value
    for constant, value in vars(properties).items()
    if constant.isupper() and isinstance(value, str) and not value.isalpha()
} | {properties.LAST_DDL_TIME, properties.FILE_COUNT, properties.FILE_BYTES, properties.ROW_COUNT}
"""Those that can be nothing else: a word alone (EXTERNAL) is written of other things, too."""


def test_no_property_is_spelled_twice() -> None:
    spelled = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for path in PRODUCT
        if path != Path(properties.__file__)
        for node in ast.walk(parsed(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]
    assert spelled == [], "import it from hms_bridge/model/properties.py"
