"""Copies of a few files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from changemanager.location import FsspecResolver, Location
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import Copier, CopyGroup
from hms_bridge.repl.load.file_copy import CopyReport


def copy_below(copier: Copier, files: tuple[DumpedFile, ...], root: Location) -> CopyReport:
    """Copy files below one directory."""
    return copier.copy([CopyGroup(places=((files, root),))])


def group_of(
    folder: Path, sources: Sequence[Path], directory: str, publish: Callable[[], None]
) -> CopyGroup:
    """Files of one ACID directory, with their checksums, on the way to ``folder``/target."""
    resolve = FsspecResolver()
    files = tuple(
        DumpedFile(
            uri=f"file:{path}",
            checksum=resolve(f"file:{path}").checksum(),
            cmroot=None,
            sub_directory=directory,
            source_directory=directory,
        )
        for path in sources
    )
    return CopyGroup(places=((files, resolve(f"file:{folder}/target")),), publish=publish)
