"""Hooks by name: modules, packages, and those that come with the program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.config.settings import EventSettings, Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.inside import InnerHooks
from hms_bridge.hooks.loading import HookKind, event_hooks, inner_hooks, load_hook
from hms_bridge.model.hook import Change, HookEvent

HERE = "tests.hooks.test_loading"


class Recorder:
    def __init__(self) -> None:
        self.heard: list[HookEvent] = []

    def on_event(self, event: HookEvent) -> None:
        self.heard.append(event)


class Refusing:
    def before_change(self, change: Change) -> None:
        raise RuntimeError(change.described)


class Configured(Recorder):
    def __init__(self, warehouse: str) -> None:
        super().__init__()
        self.warehouse = warehouse

    @classmethod
    def with_settings(cls, settings: Settings) -> Configured:
        return cls(settings.warehouse)


def make_recorder() -> Recorder:
    return Recorder()


RECORDER = Recorder()
NO_HOOK = object()
SETTINGS = Settings(warehouse="/w")


@pytest.mark.parametrize("name", ["Recorder", "make_recorder", "RECORDER"])
@pytest.mark.parametrize("separator", [":", "."])
def test_hooks_are_loaded_by_name(name: str, separator: str) -> None:
    hook = load_hook(f"{HERE}{separator}{name}", HookKind.EVENT, SETTINGS)
    assert isinstance(hook, Recorder)


def test_a_hook_that_asks_for_settings_gets_them() -> None:
    hook = load_hook(f"{HERE}:Configured", HookKind.EVENT, SETTINGS)
    assert hook.warehouse == "/w"


def test_positions_are_stored_by_name() -> None:
    settings = replace(SETTINGS, events=EventSettings(hooks=(f"{HERE}:RECORDER",)))
    found = event_hooks(settings, [Recorder(), Recorder()])
    assert [name for name, _ in found] == [
        f"{HERE}:RECORDER", f"{HERE}:Recorder", f"{HERE}:Recorder#2",
    ]  # fmt: skip
    long = type("L" * 300, (Recorder,), {})
    with pytest.raises(ConfigError, match="at most 255 characters"):
        event_hooks(SETTINGS, [long()])


@pytest.mark.parametrize(
    "name", ["nowhere", "no.such.module:x", f"{HERE}:nothing", f"{HERE}:NO_HOOK", ":x", "..",
             "org.apache.atlas.hive.hook.HiveMetastoreHook", f"{HERE}:Refusing"],
)  # fmt: skip
def test_what_is_no_hook_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="event hook"):
        load_hook(name, HookKind.EVENT, SETTINGS)


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        (HookKind.PRE, "pre-event"), (HookKind.TRANSACTIONAL, "transactional"),
        (HookKind.EVENT, "event"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["nowhere", "no.such.module:x", f"{HERE}:nothing", "builtins:int"])
def test_a_refusal_says_of_which_kind_the_hook_was_to_be(
    kind: HookKind, title: str, name: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{title} hook '{name}'"):
        load_hook(name, kind, SETTINGS)


def test_the_log_of_hive_is_ours_and_no_hook() -> None:
    """A hive-site.xml that Hive reads, too, names it."""
    listener = "org.apache.hive.hcatalog.listener.DbNotificationListener"
    events = EventSettings(transactional_listeners=(listener,), listeners=(listener,))
    settings = replace(SETTINGS, events=events)
    assert inner_hooks(settings) == InnerHooks()
    assert event_hooks(settings) == ()


def test_each_kind_has_its_own_setting() -> None:
    events = EventSettings(pre_listeners=(f"{HERE}:Refusing",), listeners=(f"{HERE}:RECORDER",))
    settings = replace(SETTINGS, events=events)
    assert [name for name, _ in inner_hooks(settings).pre] == [f"{HERE}:Refusing"]
    assert event_hooks(settings) == ((f"{HERE}:RECORDER", RECORDER),)
