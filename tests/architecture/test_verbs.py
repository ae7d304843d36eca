"""A verb is written once: no method that only calls on, no family above another, one root."""

import ast
import re

import pytest

from changemanager.filesystem.volume import Volume
from hms_bridge.metastore import LocalMetastore
from hms_bridge.server.served_metastore import ServedMetastore
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.metastore_service import MetastoreService
from tests.architecture.sources import PRODUCT, ROOT, parsed
from tests.support.rules import holds_for


def _documented(*ports: type) -> dict[str, str | None]:
    return {
        name: getattr(port, name).__doc__
        for port in ports
        for name in dir(port)
        if not name.startswith("_")
    }


PORT = _documented(LocalMetastore, ServedMetastore)
FILE_PORT = _documented(Volume)
FAMILIES = MetastoreService.__bases__


def _methods(*rooms: str) -> dict[str, ast.FunctionDef]:
    """Public methods of these rooms' public classes, by file, class and name."""
    return {
        f"{path.name}:{node.name}.{method.name}": method
        for room in rooms
        for path in sorted((ROOT / room).glob("*.py"))
        for node in ast.walk(parsed(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for method in node.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
    }


def _only_calls_on(method: ast.FunctionDef) -> bool:
    """Whether it opens a transaction for one call, whose result it gives as it is."""
    body = method.body[1:] if ast.get_docstring(method) is not None else method.body
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    call = body[0].value
    is_bracket = (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("read", "write")
        and ast.unparse(call.func.value) == "self._transactions"
    )
    if not is_bracket:
        return False
    (work,) = call.args  # type: ignore[union-attr]
    return not isinstance(work, ast.Lambda) or isinstance(work.body, ast.Call)


def test_no_method_only_calls_on() -> None:
    methods = _methods("hms_bridge/service", "hms_bridge/client")
    found = [name for name, method in methods.items() if _only_calls_on(method)]
    assert found == [], "make it a function of the transaction, and list it as a verb"


@holds_for(FAMILIES)
def test_no_family_of_verbs_inherits_from_another(family: type) -> None:
    assert family.__bases__ == (VerbFamily,)
    mine = {name for name in vars(family) if not name.startswith("__")}
    others = [other for other in FAMILIES if other is not family and mine & vars(other).keys()]
    assert others == [], "two families have a name in common"


def _repeats(method: ast.FunctionDef, port: dict[str, str | None]) -> bool:
    """All that one of both says, the other says too."""
    own, ports = ast.get_docstring(method), port.get(method.name)
    if not own or not ports:
        return False
    return _words(own) <= _words(ports) or _words(ports) <= _words(own)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_what_a_verb_does_is_told_once() -> None:
    """In the port; who implements it tells what is different there, or nothing."""
    methods = _methods("hms_bridge/service", "hms_bridge/client")
    silent = {name: m for name, m in methods.items() if ast.get_docstring(m) is None}
    assert [name for name, method in silent.items() if method.name not in PORT] == []
    answers = {
        name: method
        for name, method in _methods("hms_bridge/server").items()
        if not name.startswith("served_")  # which are a part of the port
    }
    assert [name for name, m in (methods | answers).items() if _repeats(m, PORT)] == []


def test_what_a_volume_does_is_told_once() -> None:
    methods = {
        name: method
        for name, method in _methods("changemanager/filesystem").items()
        if "Volume." in name and not name.startswith("volume.py:")
    }
    silent = {name: m for name, m in methods.items() if ast.get_docstring(m) is None}
    assert [name for name, method in silent.items() if method.name not in FILE_PORT] == []
    assert [name for name, method in methods.items() if _repeats(method, FILE_PORT)] == []


@pytest.mark.parametrize("part", ["ChangeManager", "DeleteProtocol", "MetastoreService"])
def test_each_part_is_put_together_in_one_place(part: str) -> None:
    made = re.compile(rf"(?<!class )\b{part}\(")
    places = [path.name for path in PRODUCT if made.search(path.read_text())]
    assert len(places) == 1, places
