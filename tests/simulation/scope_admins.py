"""Admins who say which tables are replicated, how much at a time, and for how long dumps stay; and
who drop the source's database."""

from __future__ import annotations

import random
from dataclasses import replace

from hms_bridge.model.catalog import Database
from hms_bridge.repl.dump.expiry import ExpiryRequest, ReplExpiry
from hms_bridge.repl.handover.own_part import plan_end, run_end
from tests.simulation.daemons import LEASE
from tests.simulation.model import Effect, Tables
from tests.simulation.policy_runs import PolicyRuns
from tests.simulation.scopes import ALL_TABLES, CHOICES, Patterns, last_event_of_dump
from tests.simulation.side import DAY_MS, HOUR_MS, REPL_ROOT
from tests.simulation.statements import NotTodayError
from tests.simulation.story import ViolationError

_LIMITS = (None, 1, 2, 3, 5, 9)


class ScopeAdmins(PolicyRuns):
    """Each a method that an actor runs to its end."""

    # -- what is replicated

    def change_scope(self, dice: random.Random) -> None:
        """Other patterns from now on, of the policy and of whoever dumps without it; the next dump
        tells of them, at once or later."""
        self._set_scope(dice.choice(CHOICES))
        if dice.random() < 0.4:
            self.dump(dice)

    def replicate_all(self, dice: random.Random) -> None:
        """What a refused promotion names: `policy add --replace` without patterns, `repl run`."""
        self._set_scope(ALL_TABLES)
        self.run_policy(dice)

    def _set_scope(self, patterns: Patterns) -> None:
        """An admin knows where the policy leads while he types."""
        self.cluster.wishes.patterns = patterns
        with self.cluster.scheduler.atomic():
            policy = replace(
                self.policy, included_tables=patterns.included, excluded_tables=patterns.excluded
            )
            self.policies.add_policies([policy], is_replacing=True)

    def dump_as_before(self, dice: random.Random) -> None:
        """`repl dump DATABASE`, which goes on with the tables of the dump before."""
        del dice
        dumper = self.dumper()
        dumper.run(dumper.plan(replace(self.dump_request(), scope=None, is_scope_changed=False)))

    def set_limit(self, dice: random.Random) -> None:
        """`repl dump --limit`, or the setting of it."""
        wishes = self.cluster.wishes
        wishes.event_limit = dice.choice(_LIMITS)
        wishes.is_limited |= wishes.event_limit is not None

    # -- dumps that are kept

    def keep_dumps(self, dice: random.Random) -> None:
        """`hive.repl.retain.prev.dump.dir`."""
        self.cluster.wishes.is_previous_kept = dice.random() < 0.8

    def expire(self, dice: random.Random) -> None:
        """`repl expire --ttl`: what somebody may still load, or go on from, stays."""
        cluster, source = self.cluster, self.cluster.source
        job = ReplExpiry(
            source.metastore,
            cluster.resolve,
            cluster.host_clock,
            cluster.token,
            source.metastore.manifest,
        )
        request = ExpiryRequest(
            root=REPL_ROOT,
            database_name=cluster.database,
            ttl_ms=dice.choice((0, HOUR_MS, 2 * DAY_MS)),
            lease=LEASE,
        )
        plan = job.plan(request)
        with cluster.scheduler.atomic():
            ends = {dump: last_event_of_dump(cluster.disk, dump) for dump in cluster.dumps()}
            loaded = {dump for dump in ends if cluster.is_loaded(dump)}
        kept = max((ends[dump] for dump in loaded.difference(plan.removed)), default=0)
        for dump in job.run(plan):
            if dump in ends and (dump not in loaded or ends[dump] > kept):
                raise ViolationError("I5", f"{dump} is expired, and may still be needed")

    # -- the end of a database

    def drop_database(self, dice: random.Random) -> None:
        """`repl end`, then DROP DATABASE … CASCADE. Nothing is archived from the first on."""
        del dice
        cluster, side = self.cluster, self.cluster.source
        store, name = side.metastore, self.cluster.database
        if not side.has_database():
            raise NotTodayError("no database")
        if side.parameter("repl.source.for"):
            plan = plan_end(store, name)
            cluster.roles.ended.add(side.name)
            run_end(store, plan)

        def apply(tables: Tables) -> None:
            for table in sorted(tables):
                cluster.taken_away(table, sorted(tables[table].partitions))
            tables.clear()
            cluster.left_rows.clear()
            cluster.dropped.clear()

        with cluster.meaning(Effect(lambda: not side.has_database(), apply)):
            store.drop_database(name, is_cascade=True)

    def create_database(self, dice: random.Random) -> None:
        """Another database of the name, which is a source from the beginning."""
        del dice
        side = self.cluster.source
        if side.has_database():
            raise NotTodayError("it is there")
        side.metastore.create_database(
            Database(name=self.cluster.database, parameters={"repl.source.for": "policy"})
        )

    def load_drop(self, dice: random.Random) -> None:
        """`repl load --allow-drop-database`."""
        del dice
        loader = self.loader()
        loader.run(loader.plan(replace(self.load_request(), is_drop_allowed=True)))
