"""Where dumps may be."""

from __future__ import annotations

from changemanager.location import Resolver, parse_uri
from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.repl.dump.plan import DumpRequest


def require_lasting(source: Metastore, resolve: Resolver, request: DumpRequest) -> None:
    """Raises ReplError where dumps would go with a table: in its directory."""
    root = resolve(request.root)
    real = parse_uri(root.uri).prefix + root.volume.real_path(root.path)
    # Either may lie in a table: the path as it is written, or where its links lead.
    for place in dict.fromkeys((root.uri, real)):
        holder = source.find_holder(place, request.database_name)
        if holder is not None:
            raise ReplError(
                f"dumps below {root.uri} would go with {holder}, in whose directory they are; "
                "set hive.repl.rootdir (or --root) to another directory, outside of the "
                "warehouse"
            )
