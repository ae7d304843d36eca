"""Looks at replicas for ``repl lag``: at those of policies, or of databases of one source.

What is wrong with one says nothing of the next; and an error is a verdict, because a monitor takes
its exit code, 1, for a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from changemanager.masking import masked_url
from hms_bridge.cli.kept_policy import (
    KeptPolicies,
    kept_policies,
    policy_of,
    settings_of_source,
    settings_of_target,
)
from hms_bridge.cli.lag_verdict import LagLimits, State, Verdict, Watched
from hms_bridge.cli.repl_options import Call
from hms_bridge.cli.repl_status import both_sides, status_request
from hms_bridge.cli.sides import side_settings, side_url
from hms_bridge.config.settings import Settings
from hms_bridge.errors import HmsBridgeError

if TYPE_CHECKING:
    from hms_bridge.model.replication import ReplicationPolicy
    from hms_bridge.repl.status.repl_status import ReplStatus


@dataclass(frozen=True, kw_only=True, slots=True)
class Looking:
    """How replicas are looked at and judged, whoever names them. ``are_bytes_counted``: each file
    that is still to be copied is looked at, too."""

    limits: LagLimits
    call: Call
    are_bytes_counted: bool

    def watched(self, names: Sequence[str]) -> list[Watched]:
        """What was typed, once each, in the metastore of the call."""
        metastore = masked_url(self.call.metastore_url)
        return [Watched(database=name, metastore=metastore) for name in dict.fromkeys(names)]


@dataclass(frozen=True, slots=True)
class PolicyMonitor:
    """Looks at the replicas of policies that ``--metastore`` keeps."""

    looking: Looking

    def verdicts(self, names: Sequence[str]) -> list[Verdict]:
        """On those that are named, else on all; on something in any case, as no verdict at all
        would be a good one."""
        watched = self.looking.watched(names or ("-",))
        try:
            with self.looking.call.store() as store:
                kept = KeptPolicies.of(store)
        except HmsBridgeError as error:
            return [replace(nothing.unknown(str(error)), is_blind=True) for nothing in watched]
        if not kept.policies:
            why = "no policy is kept there: see repl policy add"
            return [nothing.unknown(why) for nothing in watched]
        if not names:
            return [self._policy(policy, kept) for policy in kept.policies]
        return [self._named(nothing, kept) for nothing in watched]

    def _named(self, watched: Watched, kept: KeptPolicies) -> Verdict:
        name = watched.database
        policy = policy_of(kept.policies, name, self.looking.call.metastore_url)
        if policy is not None:
            return self._policy(policy, kept)
        known = ", ".join(policy.name for policy in kept.policies)
        return watched.unknown(
            f"there is no policy {name}; there are: {known}. With --source it is a database"
        )

    def _policy(self, policy: ReplicationPolicy, kept: KeptPolicies) -> Verdict:
        target, store_url = policy.target, self.looking.call.metastore_url
        replica = Watched(
            database=target.database,
            metastore=masked_url(target.metastore or store_url),
            policy=policy.name,
        )
        try:
            settings = side_settings(policy.source)  # whose event log and archive have limits
            request = status_request(
                policy.source.database,
                settings,
                given_root=policy.root,
                target_database=target.database,
                last_success_ms=kept.last_success_ms(policy),
                target_settings=settings_of_target(policy, settings),
                are_bytes_counted=self.looking.are_bytes_counted,
            )
            urls = side_url(target, store_url), side_url(policy.source, store_url)
        except HmsBridgeError as error:
            return replica.unknown(str(error))

        def look(looker: ReplStatus) -> Verdict:
            return self.looking.limits.judge(replica, looker.look(request))

        try:
            with both_sides(*urls, settings) as looker:
                return look(looker)
        except HmsBridgeError as error:
            return _without_one_side(replica.unknown(str(error)), urls, settings, look)


@dataclass(frozen=True, slots=True)
class DatabaseMonitor:
    """Looks at replicas, in one metastore, of databases of one source. ``given_root`` None: as a
    policy says that replicates the database, else the settings."""

    looking: Looking
    source_url: str
    given_root: str | None

    def verdicts(self, names: Sequence[str]) -> list[Verdict]:
        """On the databases that are named, in any case of letters."""
        call = self.looking.call
        watched = self.looking.watched([name.lower() for name in names])
        kept = KeptPolicies()
        try:
            kept = kept_policies(call)
            with both_sides(call.metastore_url, self.source_url, call.settings) as looker:
                return [self._database(looker, replica, kept) for replica in watched]
        except HmsBridgeError as error:
            return [
                _without_one_side(
                    replica.unknown(str(error)),
                    (call.metastore_url, self.source_url),
                    call.settings,
                    partial(self._database, replica=replica, kept=kept),
                )
                for replica in watched
            ]

    def _database(self, looker: ReplStatus, replica: Watched, kept: KeptPolicies) -> Verdict:
        try:
            name, settings = replica.database, self.looking.call.settings
            target_settings = settings
            policy = policy_of(
                kept.policies, name, self.looking.call.metastore_url, is_database=True
            )
            if policy is not None:
                target_settings = settings_of_target(policy, settings)
                settings = settings_of_source(policy, settings)
            request = status_request(
                name,
                settings,
                given_root=self.given_root or (None if policy is None else policy.root),
                target_database=None if policy is None else policy.target.database,
                last_success_ms=None if policy is None else kept.last_success_ms(policy),
                target_settings=target_settings,
                are_bytes_counted=self.looking.are_bytes_counted,
            )
            return self.looking.limits.judge(replica, looker.look(request))
        except HmsBridgeError as error:
            return replica.unknown(str(error))


def _without_one_side(
    nothing: Verdict,
    urls: tuple[str, str],
    settings: Settings,
    look: Callable[[ReplStatus], Verdict],
) -> Verdict:
    """``urls``: of the replica's metastore and of the source's, of which one does not answer, so
    that ``nothing`` is known otherwise. A replica that was promoted says so by itself: its source
    is lost, as a rule."""
    target_url, source_url = urls
    with suppress(HmsBridgeError), both_sides(target_url, None, settings) as looker:
        alone = look(looker)
        if alone.report is not None and alone.report.is_promoted:
            return alone
    return _without_replica(nothing, source_url, settings, look)


def _without_replica(
    nothing: Verdict, source_url: str, settings: Settings, look: Callable[[ReplStatus], Verdict]
) -> Verdict:
    """What source and dumps show of a replica that does not answer: above all how long it can
    still follow, which counts down meanwhile."""
    try:
        with both_sides(None, source_url, settings) as looker:
            seen = look(looker)
    except HmsBridgeError:
        return nothing
    if seen.state is not State.CRITICAL:
        return replace(nothing, report=seen.report)
    return replace(seen, why=f"{seen.why}; and {nothing.why}")
