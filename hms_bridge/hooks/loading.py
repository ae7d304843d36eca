"""Hooks by name: of a module, of an installed package, or one that comes with this program."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from importlib.metadata import entry_points
from traceback import extract_tb
from typing import Any

from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.inside import InnerHooks
from hms_bridge.hooks.port import EventHook

NAME_LENGTH_MAX = 255
ENTRY_POINTS = "hms_bridge.hooks"
"""The group of entry points in which a package gives hooks their names."""


def _json_lines() -> Any:
    from hms_bridge.hooks.json_lines import JsonLines

    return JsonLines


def _webhook() -> Any:
    from hms_bridge.hooks.webhook import Webhook

    return Webhook


def _command() -> Any:
    from hms_bridge.hooks.command import Command

    return Command


SHIPPED = {"json-lines": _json_lines, "webhook": _webhook, "command": _command}
"""Name, and what finds it: each is imported where it is used only."""

_OURS = frozenset({"org.apache.hive.hcatalog.listener.DbNotificationListener"})
"""Listeners of Hive's that this metastore is itself: it writes the notification log."""


class HookKind(Enum):
    """When a hook is called; the value is the method that is called."""

    PRE = "before_change"
    TRANSACTIONAL = "in_transaction"
    EVENT = "on_event"

    @property
    def title(self) -> str:
        """What a hook of this kind is called in messages."""
        titles = {HookKind.PRE: "pre-event", HookKind.TRANSACTIONAL: "transactional"}
        return f"{titles.get(self, 'event')} hook"

    def names(self, settings: Settings) -> tuple[str, ...]:
        """The hooks of this kind that the settings name, without those that are ours anyway."""
        events = settings.events
        given = {
            HookKind.PRE: events.pre_listeners,
            HookKind.TRANSACTIONAL: events.transactional_listeners,
            HookKind.EVENT: (*events.hooks, *events.listeners),
        }[self]
        return tuple(name for name in given if name not in _OURS)


def inner_hooks(settings: Settings) -> InnerHooks:
    """Those that are called inside of transactions. Raises ConfigError."""
    return InnerHooks(
        pre=tuple(_loaded(HookKind.PRE, settings)),
        transactional=tuple(_loaded(HookKind.TRANSACTIONAL, settings)),
    )


def _loaded(kind: HookKind, settings: Settings) -> list[tuple[str, Any]]:
    return [(name, load_hook(name, kind, settings)) for name in kind.names(settings)]


def event_hooks(
    settings: Settings, more: Sequence[EventHook] = ()
) -> tuple[tuple[str, EventHook], ...]:
    """Hooks of settings and of a program, under the names that their positions are stored by:
    what the setting says, or the class. Of several of one name the second is ``NAME#2``.

    Raises ConfigError, as :func:`load_hook`, and for a name that is too long.
    """
    loaded = _loaded(HookKind.EVENT, settings)
    given = ((f"{type(hook).__module__}:{type(hook).__qualname__}", hook) for hook in more)
    seen: Counter[str] = Counter()
    registered = []
    for name, hook in (*loaded, *given):
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        if len(unique) > NAME_LENGTH_MAX:
            raise ConfigError(
                f"event hook '{unique}': a name has at most {NAME_LENGTH_MAX} characters"
            )
        registered.append((unique, hook))
    return tuple(registered)


def load_hook(name: str, kind: HookKind, settings: Settings) -> Any:
    """``module:attribute``, ``module.attribute``, or a single word: a hook of this program or of an
    installed package. What has ``with_settings`` is made by it; another class, or a function
    without arguments, is called.

    Raises ConfigError for what cannot be imported or made, or has not the method of its kind.
    """
    what = f"{kind.title} '{name}'"
    loaded = _find(name, what)
    try:
        hook = _made(loaded, kind, settings)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{what} cannot be made: {fault_of(error)}") from error
    if not callable(getattr(hook, kind.value, None)):
        raise ConfigError(f"{what}: it has no method {kind.value}, which is called")
    return hook


def fault_of(error: Exception) -> str:
    """An error of somebody's code, for who wrote that, with the line that it comes from. An
    error of syntax names its own."""
    frames = [] if isinstance(error, SyntaxError) else extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _made(loaded: Any, kind: HookKind, settings: Settings) -> Any:
    hook = loaded
    if hasattr(loaded, "with_settings"):
        hook = loaded.with_settings(settings)
    elif callable(loaded) and (isinstance(loaded, type) or not hasattr(loaded, kind.value)):
        hook = loaded()
    if isinstance(hook, type):
        hook = hook()
    return hook


def _find(name: str, what: str) -> Any:
    """``what``: the hook of that name, for messages."""
    if name in SHIPPED:
        return SHIPPED[name]()
    installed = entry_points(group=ENTRY_POINTS)
    place = installed[name].value if name in installed.names else name
    module_name, separator, attribute = place.partition(":")
    if not separator:
        module_name, separator, attribute = place.rpartition(".")
    if not separator:
        known = ", ".join(sorted({*SHIPPED, *installed.names}))
        raise ConfigError(f"{what}: write it as module:attribute, or take one of {known}")
    try:
        module = importlib.import_module(module_name)
    except (ModuleNotFoundError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{what}: {error}; is it on the Python path? A class of Java's can only "
            "run in Hive's metastore: name a hook in Python instead, or none"
        ) from error
    except Exception as error:
        raise ConfigError(f"{what}: its module cannot be imported: {fault_of(error)}") from error
    if not hasattr(module, attribute):
        raise ConfigError(
            f"{what}: {module_name} has no '{attribute}'; it was read from "
            f"{getattr(module, '__file__', None) or 'no file'}"
        )
    return getattr(module, attribute)
