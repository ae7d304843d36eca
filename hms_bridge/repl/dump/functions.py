"""Functions in a dump: what they need is named like data files (Hive: FunctionSerializer).

A function without a jar comes along, too: Hive leaves it out (docs/hive/replication.md
§28), and the replica's queries would miss it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from changemanager.errors import ChangeManagerError
from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver, parse_uri
from changemanager.uri import EncodedUri, encode_uri
from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.function import Function, Resource
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.object_metadata import FunctionMetadata
from hms_bridge.repl.lookup import if_there
from hms_bridge.wire.convert_function import function_to_struct
from hms_bridge.wire.object_json import struct_to_json

_ALWAYS_NAMED = "hdfs"
"""The one scheme whose files Hive copies: of another it takes a reference for a file's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedFunction:
    """A function as a dump has it, and the files that it names."""

    function: Function
    files: tuple[EncodedUri, ...]

    def metadata(self, event_id: EventId) -> str:
        """The text of its file, at an event."""
        text = struct_to_json(function_to_struct(self.function))
        return FunctionMetadata(last_event_id=event_id, function=text).format()


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionFiles:
    """Finds what functions need. ``cm_root`` None: without checksums."""

    resolve: Resolver
    cm_root: str | None

    def named(self, function: Function) -> NamedFunction:
        """A function with references to its files. Raises ReplError for one that is not there."""
        resources: list[Resource] = []
        files: list[EncodedUri] = []
        for resource in function.resources:
            file = self._reference(function, resource.uri)
            if file is not None:
                files.append(file)
            uri = resource.uri if file is None else encode_uri(file)
            resources.append(replace(resource, uri=uri))
        return NamedFunction(
            function=replace(function, resources=tuple(resources)), files=tuple(files)
        )

    def _reference(self, function: Function, uri: str) -> EncodedUri | None:
        """None for what stays as it is: on no file system, or on one that Hive does not copy from
        and that has no checksums to know a copy by."""
        try:
            location = self.resolve(uri)
            if self.cm_root is None and parse_uri(uri).scheme != _ALWAYS_NAMED:
                return None
        except ChangeManagerError:
            return None
        return EncodedUri(
            uri=location.uri, checksum=self._checksum(function, location), cmroot=self.cm_root
        )

    def _checksum(self, function: Function, location: Location) -> str | None:
        """A client names the file: what is none (a pipe, a device) could be read for ever."""
        why = "is gone: bring it back"
        try:
            status = location.status()
            if status is not None and status.kind is FileKind.FILE:
                return None if self.cm_root is None else location.checksum()
            if status is not None:
                why = "is no plain file: put one there"
        except FileNotFoundError:
            pass
        except OSError as error:
            why = f"cannot be read ({error}): see to that"
        name = f"{function.database_name}.{function.name}"
        raise ReplError(
            f"{location.uri}, which function {name} needs, {why}, or drop the function ('sql -e "
            f'"DROP FUNCTION {name}"\'), then dump again'
        )


def write_functions(
    source: Metastore,
    texts: NotedTexts,
    database: str,
    files: FunctionFiles,
    event_id: EventId,
) -> list[EncodedUri]:
    """All functions of a database; the files that they name."""
    named = [files.named(function) for function in source.get_functions(database)]
    for dumped in named:
        path = texts.paths.function_metadata(database, dumped.function.name)
        texts.write({path: dumped.metadata(event_id)})
    return [file for dumped in named for file in dumped.files]


def created_function(
    source: Metastore, files: FunctionFiles | None, function: Function
) -> NamedFunction | None:
    """The function of a CREATE FUNCTION; None for one that was dropped since, with its files.

    ``files`` None: its files are not looked at. Raises ReplError for a file that is gone though the
    function is not.
    """
    if files is None:
        return NamedFunction(function=function, files=())
    try:
        return files.named(function)
    except ReplError:
        now = if_there(source.get_function, function.database_name, function.name)
        if now is not None and _uris(now) == _uris(function):
            raise
        return None


def _uris(function: Function) -> list[str]:
    return [resource.uri for resource in function.resources]
