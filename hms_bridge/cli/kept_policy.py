"""The policy that says what was not typed: where a replica's dumps are, and its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_bridge.cli.output import say
from hms_bridge.cli.repl_options import Call
from hms_bridge.cli.sides import side_settings
from hms_bridge.config.metastore_url import names_server
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError
from hms_bridge.metastore import Metastore
from hms_bridge.model.replication import PolicySide, PolicyTotals, ReplicationPolicy

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptPolicies:
    """What a metastore's own database knows of replications. ``ending``: the policies whose
    removal was begun."""

    policies: tuple[ReplicationPolicy, ...] = ()
    totals: tuple[PolicyTotals, ...] = ()
    ending: tuple[str, ...] = ()

    @classmethod
    def of(cls, store: LocalStore) -> KeptPolicies:
        """All that a database keeps."""
        return cls(
            policies=store.policies.get_policies(),
            totals=store.policies.get_totals(),
            ending=store.policies.get_names_ending(),
        )

    def last_success_ms(self, policy: ReplicationPolicy) -> int | None:
        """When a cycle of a policy last brought its replica to the source's state."""
        return next(
            (sums.last_success_ms for sums in self.totals if sums.policy == policy.name), None
        )


def being_removed(name: str) -> str:
    """What is said of a policy whose removal did not come to its end."""
    return (
        f"note: policy {name} is being removed, and has no cycles any more; its source's archive "
        f"may hold files for its next dump still. Unless somebody is at it: 'repl policy remove "
        f"{name}' again"
    )


def kept_policies(call: Call) -> KeptPolicies:
    """What ``--metastore`` keeps; a server, and a file that is not there, keep nothing."""
    from hms_bridge.connect import is_set_up

    url = call.metastore_url
    if names_server(url) or not is_set_up(url):
        return KeptPolicies()
    with call.store() as store:
        return KeptPolicies.of(store)


@contextmanager
def with_policies_at_work(database: str, call: Call) -> Iterator[tuple[Metastore, tuple[str, ...]]]:
    """A metastore, and the names of its policies at work with a database; those of a remote one are
    out of reach."""
    if names_server(call.metastore_url):
        with call.connected() as metastore:
            yield metastore, ()
    else:
        with call.store() as store:
            yield store.metastore, store.policies.get_names_at_work(database)


def policy_of(
    policies: Sequence[ReplicationPolicy],
    name: str,
    metastore_url: str,
    *,
    target_database: str | None = None,
    is_database: bool = False,
) -> ReplicationPolicy | None:
    """The policy called ``name``, unless that ``is_database``; else the one that replicates a
    database of that name into the metastore, if there is only one. ``target_database``: into it."""
    from hms_bridge.connect import shareable_url

    wanted = [
        policy
        for policy in policies
        if target_database is None or policy.target.database == target_database.lower()
    ]
    if not is_database:
        for policy in wanted:
            if policy.name == name:
                return policy
    own = (None, shareable_url(metastore_url))
    fitting = [
        policy
        for policy in wanted
        if policy.source.database.lower() == name.lower() and policy.target.metastore in own
    ]
    return fitting[0] if len(fitting) == 1 else None


def settings_of_source(policy: ReplicationPolicy, otherwise: Settings) -> Settings:
    """What the source keeps for how long, as the policy says; where that needs a password which
    this environment has not, as the verb's settings say."""
    return _settings_of(policy, policy.source, otherwise)


def settings_of_target(policy: ReplicationPolicy, otherwise: Settings) -> Settings:
    """What its loads go by, in the same way."""
    return _settings_of(policy, policy.target, otherwise)


def _settings_of(policy: ReplicationPolicy, side: PolicySide, otherwise: Settings) -> Settings:
    try:
        return side_settings(side)
    except ConfigError as error:
        say(f"note: settings of policy {policy.name} are left out: {error}")
        return otherwise
