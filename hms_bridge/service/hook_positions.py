"""The positions of event hooks, and the events that follow them, in the metastore's database."""

from __future__ import annotations

from hms_bridge.backend.work import sql
from hms_bridge.notification import hook_positions
from hms_bridge.service.unit_of_work import Verbs, reads, writes


class StoredPositions(Verbs):
    """Implements ``HookPositions``."""

    register = writes(sql(hook_positions.register))
    take = writes(hook_positions.take)
    advance = writes(hook_positions.advance)
    release = writes(sql(hook_positions.release))
    following = reads(sql(hook_positions.following))
