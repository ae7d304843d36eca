"""Two sites that change places: a source, its replica, a policy, and the dumps between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from changemanager.location import Resolver
from hms_bridge.config.settings import ArchiveSettings
from hms_bridge.model.replication import PolicySide, ReplicationPolicy
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.dump.plan import DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.handover.failback import Failback
from hms_bridge.repl.handover.failback_plan import FailbackPlan, FailbackRequest
from hms_bridge.repl.handover.promote import Promotion
from hms_bridge.repl.handover.promote_plan import PromotePlan, PromoteRequest
from hms_bridge.repl.handover.sides import OpenSides, Side
from hms_bridge.repl.lease import LeaseRules
from hms_bridge.repl.load.plan import LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.repl.pinned_dumps import release_loaded_dumps
from tests.support.databases import sqlite_file
from tests.support.simulated_clock import SimulatedClock
from tests.support.world import World

LEASE = LeaseRules(dead_after_seconds=30, heartbeat_seconds=10)
POLICY = "sales"
MAIN, DR = "main", "dr"


class Sites:
    """Database ``sales`` at two sites, each with a warehouse and an archive; the policy is kept at
    ``dr``, where the database may have another name."""

    def __init__(
        self,
        folder: Path,
        *,
        urls: tuple[str | None, str | None] = (None, None),
        name_at_dr: str = POLICY,
        **given: Any,
    ) -> None:
        """``given``: to both worlds."""
        self.folder = folder
        self._given = given
        self.clock = SimulatedClock(1_790_000_000_000)
        self.main = self._site(MAIN, urls[0], POLICY, {"repl.source.for": POLICY})
        self.dr = self._site(DR, urls[1], name_at_dr, None)
        self.root = folder / "dumps"
        self._names = 0
        self.is_main_reachable = True
        self.dr.metastore.policies.add_policies(
            [
                ReplicationPolicy(
                    name=POLICY,
                    root=str(self.root),
                    source=PolicySide(metastore=MAIN, database=POLICY),
                    target=PolicySide(database=name_at_dr),
                )
            ]
        )

    def new_name(self) -> str:
        """Of a dump; never the same twice."""
        self._names += 1
        return f"dump{self._names:04d}"

    def _site(
        self, name: str, url: str | None, database: str, parameters: dict[str, str] | None
    ) -> World:
        below = self.folder / name
        below.mkdir(exist_ok=True)
        return World(
            below,
            url=url or sqlite_file(below, "metastore.db3"),
            clock=self.clock,
            database=database,
            has_database=parameters is not None,
            parameters=parameters,
            archive=ArchiveSettings(root=str(below / "cmroot")),
            **self._given,
        )

    def close(self) -> None:
        self.main.close()
        self.dr.close()

    def __enter__(self) -> Sites:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def with_tables(self) -> Sites:
        """Two tables that both sites have."""
        for name in ("t", "u"):
            self.main.create_table(name)
            self.main.insert(name, (1, "a"), (2, "b"))
        self.replicate()
        return self

    def site(self, side: PolicySide) -> World:
        return self.main if side.metastore == MAIN else self.dr

    @property
    def policy(self) -> ReplicationPolicy:
        return self.dr.metastore.policies.get_policy(POLICY)

    def sides(self, wrap: Any = lambda metastore: metastore, watch: Any = None) -> OpenSides:
        """``wrap`` a metastore, ``watch`` a resolver: to let processes die."""
        policy = self.policy
        source, target = self.site(policy.source), self.site(policy.target)
        is_source_there = self.is_main_reachable or source is not self.main
        watched = watch or (lambda resolve: resolve)
        return OpenSides(
            policy=policy,
            source=self._side(source, wrap, watched) if is_source_there else None,
            unreachable="" if is_source_there else "thrift://main:9083 does not answer",
            target=self._side(target, wrap, watched),
            keeper=self.dr.metastore,
            policies=wrap(self.dr.metastore.policies),
            open_cycle=lambda one: self._cycle(one, wrap, watched),
            clock=self.clock,
            new_name=self.new_name,
            user="ann",
            host="here",
            lease=LEASE,
        )

    def _side(self, world: World, wrap: Any, watch: Any) -> Side:
        return Side(
            metastore=wrap(world.metastore),
            database_name=world.database,
            resolve=watch(world.resolve),
            manifest=world.metastore.manifest,
            cm_root=f"file:{world.cmroot}",
        )

    @contextmanager
    def _cycle(self, policy: ReplicationPolicy, wrap: Any, watch: Any) -> Iterator[OpenCycle]:
        source, target = self.site(policy.source), self.site(policy.target)
        resolve: Resolver = watch(source.resolve)
        manifest = source.metastore.manifest
        self.clock.advance_ms(1000)
        yield OpenCycle(
            dumper=ReplDump(wrap(source.metastore), resolve, self.clock, self.new_name, manifest),
            loader=ReplLoad(wrap(target.metastore), watch(target.resolve), clock=self.clock),
            dump=DumpRequest(
                root=policy.root,
                database=source.database,
                cm_root=f"file:{source.cmroot}",
                policy=policy.name,
                scope=policy.scope,
                is_scope_changed=True,
                wait=WaitRules(timeout_seconds=10, poll_seconds=1),
                lease=LEASE,
            ),
            load=LoadRequest(
                root=policy.root,
                source_database=source.database,
                target_database=target.database,
                external_base=str(target.folder / "external"),
                lease=LEASE,
                roots=(str(source.folder), f"file:{source.cmroot}"),
            ),
            release=lambda: release_loaded_dumps(source.resolve, manifest),
        )

    def replicate(self) -> None:
        """A cycle of the policy, whichever way it goes now."""
        with self.sides().open_cycle(self.policy) as cycle:
            cycle.run()

    def dump(self) -> None:
        """A dump that nobody loads."""
        with self.sides().open_cycle(self.policy) as cycle:
            cycle.dumper.run(cycle.plan())

    def promote(self, sides: OpenSides | None = None, **given: Any) -> PromotePlan:
        return Promotion(sides or self.sides()).run(self.promote_request(**given))

    def promote_request(self, **given: Any) -> PromoteRequest:
        wait = WaitRules(
            timeout_seconds=10,
            poll_seconds=1,
            is_abort_allowed=given.pop("is_abort_allowed", False),
        )
        return PromoteRequest(policy=self.policy, wait=wait, **given)

    def failback(self, sides: OpenSides | None = None, **given: Any) -> FailbackPlan:
        request = FailbackRequest(policy=self.policy, **given)
        return Failback(sides or self.sides()).run(request)

    def lose_main(self) -> None:
        self.is_main_reachable = False

    def find_main(self) -> None:
        self.is_main_reachable = True

    def assert_same(self) -> None:
        """I1, I11: both sites have the same tables, rows, row ids and write ids."""
        main, dr = self.main, self.dr
        tables = main.metastore.get_tables(main.database)
        assert dr.metastore.get_tables(dr.database) == tables
        for name in tables:
            assert dr.rows(name) == main.rows(name), name
            highest = main.metastore.get_max_allocated_write_id(main.database, name)
            assert dr.metastore.get_max_allocated_write_id(dr.database, name) == highest, name
