"""From what ``repl policy add`` is given to a policy: a new one, or one that is changed."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import click

from hms_bridge.cli.options import split_assignment, url_of
from hms_bridge.cli.output import say
from hms_bridge.cli.repl_options import Verb, dumps_root_option, into_option
from hms_bridge.cli.sides import side_settings, side_url
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError, HmsBridgeError, NoSuchObjectError
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import PolicySide, ReplicationPolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenSide:
    """One side, as it was typed: None for what was not. ``unset``: settings that it is to have no
    more."""

    metastore: str | None
    database: str | None
    settings: Mapping[str, str]
    unset: tuple[str, ...]

    def changed(self, before: PolicySide, option: str) -> PolicySide:
        """A side as it was, but for what is named here. Raises UsageError for a setting that is to
        go but is not there, or is given, too; ``option`` is the one that says so."""
        for key in self.unset:
            if key in self.settings or key not in before.settings:
                why = "is given, too" if key in self.settings else "is not set"
                raise click.UsageError(f"{option} {key}: that setting {why}")
        kept = {key: text for key, text in before.settings.items() if key not in self.unset}
        return PolicySide(
            metastore=before.metastore if self.metastore is None else self.metastore,
            database=self.database or before.database,
            settings=kept | dict(self.settings),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenPolicy:
    """A policy, as it was typed. ``scope``: a database, perhaps with patterns of tables."""

    name: str
    scope: ReplScope | None
    source: GivenSide
    target: GivenSide
    root: str | None

    @property
    def has_unset(self) -> bool:
        """Whether settings are to go."""
        return bool(self.source.unset or self.target.unset)

    def made(self, settings: Settings) -> ReplicationPolicy:
        """A new policy: what was not typed is as the settings or the name have it. Raises
        ConfigError, ReplError; UsageError without a source."""
        from hms_bridge.cli.repl_requests import repl_root

        if self.source.metastore is None:
            raise click.UsageError(f"--source: policy {self.name} is a new one, so name its source")
        scope = self.scope or ReplScope.parse(self.name)
        blank = PolicySide(database=scope.database_name)
        return ReplicationPolicy(
            name=self.name,
            root=repl_root(self.root, settings),
            source=self.source.changed(blank, "--source-unset"),
            target=self.target.changed(blank, "--target-unset"),
            included_tables=scope.included_pattern,
            excluded_tables=scope.excluded_pattern,
        )

    def changed(self, before: ReplicationPolicy, settings: Settings) -> ReplicationPolicy:
        """A policy as it was, but for what is named here; a database that is named is named with
        its patterns. Raises ConfigError, UsageError."""
        from hms_bridge.cli.repl_requests import repl_root

        scope = self.scope or before.scope
        return replace(
            before,
            root=before.root if self.root is None else repl_root(self.root, settings),
            source=self.source.changed(before.source, "--source-unset"),
            target=self.target.changed(before.target, "--target-unset"),
            included_tables=scope.included_pattern,
            excluded_tables=scope.excluded_pattern,
        )


def given_policy(command: Verb) -> Verb:
    """What a policy is given by: the verb gets ``given``."""

    @functools.wraps(command)
    def with_policy(
        *args: object,
        name: str,
        source_database: str | None,
        source_url: str | None,
        target_database: str | None,
        target_url: str | None,
        given_root: str | None,
        source_settings: tuple[str, ...],
        target_settings: tuple[str, ...],
        unset_at_source: tuple[str, ...],
        unset_at_target: tuple[str, ...],
        **kwargs: object,
    ) -> object:
        scope = ReplScope.parse(source_database) if source_database is not None else None
        source = GivenSide(
            metastore=source_url and url_of(source_url),
            database=None if scope is None else scope.database_name,
            settings=_assigned("--source-set", source_settings),
            unset=unset_at_source,
        )
        target = GivenSide(
            metastore=target_url and url_of(target_url),
            database=target_database,
            settings=_assigned("--target-set", target_settings),
            unset=unset_at_target,
        )
        given = GivenPolicy(name=name, scope=scope, source=source, target=target, root=given_root)
        return command(*args, given=given, **kwargs)

    verb: Verb = with_policy
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


_OPTIONS = (
    click.argument("name"),
    click.argument("source_database", metavar="[DATABASE]", required=False),
    click.option(
        "--source",
        "source_url",
        metavar="URL",
        help="The source's metastore; @FILE: the URL stands in that file. Must be given, but for a "
        "policy that is there (--replace).",
    ),
    into_option,
    click.option(
        "--target",
        "target_url",
        metavar="URL",
        help="The replica's metastore.  [default: the one that keeps the policy]",
    ),
    dumps_root_option,
    click.option(
        "--source-set",
        "source_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the source's side alone, as its archive. May be repeated.",
    ),
    click.option(
        "--target-set",
        "target_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the replica's side alone. May be repeated.",
    ),
    click.option(
        "--source-unset",
        "unset_at_source",
        multiple=True,
        metavar="KEY",
        help="With --replace: a setting that the source's side has no more. May be repeated.",
    ),
    click.option(
        "--target-unset",
        "unset_at_target",
        multiple=True,
        metavar="KEY",
        help="With --replace: a setting that the replica's side has no more. May be repeated.",
    ),
)


def _assigned(option: str, texts: Iterable[str]) -> dict[str, str]:
    return dict(split_assignment(option, text) for text in texts)


def require_database_at_source(policy: ReplicationPolicy, store_url: str) -> None:
    """Raises NoSuchObjectError if the source of a policy has no such database, ConfigError if it
    cannot be asked. A policy that takes a password from an environment is not asked for here where
    that is another one than this."""
    from hms_bridge.connect import connected
    from hms_bridge.dml.named import find_database
    from hms_bridge.repl.cycles.policy_text import missing_variable

    variable = missing_variable(policy.source, os.environ)
    if variable is not None:
        say(
            f"note: policy {policy.name}: nobody looked whether its source has a database "
            f"{policy.source.database}, as {variable} is not in this environment"
        )
        return
    way_out = "; to keep the policy all the same: --source-later"
    url = side_url(policy.source, store_url)
    try:
        with connected(url, side_settings(policy.source), is_created=False) as source:
            find_database(source, policy.source.database)
    except NoSuchObjectError as error:
        raise NoSuchObjectError(f"the source of policy {policy.name}: {error}{way_out}") from error
    except HmsBridgeError as error:
        raise ConfigError(
            f"the source of policy {policy.name} cannot be asked for its database: {error}{way_out}"
        ) from error
