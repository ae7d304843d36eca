"""Opens both sides of a policy, for verbs that dump and load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from hms_bridge.cli.output import say
from hms_bridge.cli.sides import side_settings, side_url, source_side
from hms_bridge.clock import SystemClock
from hms_bridge.model.replication import ReplicationPolicy

if TYPE_CHECKING:
    from hms_bridge.repl.cycles.cycle import OpenCycle


@contextmanager
def open_cycle(policy: ReplicationPolicy, store_url: str, *, is_quick: bool) -> Iterator[OpenCycle]:
    """Both sides of a policy, each with its settings. Raises HmsBridgeError."""
    from hms_bridge.cli.repl_requests import dump_request, load_request
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected
    from hms_bridge.dml.named import find_database
    from hms_bridge.repl.cycles.cycle import OpenCycle
    from hms_bridge.repl.dump.repl_dump import ReplDump
    from hms_bridge.repl.load.repl_load import ReplLoad
    from hms_bridge.repl.pinned_dumps import release_loaded_dumps
    from hms_bridge.repl.pins import given_up_of

    source_settings, target_settings = side_settings(policy.source), side_settings(policy.target)
    at_source, clock = file_systems(source_settings), SystemClock()
    with ExitStack() as stack:
        source, manifest = stack.enter_context(
            source_side(side_url(policy.source, store_url), source_settings)
        )
        target = stack.enter_context(connected(side_url(policy.target, store_url), target_settings))
        find_database(source, policy.source.database)
        yield OpenCycle(
            dumper=ReplDump(
                source, at_source, clock, lambda: str(uuid4()), manifest, on_waiting=say
            ),
            loader=ReplLoad(target, file_systems(target_settings), clock=clock, on_waiting=say),
            dump=dump_request(
                policy.source.database, source_settings, root=policy.root, policy=policy.name
            ),
            load=load_request(
                policy.source.database,
                target_settings,
                target_database=policy.target.database,
                root=policy.root,
                is_quick=is_quick,
            ),
            release=lambda: manifest and release_loaded_dumps(at_source, manifest),
            given_up=lambda: given_up_of(manifest, policy.source.database),
        )
