"""Hooks of installed packages: found by the entry points of a distribution on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.settings import EventSettings, Settings
from hms_bridge.errors import ConfigError, MetaError
from hms_bridge.hooks.loading import HookKind, event_hooks, load_hook
from hms_bridge.model.catalog import Database
from hms_bridge.service.open import open_local_metastore
from tests.support.databases import fresh_url
from tests.support.program import Program, serving

MODULE = '''
from hms_bridge.hooks.port import VetoError


class Ledger:
    """Writes down what it hears, beside the warehouse of the settings."""

    def __init__(self, path):
        self._path = path

    @classmethod
    def with_settings(cls, settings):
        return cls(f"{settings.warehouse}-heard")

    def on_event(self, event):
        with open(self._path, "a") as file:
            file.write(f"{event.key} {event.type}\\n")


class Guard:
    def before_change(self, change):
        if change.database_name == "closed":
            raise VetoError("it is closed")


NO_HOOK = 17
'''
NAMES = """[hms_bridge.hooks]
ledger = ledger_of_others.hooks:Ledger
guard = ledger_of_others.hooks:Guard
hollow = ledger_of_others.hooks:NO_HOOK
gone = ledger_of_others.hooks:Missing
nowhere = no_such_module_of_others:Ledger

[another.group]
stranger = ledger_of_others.hooks:Ledger
"""


def install(folder: Path) -> Path:
    """As an installer leaves a distribution: its package, and its metadata beside it."""
    package = folder / "ledger_of_others"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "hooks.py").write_text(MODULE)
    metadata = folder / "ledger_of_others-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: ledger-of-others\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(NAMES)
    return folder


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    yield folder
    for name in ("ledger_of_others.hooks", "ledger_of_others"):
        with suppress(KeyError):
            del sys.modules[name]


def heard(warehouse: Path) -> list[str]:
    path = warehouse.with_name(f"{warehouse.name}-heard")
    return path.read_text().splitlines() if path.exists() else []


def test_a_hook_of_an_installed_package_is_named_by_one_word(
    installed: Path, tmp_path: Path
) -> None:
    events = EventSettings(pre_listeners=("guard",), listeners=("ledger",))
    settings = Settings(warehouse=str(tmp_path / "w"), events=events)
    assert [name for name, _ in event_hooks(settings)] == ["ledger"]
    metastore = open_local_metastore(fresh_url(tmp_path), settings=settings)
    metastore.create_database(Database(name="open"))
    with pytest.raises(MetaError, match="pre-event hook guard refuses CREATE_DATABASE closed"):
        metastore.create_database(Database(name="closed"))
    metastore.close()
    assert heard(tmp_path / "w") == ["1 CREATE_DATABASE"]
    assert str(installed) in sys.path


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("legder", "write it as module:attribute, or take one of .*command.*guard.*ledger"),
        ("stranger", "write it as module:attribute, or take one of (?!.*stranger)"),
        ("hollow", "it has no method on_event"),
        ("guard", "it has no method on_event"),
        ("gone", "has no 'Missing'; it was read from /.*\\.py$"),
        ("nowhere", "No module named 'no_such_module_of_others'; is it on the Python path"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_a_wrong_name_says_what_is_wrong(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"event hook '{name}': .*{why}"):
        load_hook(name, HookKind.EVENT, Settings(warehouse="/w"))


@pytest.mark.process
def test_a_server_process_hears_by_that_word_and_starts_with_no_other(tmp_path: Path) -> None:
    """The package is installed in the directory that ``python -m`` puts on the path."""
    program = Program(tmp_path)
    install(program.folder)
    listeners = "hive.metastore.event.listeners"
    settings = {"hive.metastore.pre.event.listeners": "guard", listeners: "ledger"}
    served = replace(program, settings=settings)
    with serving(served, "--port", "0") as server:
        with ThriftMetastoreClient(server.wait_until_ready()) as client:
            client.create_database(Database(name="open"))
            with pytest.raises(MetaError, match="hook guard refuses CREATE_DATABASE closed"):
                client.create_database(Database(name="closed"))
            assert set(client.get_databases()) == {"default", "open"}
        server.stop()
    assert heard(program.warehouse) == ["1 CREATE_DATABASE"]
    wrong = replace(program, settings={**settings, listeners: "legder"})
    answer = wrong.start("serve", "--port", "0")
    assert answer.exit_code != 0
    assert "event hook 'legder': write it as module:attribute, or take one of" in answer.err
    assert "Traceback" not in answer.err
