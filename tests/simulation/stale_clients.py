"""Clients and daemons that have not heard of a change of places, or hear of it too soon."""

from __future__ import annotations

import random

from tests.simulation.cluster import Cluster
from tests.simulation.daemons import Daemons
from tests.simulation.readers import Readers
from tests.simulation.roles import Part, shown
from tests.simulation.statements import NotTodayError

_WRITES = ("insert", "insert", "insert", "change", "overwrite", "truncate")
_DEFINITIONS = ("create", "drop_table", "add_column", "rename_table")
_OF_DAEMONS = ("request", "initiate", "clean", "purge")
_FIRST_ROW = 100_000


class StaleClients:
    """Each a method that an actor runs to its end."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._clients = Readers(cluster, first_row=_FIRST_ROW)
        self._daemons = Daemons(cluster)

    def work_there(self, dice: random.Random) -> None:
        """At the side that takes no writes, or not any more."""
        cluster = self.cluster
        cluster.work_at(cluster.other(cluster.roles.now))
        side = cluster.source
        if not side.has_database():
            raise NotTodayError("no database")
        if not side.story.is_master:
            side.story.model.tables = shown(side)
        works = [*_WRITES, *_OF_DAEMONS]
        if cluster.roles.part(side) is not Part.REPLICA:  # there a load at work lets them pass
            works += _DEFINITIONS
        work = dice.choice(works)
        player = self._daemons if work in _OF_DAEMONS else self._clients
        getattr(player, work)(dice)
