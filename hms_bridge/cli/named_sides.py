"""Both sides that a verb works on: those of a policy, or, with ``--source``, of a database."""

from __future__ import annotations

from dataclasses import dataclass

import click

from hms_bridge.cli.repl_options import Call
from hms_bridge.cli.sides import side_settings, side_url
from hms_bridge.config.metastore_url import names_server
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError, NoSuchObjectError
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import ReplicationPolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedSides:
    """``target_database`` None: called as the source's. ``scope``: the tables that a policy says,
    None without one."""

    source_url: str
    source_database: str
    source_settings: Settings
    target_url: str
    target_database: str | None
    target_settings: Settings
    root: str
    scope: ReplScope | None = None

    def is_of_other_tables(self, there: ReplScope) -> bool:
        """Whether a policy was changed since what is there was made."""
        return self.scope is not None and self.scope.patterns_text != there.patterns_text


def named_sides(
    name: str,
    *,
    source_url: str | None,
    call: Call,
    target_database: str | None = None,
    given_root: str | None = None,
) -> NamedSides:
    """Of database ``name`` where a source is given, else of the policy of that name, which
    ``--metastore`` keeps.

    Raises NoSuchObjectError, ConfigError; UsageError for what a policy says itself.
    """
    from hms_bridge.cli.repl_requests import repl_root

    if source_url is not None:
        return NamedSides(
            source_url=source_url,
            source_database=name,
            source_settings=call.settings,
            target_url=call.metastore_url,
            target_database=target_database,
            target_settings=call.settings,
            root=repl_root(given_root, call.settings),
        )
    if target_database is not None or given_root is not None:
        raise click.UsageError("a policy has its own database and root; give neither")
    policy = _policy(name, call)
    return NamedSides(
        source_url=side_url(policy.source, call.metastore_url),
        source_database=policy.source.database,
        source_settings=side_settings(policy.source),
        target_url=side_url(policy.target, call.metastore_url),
        target_database=policy.target.database,
        target_settings=side_settings(policy.target),
        root=policy.root,
        scope=policy.scope,
    )


def require_keeper(name: str, metastore_url: str) -> None:
    """Raises ConfigError for a server, which keeps no policies."""
    if names_server(metastore_url):
        raise ConfigError(
            f"policies are kept in a database, which --metastore {metastore_url} is not. Give the "
            f"database's URL; or --source, if {name} is a database of a source"
        )


def _policy(name: str, call: Call) -> ReplicationPolicy:
    require_keeper(name, call.metastore_url)
    with call.store() as store:
        try:
            return store.policies.get_policy(name)
        except NoSuchObjectError as error:
            raise NoSuchObjectError(
                f"{error}. With --source, {name} is a database of that source"
            ) from error
