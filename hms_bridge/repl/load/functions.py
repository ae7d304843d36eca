"""Functions of a replica: the files that a function needs are copied, then it is made.

Hive's place for the copies is `<root>/<database>/<function>/<time>/<file>`
(CreateFunctionHandler.PrimaryToReplicaResourceFunction). Ours has the event in the place of the
time, so that a load that is repeated finds its own copy; a function that is made anew with other
bytes under the same name has another event. Copies of dropped functions stay, as Hive's do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hms_bridge.errors import ReplError
from hms_bridge.model.function import Function, Resource
from hms_bridge.repl.format.reader import DumpedFunction, DumpedResource
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.lookup import if_there


def require_root(functions: Iterable[DumpedFunction], root: str | None) -> None:
    """Raises ReplError where files of functions would have no place."""
    for dumped in functions:
        if root is None and dumped.files:
            raise ReplError(
                f"function {dumped.function.database_name}.{dumped.function.name} comes with "
                f"{dumped.files[0].uri}: say where files of functions go on the target "
                "(hive.repl.replica.functions.root.dir), then load again"
            )


def put_function(replica: Replica, dumped: DumpedFunction) -> None:
    """Make a function, in the place of one that differs. Repeated without harm."""
    database, name = replica.names.target_database, dumped.function.name
    resources = tuple(_on_target(replica, dumped, resource) for resource in dumped.resources)
    wanted = replace(dumped.function, database_name=database, resources=resources)
    there = find_function(replica, name)
    if there is not None and _compared(there) == _compared(wanted):
        return
    if there is not None:
        replica.metastore.drop_function(database, name)
    replica.metastore.create_function(wanted)


def find_function(replica: Replica, name: str) -> Function | None:
    """A function of the target; None if it is not there."""
    return if_there(replica.metastore.get_function, replica.names.target_database, name)


def _on_target(replica: Replica, dumped: DumpedFunction, resource: DumpedResource) -> Resource:
    file, name = resource.file, dumped.function.name
    database = replica.names.target_database
    if file is None:
        replica.add_note(
            f"function {database}.{name} uses {resource.resource.uri} where it is: no copy was made"
        )
        return resource.resource
    directory = (
        f"{replica.names.functions_root}/{database}/{name}/{dumped.last_event_id}"
        if replica.names.functions_root
        else None
    )
    replica.copy((file,), directory, f"function {database}.{name}")
    return replace(resource.resource, uri=replica.resolve(f"{directory}/{file.name}").uri)


def _compared(function: Function) -> tuple[object, ...]:
    return (
        function.class_name,
        function.owner_name,
        function.owner_type,
        function.type,
        function.resources,
    )
