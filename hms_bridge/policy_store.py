"""Where policies of replication and their history are kept: a metastore's own database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from hms_bridge.model.replication import Cycle, CycleResult, PolicyTotals, ReplicationPolicy


class PolicyStore(Protocol):
    """Policies by name, and what each cycle of them did."""

    def add_policies(
        self,
        policies: Sequence[ReplicationPolicy],
        *,
        is_replacing: bool = False,
        made_from: Mapping[str, ReplicationPolicy | None] = MappingProxyType({}),
    ) -> None:
        """Keep policies, all or none; one that is there just so stays. ``made_from``: what was
        there of a name (None: nothing) when a change of it was thought out. Raises
        AlreadyExistsError if another one of a name is there and is not to be replaced, and for two
        with the same target, or with the same dumps; InvalidOperationError if a policy is not what
        it was made from any more, or its removal has begun."""

    def changed_by(
        self, policies: Sequence[ReplicationPolicy], *, is_replacing: bool = False
    ) -> tuple[ReplicationPolicy, ...]:
        """Which of them ``add_policies`` would write. Raises what that does."""

    def get_policy(self, name: str) -> ReplicationPolicy:
        """Raises NoSuchObjectError."""

    def get_policies(self) -> tuple[ReplicationPolicy, ...]:
        """All, by name."""

    def get_names_at_work(self, database_name: str) -> tuple[str, ...]:
        """Of the policies that are not paused, those of which the database, of this metastore, is
        the source or the target."""

    def set_paused(self, name: str, *, is_paused: bool) -> None:
        """A paused policy has no cycles. Raises NoSuchObjectError; InvalidOperationError for one
        whose removal has begun."""

    def begin_removal(self, name: str, *, made_from: ReplicationPolicy) -> None:
        """From now on a policy has no cycles and can only be removed, whatever is killed before it
        is: what it holds elsewhere is let go of meanwhile. ``made_from``: what it was when that was
        decided. Raises NoSuchObjectError; InvalidOperationError if it is another one by now."""

    def get_names_ending(self) -> tuple[str, ...]:
        """The policies whose removal has begun and not ended."""

    def remove_policy(self, name: str) -> None:
        """Forget a policy and its history. Raises NoSuchObjectError."""

    def begin_cycle(self, policy: str, host: str) -> int:
        """The number of a new cycle of a policy. Whoever asks is alone with it, so that a cycle
        which is still RUNNING was killed: it becomes INTERRUPTED. Raises NoSuchObjectError."""

    def end_cycle(self, policy: str, number: int, result: CycleResult) -> None:
        """Note what a cycle did. Of cycles in a row that found nothing new the last is kept."""

    def get_cycles(self, policy: str | None = None, limit: int = 100) -> tuple[Cycle, ...]:
        """The newest cycles, of one policy or of all, newest first."""

    def get_totals(self) -> tuple[PolicyTotals, ...]:
        """The sums over the cycles of each policy, by its name."""

    def get_load_roots(self, database_name: str) -> tuple[str, ...]:
        """Below which places the files of a replica came from at its last load; none before it."""

    def set_load_roots(self, database_name: str, roots: tuple[str, ...]) -> None:
        """Note them, in the place of earlier ones; they stay when the database is dropped. Whoever
        loads into the database is alone with it."""
