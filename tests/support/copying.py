"""Copies of a few files."""

from __future__ import annotations

from changemanager.location import Location
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import Copier, CopyGroup
from hms_bridge.repl.load.file_copy import CopyReport


def copy_below(copier: Copier, files: tuple[DumpedFile, ...], root: Location) -> CopyReport:
    """Copy files below one directory."""
    return copier.copy([CopyGroup(places=((files, root),))])
