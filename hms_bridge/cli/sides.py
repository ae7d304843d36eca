"""One side of a replication: its settings, its metastore, and its archive's manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hms_bridge.cli.options import settings_of_side
from hms_bridge.config.metastore_url import names_server
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore
from hms_bridge.model.replication import PolicySide

if TYPE_CHECKING:
    from changemanager.manifest import ArchiveManifest
    from hms_bridge.cleaning_store import FigureStore


@contextmanager
def source_side(url: str, settings: Settings) -> Iterator[tuple[Metastore, ArchiveManifest | None]]:
    """A source, and the manifest in its database; that of a remote one is out of reach."""
    with source_with_figures(url, settings) as (metastore, manifest, _):
        yield metastore, manifest


@contextmanager
def source_with_figures(
    url: str, settings: Settings
) -> Iterator[tuple[Metastore, ArchiveManifest | None, FigureStore | None]]:
    """The same with the sums that its database makes; those of a remote one are out of reach."""
    from hms_bridge.connect import connected, connected_locally

    if names_server(url):
        with connected(url, settings, is_created=False) as metastore:
            yield metastore, None, None
    else:
        with connected_locally(url, settings, is_created=False) as store:
            yield store.metastore, store.manifest, store.metastore


def side_settings(side: PolicySide) -> Settings:
    """The settings of the verb, and those of one side of a policy. Raises ConfigError."""
    from hms_bridge.repl.cycles.policy_text import with_environment

    return settings_of_side(
        {key: with_environment(text, os.environ) for key, text in side.settings.items()},
        None if side.metastore is None else with_environment(side.metastore, os.environ),
    )


def side_url(side: PolicySide, store_url: str) -> str:
    """Where a side's metastore is; that which keeps the policy if the side names none. Raises
    ConfigError."""
    from hms_bridge.repl.cycles.policy_text import with_environment

    return store_url if side.metastore is None else with_environment(side.metastore, os.environ)
