"""The positions of event hooks, and what follows them, in the metastore's database."""

from __future__ import annotations

from hms_bridge.backend.work import sql
from hms_bridge.notification import hook_points, hook_positions
from hms_bridge.service.unit_of_work import Verbs, reads, writes


class StoredPositions(Verbs):
    """Implements ``HookPositions``, and what an admin asks and does besides."""

    register = writes(sql(hook_positions.register))
    take = writes(hook_positions.take)
    advance = writes(hook_positions.advance)
    release = writes(sql(hook_positions.release))
    following = reads(sql(hook_points.following))
    newest = reads(sql(hook_points.newest))
    rewind = writes(sql(hook_positions.rewind))
    next_unheard = reads(sql(hook_positions.next_unheard))
    skip = writes(sql(hook_positions.skip))
    forget = writes(sql(hook_positions.forget))
    lags = reads(hook_positions.lags)
