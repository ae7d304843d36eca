"""Sides that change places: the product's `repl promote` and `repl failback`, as admins type it."""

from __future__ import annotations

import random

from hms_bridge.errors import ReplError
from hms_bridge.model.replication import PolicySide
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.handover import sides
from hms_bridge.repl.handover.failback import Failback
from hms_bridge.repl.handover.failback_plan import FailbackRequest
from hms_bridge.repl.handover.promote import Promotion
from hms_bridge.repl.handover.promote_plan import PromoteRequest
from tests.simulation.daemons import LEASE
from tests.simulation.repairs import Repairs
from tests.simulation.roles import Part
from tests.simulation.scope_admins import ScopeAdmins
from tests.simulation.way_back import bring_back


class Handovers(Repairs):
    """What admins do with the places of both sides, each a method that an actor runs to its end."""

    def promote(self, dice: random.Random) -> None:
        """The source can be reached: planned, with patience or without, or as it stands."""
        is_planned = dice.random() < 0.6
        self._promote(
            is_planned=is_planned,
            is_dump_left=not is_planned and dice.random() < 0.5,
            is_abort_allowed=is_planned and dice.random() < 0.5,
        )

    def promote_without(self, dice: random.Random) -> None:
        """The source cannot be reached: its clients may go on there."""
        self._promote(is_source_lost=True, is_dump_left=dice.random() < 0.7)

    def cancel(self, dice: random.Random) -> None:
        """Whoever has fenced the source has thought again."""
        del dice
        Promotion(self._open_sides()).cancel()

    def failback(self, dice: random.Random) -> None:
        """Mostly without giving up what only the former source has."""
        self._failback(is_discarded=dice.random() < 0.3)

    def switch_over(self, dice: random.Random) -> None:
        """A planned promotion and the way back, one after the other."""
        self._promote(is_planned=True, is_abort_allowed=dice.random() < 0.5)
        self._failback()

    def settle(self, dice: random.Random) -> None:
        """What was begun comes to its end, as docs/runbooks.md has it."""
        cluster = self.cluster
        if not self.policies.get_policies():
            return
        leaving = [side for side in cluster.sides if cluster.roles.part(side) is Part.LEAVING]
        masters = [side for side in cluster.sides if side.story.is_master]
        if leaving or len(masters) == 2:
            self._promote_at_last(dice)
            self._failback_at_last()
        elif masters[0].parameter("hms.bridge.repl.fenced"):
            if dice.random() < 0.5:
                Promotion(self._open_sides()).cancel()
            else:
                self._promote_at_last(dice, is_planned=True, is_abort_allowed=True)
                self._failback_at_last()
        elif self.policy.source.database != masters[0].database_name:
            self._failback_at_last()

    def _failback_at_last(self) -> None:
        """An admin reads what is refused, keeps what is needed, and lets it go."""
        try:
            self._failback()
        except ReplError as error:
            if "would lose all others" in str(error):
                bring_back(self)
                return
            if "nobody else has it" not in str(error):
                raise
            self._failback(is_discarded=True)

    def _promote_at_last(
        self, dice: random.Random, *, is_planned: bool = False, is_abort_allowed: bool = False
    ) -> None:
        """By the way out that a refusal of some tables names."""
        given = {"is_planned": is_planned, "is_abort_allowed": is_abort_allowed}
        try:
            self._promote(**given)
        except ReplError as error:
            if "--close-all" in str(error):
                self._promote(**given, is_all_closed=True)
            elif "Replicate all of them first" in str(error):
                ScopeAdmins(self.cluster).replicate_all(dice)
                self._promote(**given)
            else:
                raise

    # -- the verbs

    def _promote(
        self,
        *,
        is_planned: bool = False,
        is_source_lost: bool = False,
        is_dump_left: bool = False,
        is_abort_allowed: bool = False,
        is_all_closed: bool = False,
    ) -> None:
        roles, name = self.cluster.roles, self._actor
        for names, is_in in (
            (roles.planned, is_planned),
            (roles.without_source, is_source_lost),
            (roles.closing_all, is_all_closed),
        ):
            names.discard(name)
            names.update((name,) if is_in else ())
        opened = self._open_sides(is_source_lost=is_source_lost)
        Promotion(opened).run(
            PromoteRequest(
                policy=opened.policy,
                is_planned=is_planned,
                is_source_lost=is_source_lost,
                is_dump_left=is_dump_left,
                is_all_closed=is_all_closed,
                wait=WaitRules(
                    timeout_seconds=10, poll_seconds=1, is_abort_allowed=is_abort_allowed
                ),
            )
        )
        if not is_source_lost:
            roles.is_split = False

    def _failback(self, *, is_discarded: bool = False) -> None:
        roles, name = self.cluster.roles, self._actor
        roles.giving_up.discard(name)
        roles.giving_up.update((name,) if is_discarded else ())
        opened = self._open_sides()
        Failback(opened).run(FailbackRequest(policy=opened.policy, is_discarded=is_discarded))

    @property
    def _actor(self) -> str:
        actor = self.cluster.scheduler.current
        return actor.name if actor else ""

    def _open_sides(self, *, is_source_lost: bool = False) -> sides.OpenSides:
        policy = self.policy
        return sides.OpenSides(
            policy=policy,
            source=None if is_source_lost else self._handover_side(policy.source),
            unreachable="no answer" if is_source_lost else "",
            target=self._handover_side(policy.target),
            keeper=self.cluster.second.metastore,
            policies=self.policies,
            open_cycle=self.open_cycle,
            clock=self.cluster.host_clock,
            new_name=self.cluster.token,
            user="admin",
            host="h",
            lease=LEASE,
        )

    def _handover_side(self, named: PolicySide) -> sides.Side:
        side = self.side_of(named)
        return sides.Side(
            metastore=side.metastore,
            database_name=side.database_name,
            resolve=self.cluster.resolve,
            manifest=side.metastore.manifest,
            cm_root=side.cm_root,
        )
