"""The manifest of archived files over the metastore's own database: a method, a transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from changemanager.manifest import ArchivedFile
from hms_bridge.archive import (
    announcements,
    base_folder,
    budgets,
    figures,
    intents,
    leases,
    pins,
    purges,
    records,
    store_id,
    times,
)
from hms_bridge.backend.work import sql
from hms_bridge.hooks import points
from hms_bridge.service.unit_of_work import UnitOfWork, Verbs, heard, reads, writes


def _take_leases(
    unit: UnitOfWork, names: Collection[str], owner: str, now_ms: int
) -> frozenset[str]:
    time_ms = leases.lease_time_ms(unit, now_ms)
    return leases.take_all(unit.connection, names, owner, time_ms)


def _renew_lease(unit: UnitOfWork, name: str, owner: str, now_ms: int) -> bool:
    return leases.renew(unit.connection, name, owner, leases.lease_time_ms(unit, now_ms))


def _record_archived(
    unit: UnitOfWork, cmroot: str, files: Sequence[ArchivedFile], now_ms: int
) -> None:
    records.record_archived(unit.connection, cmroot, files, now_ms)
    unit.points += points.files_archived(cmroot, [file.name for file in files])


def _record_purged(unit: UnitOfWork, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
    is_purged = purges.record_purged(unit.connection, cmroot, name, owner=owner, now_ms=now_ms)
    if is_purged:
        unit.points.append(points.file_purged(cmroot, name))
    return is_purged


def _release_purge(
    unit: UnitOfWork, cmroot: str, name: str, *, owner: str | None, now_ms: int
) -> bool:
    is_released = purges.release_purge(unit, cmroot, name, owner=owner, now_ms=now_ms)
    if is_released and owner is None:
        unit.points.append(points.file_restored(cmroot, name))
    return is_released


def _settle_announced(unit: UnitOfWork, holder: str, *, is_finished: bool) -> bool:
    facts = announcements.take(unit.connection, holder)
    if facts is not None and is_finished:
        unit.points.append(points.dump_ended(facts))
    return facts is not None


class SqlArchiveManifest(Verbs):
    """Implements ``changemanager.manifest.ArchiveManifest``.

    A verb of the name of its module stands last of it: after it the name is the verb's.
    """

    reserve = writes(sql(records.reserve))
    record_archived = writes(_record_archived)
    withdraw = writes(sql(records.withdraw))
    entries = reads(sql(records.entries))
    archived_below = reads(sql(records.archived_below))
    roots = reads(sql(records.roots))
    amend = writes(sql(records.amend))

    claim_purge = writes(purges.claim_purge)
    holds_purge = writes(purges.holds_purge)
    release_purge = writes(_release_purge)
    record_purged = writes(_record_purged)
    live_purges = reads(purges.live_purges)
    forget_purged = writes(sql(purges.forget_purged))

    renew_lease = writes(_renew_lease)
    take_leases = writes(_take_leases)
    end_leases = writes(sql(leases.end_all))
    lease_owner = reads(sql(leases.owner_of))
    forget_leases = writes(sql(leases.forget))

    known_times = reads(times.known_times)
    note_time = writes(times.note_time)
    trust_time = writes(times.trust_time)

    add_intents = writes(sql(intents.add_intents))
    intent = reads(sql(intents.intent))
    advance_intents = writes(sql(intents.advance_intents))
    finish_intents = writes(sql(intents.finish_intents))
    forget_intents = writes(sql(intents.forget_intents))
    intents = reads(sql(intents.intents))

    figures = reads(sql(figures.figures))

    give_up = writes(sql(budgets.give_up))
    held_files = reads(sql(budgets.held_files))

    put_pin = writes(sql(pins.put_pin))
    remove_pin = writes(sql(pins.remove_pin))
    holders = reads(sql(pins.holders))
    store_id = writes(sql(store_id.store_id))
    note_folder = writes(sql(base_folder.note_folder))
    pins = reads(sql(pins.pins))

    announce = heard(writes(sql(announcements.announce)), None)
    announced = heard(reads(sql(announcements.announced)), ())
    settle_announced = heard(writes(_settle_announced), False)
