"""The one place that answers: may this directory be deleted, or moved?

It may if it lies below an allowed root (the warehouses, what hms.bridge.deletion.roots names) and
nobody else lies at it, below it, or above it, in any database or catalog; links are followed first.
The directory of a database or catalog is no root: clients name it, and the server may delete where
its clients may not. Whoever deletes or moves a directory asks here: drops, TRUNCATE, RENAME,
EXCHANGE, failed creations, and the cleaner for what was dropped softly. Creation is allowed outside
of the roots: people have external tables anywhere; what lies there only stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from changemanager.location import is_below, is_inside, parse_uri
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import places
from hms_bridge.catalog.places import Owner, Tenant
from hms_bridge.config.settings import DELETION_ROOTS
from hms_bridge.errors import InvalidObjectError, InvalidOperationError
from hms_bridge.model.catalog import Table
from hms_bridge.model.deletion import DeletionVerdict
from hms_bridge.service.locations import WarehouseRoots

_LOG = logging.getLogger(__name__)

OUTSIDE = "outside of the warehouse, wherever its database lies"
"""What is said of a place below no allowed root."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletionRule:
    """``real_places`` gives the places that locations lead to once links are followed."""

    roots: WarehouseRoots
    real_places: Callable[[Iterable[str]], dict[str, str]]

    def roots_of(self, wanted: Iterable[str]) -> dict[str, str]:
        """Of the places those that lie below an allowed root, and that."""
        allowed = (self.roots.managed, self.roots.external, *self.roots.others)
        return {
            place: root
            for place in wanted
            if (root := next((above for above in allowed if is_inside(place, above)), None))
            is not None
        }

    def require_movable(self, source: str, target: str) -> str:
        """The allowed root of a directory that is to be moved. Raises InvalidOperationError if
        either place lies below none, or is led out of it by a link."""
        roots = self.roots_of((source, target))
        real = self.real_places({source, target, *roots.values()})
        for place in (source, target):
            if place not in roots or not is_inside(real[place], real[roots[place]]):
                raise InvalidOperationError(
                    f"{source} cannot be moved to {target}: {place} is {OUTSIDE}; name a "
                    f"directory above it in {DELETION_ROOTS.name}, or move the files by hand"
                )
        return roots[source]

    def verdicts(
        self, connection: Connection, wanted: Sequence[str], owner: Owner | None = None
    ) -> list[DeletionVerdict]:
        """Of each directory whether it may be deleted for its owner; None has no table."""
        others = self.strangers(connection, wanted, owner)
        roots = self.roots_of(wanted)
        return [_verdict(place, roots.get(place), others.get(place)) for place in wanted]

    def strangers(
        self, connection: Connection, wanted: Sequence[str], owner: Owner | None
    ) -> dict[str, str]:
        """Of the directories those that are not the owner's alone, and why."""
        (strangers,) = self.strangers_of_each(connection, [(wanted, owner)])
        return strangers

    def strangers_of_each(
        self, connection: Connection, asked: Sequence[places.Asked]
    ) -> list[dict[str, str]]:
        """The same of directories of several owners."""
        of_owners = places.strangers_of_each(connection, asked)
        for strangers, (wanted, owner) in zip(of_owners, asked, strict=True):
            real = self.real_places(wanted)
            led = {
                place: to for place, to in real.items() if place != to and not is_below(place, to)
            }
            behind = places.strangers(connection, list(led.values()), owner) if led else {}
            for place, to in led.items():
                if to in behind:
                    strangers.setdefault(place, behind[to])
        return of_owners

    def holder(self, connection: Connection, place: str) -> str | None:
        """The table or partition with which a place may be deleted, because it lies in its
        directory; links on the way to either are followed. A directory below no known root only a
        client names, which would hold up whoever needs the place: it is logged."""
        real = self._real_place(place)
        above = places.holders(connection, [place, real])
        owner = next(filter(self._is_known, above), None)
        if owner is None and parse_uri(real).file_system[0] == "file":
            local = filter(self._is_known, places.on_local_disks(connection))
            owner = next(
                (tenant for tenant in local if is_below(real, self._real_place(tenant.place))), None
            )
        if owner is None and above:
            _LOG.warning(
                "%s lies in the directory of %s: who writes there may remove it",
                place, places.shown(connection, above[0]),
            )  # fmt: skip
        return None if owner is None else places.shown(connection, owner)

    def _is_known(self, tenant: Tenant) -> bool:
        return any(is_below(tenant.place, root) for root in self.roots.known)

    def _real_place(self, place: str) -> str:
        return self.real_places([place])[place]

    def require_alone(
        self, connection: Connection, owner: Owner, *directories: str, what: str = "moved"
    ) -> None:
        """Raises InvalidOperationError if something else lies in a directory that is to be moved
        or emptied for its owner, or if it lies in a directory of something else."""
        strangers = self.strangers(connection, directories, owner)
        for place, why in strangers.items():
            raise InvalidOperationError(
                f"{place} cannot be {what}: {why}; give that another location first"
            )

    def require_unshared(
        self, connection: Connection, table: Table, wanted: Sequence[str], owner: Owner | None
    ) -> None:
        """A new directory of a transactional table is its own: its compaction would take files of
        others for its own, and the cleaner would delete them. Raises InvalidObjectError."""
        if not table.is_transactional or not wanted:
            return
        for place, why in self.strangers(connection, wanted, owner).items():
            raise InvalidObjectError(
                f"{place} cannot be a directory of the transactional table {table.full_name}: "
                f"{why}; give it one of its own"
            )


def _verdict(place: str, root: str | None, stranger: str | None) -> DeletionVerdict:
    refusal = stranger
    if root is None:
        refusal = (
            f"it is {OUTSIDE}; delete it by hand, or name a directory above it in "
            f"{DELETION_ROOTS.name}"
        )
    return DeletionVerdict(place=place, root=root, refusal=refusal)
