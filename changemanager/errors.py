"""Every error that the archive of replaced files raises on purpose.

::

    ChangeManagerError
    ├─ ChangeManagerConfigError   a setting is missing, malformed or dangerous
    ├─ LocationError              a path or URI that cannot be understood, an unknown file system
    │  ├─ EncodedUriError         a `file#checksum#cmroot#subdir` text that is ambiguous
    │  └─ OutsideRootsError       a place outside of those that may be read
    ├─ PathNotContainedError      a path that must never be recycled or deleted
    ├─ ArchiveUnwritableError     the cmroot takes no file; every source is still in its place
    ├─ ArchiveCollisionError      the archive name is taken by other content; the source stays
    ├─ ArchiveBusyError           the archived file is being purged at this moment; try again
    ├─ ChecksumMismatchError      bytes are not what their checksum says
    ├─ DirectoryChangedError      a directory is no longer what the plan saw
    ├─ ArchivedFileLostError      a file is neither at its place nor in the archive
    ├─ LeaseLostError             another process took over; nothing more was changed
    ├─ ClockDoubtError            a clock that cannot be believed; nothing was deleted
    ├─ IntentError                an archive-then-delete row is unknown or in another state
    └─ PinError                   nobody of that name pins anything

A message says what went wrong, where, and what to do next.
"""

from __future__ import annotations


class ChangeManagerError(Exception):
    """Root of all errors of this package."""


class ChangeManagerConfigError(ChangeManagerError):
    """A setting is missing, malformed or dangerous."""


class LocationError(ChangeManagerError):
    """A path or URI cannot be understood, or its file system is unknown."""


class EncodedUriError(LocationError):
    """A file URI with checksum, cmroot and sub-directory is ambiguous or malformed."""


class OutsideRootsError(LocationError):
    """A place is outside of those that may be read. ``place``: where it leads, links followed."""

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place


class PathNotContainedError(ChangeManagerError):
    """A path must never be recycled or deleted: a root, the cmroot, or outside its warehouse."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class ArchiveUnwritableError(ChangeManagerError):
    """The cmroot takes no file. Sources are untouched."""

    def __init__(self, message: str, cmroot: str) -> None:
        super().__init__(message)
        self.cmroot = cmroot


class ArchiveCollisionError(ChangeManagerError):
    """The name in the archive is taken by other content. The source is untouched."""

    def __init__(self, message: str, *, source: str, archived: str) -> None:
        super().__init__(message)
        self.source = source
        self.archived = archived


class ArchiveBusyError(ChangeManagerError):
    """Archived files are being purged at this moment; the source is untouched, try again."""

    def __init__(self, message: str, names: tuple[str, ...]) -> None:
        super().__init__(message)
        self.names = names


class ChecksumMismatchError(ChangeManagerError):
    """The bytes of a file are not what their checksum says."""

    def __init__(self, message: str, *, path: str, expected: str, found: str) -> None:
        super().__init__(message)
        self.path = path
        self.expected = expected
        self.found = found


class DirectoryChangedError(ChangeManagerError):
    """A directory is no longer what the plan saw. What the plan did not name was not touched."""

    def __init__(self, message: str, path: str, changes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.changes = changes


class ArchivedFileLostError(ChangeManagerError):
    """Files are neither at their place nor in the archive: someone else took them away."""

    def __init__(self, message: str, missing: tuple[str, ...]) -> None:
        super().__init__(message)
        self.missing = missing


class LeaseLostError(ChangeManagerError):
    """Another process took over what this one was working on. It changed nothing more."""


class ClockDoubtError(ChangeManagerError):
    """The clock cannot be believed, so nothing is deleted for its age."""


class IntentError(ChangeManagerError):
    """An archive-then-delete intent is unknown, or not in the state that a step needs."""


class PinError(ChangeManagerError):
    """Nobody of that name pins anything, or the pin is not for people to release."""
