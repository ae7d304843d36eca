"""Points of policies of replication that are late: a step of the housekeeping."""

from __future__ import annotations

from hms_bridge.hooks import points
from hms_bridge.policies import watches
from hms_bridge.service.unit_of_work import UnitOfWork


def tell_late_policies(unit: UnitOfWork) -> None:
    """A point for each, once for each time that it is late."""
    late_after_ms = unit.settings.repl.late_after_ms
    if late_after_ms:
        unit.points += map(points.policy_late, watches.find_late(unit, late_after_ms))
