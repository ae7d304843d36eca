"""A file gets a second place, whole or not at all, and never in the place of another file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from changemanager.checksum import PlainSum, plain_checksum, running_like
from changemanager.durable import settle_file
from changemanager.errors import ChangeManagerError, ChecksumMismatchError
from changemanager.filesystem.permissions import Permissions
from changemanager.filesystem.volume import Placement
from changemanager.location import Location

PART_PREFIX = ".cm-part-"
"""Begins the name of a copy that is not finished; such a file is never the only one."""


def give_new_name(
    source: Location,
    target: Location,
    checksum: str,
    new_token: Callable[[], str],
    directories: Iterable[Permissions],
) -> Placement:
    """Bring a file to another place in the cheapest safe way; the source may or may not be gone.

    One step where the file system has one, else a verified copy. The bytes are on the disk when
    this returns (the directory of the target is not synced). The file gives up what the
    ``directories`` above the source keep from others (`Permissions.through`) before it leaves them;
    where this process may not take it, a copy lacks it. FileExistsError if the target is there;
    ChecksumMismatchError if a copy went wrong.
    """
    volume = source.volume
    if volume is target.volume and _narrow(source, directories):
        settle_file(volume, source.path)
        placement = volume.place(source.path, target.path)
        if placement is Placement.COPIED:
            _require_checksum(target, checksum)
        if placement is not Placement.REFUSED:
            return placement
    copy_verified(source, target, checksum, new_token, directories)
    return Placement.COPIED


def _narrow(file: Location, directories: Iterable[Permissions]) -> bool:
    """Take from a file what those directories do not let through; whether it has no more than that
    now. Not if its file system refuses."""
    own = file.volume.permissions(file.path)
    readers = None if own is None else own.through(directories)
    if readers is not None and readers != own:
        try:
            file.volume.set_mode(file.path, readers.mode)
        except OSError:
            return False
    return True


def copy_verified(
    source: Location,
    target: Location,
    checksum: str | None,
    new_token: Callable[[], str],
    directories: Iterable[Permissions],
    on_read: Callable[[int], None] = lambda _: None,
) -> None:
    """Copy through an unfinished file, which gets its name once its bytes are right.

    The source is read once: its bytes are summed on the way, and what was written is compared with
    what was read. Without a ``checksum`` the source must look the same before and after. Owner,
    group and mode come along as far as this process may give them (``Volume.write_new``), and as
    the ``directories`` above the file let others through (``Permissions.through``).
    ``on_read`` is given how many bytes were read, piece by piece; what it raises stops the copy.

    FileExistsError if the target is there; ChecksumMismatchError if the source has other bytes
    than the checksum says, or the copy went wrong.
    """
    part = target.parent.child(PART_PREFIX + new_token())
    volume = part.volume
    own = source.volume.permissions(source.path)
    like = None if own is None else own.through(directories)
    before = None if checksum is not None else source.status()
    reading = _SummedReading(source, checksum, on_read)
    try:
        volume.write_new(part.path, reading, like)
        reading.require(checksum)
        if before is not None and source.status() != before:
            raise _changed(source, "it changed while it was read", None, reading.plain)
        _require_written(part, reading, checksum)
        placement = volume.place(part.path, target.path)
    except (OSError, ChangeManagerError):
        with suppress(OSError):
            volume.remove_file(part.path)
        raise
    if placement is not Placement.MOVED:
        volume.remove_file(part.path)


class _SummedReading:
    """The chunks of a file, summed as they are read: as its checksum is, and cheaply, for the
    comparison with what was written."""

    def __init__(
        self, source: Location, checksum: str | None, on_read: Callable[[int], None]
    ) -> None:
        self._source = source
        self._on_read = on_read
        self._plain = PlainSum()
        is_plain = checksum is None or len(checksum) == len(self._plain.hexdigest())
        self._like = None if checksum is None or is_plain else running_like(checksum)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._source.chunks():
            self._on_read(len(chunk))
            self._plain.update(chunk)
            if self._like is not None:
                self._like.update(chunk)
            yield chunk

    @property
    def plain(self) -> str:
        """One CRC32C over all bytes."""
        return self._plain.hexdigest()

    def require(self, checksum: str | None) -> None:
        """Raises ChecksumMismatchError unless what was read is what it should be."""
        if checksum is None:
            return
        found = self.plain if self._like is None else self._like.hexdigest()
        if found != checksum:
            raise _changed(self._source, f"checksum {found}, not {checksum}", checksum, found)


def _require_written(part: Location, reading: _SummedReading, checksum: str | None) -> None:
    """Raises ChecksumMismatchError unless the file has the bytes that were read. A file system that
    sums what it stores is asked for that; elsewhere the new file is read back."""
    volume = part.volume
    has_own = checksum is not None and volume.capabilities.has_native_checksum
    if has_own and volume.native_checksum(part.path) == checksum:
        return
    with volume.open_input(part.path) as stream:
        found = plain_checksum(stream)
    if found != reading.plain:
        raise _copied_wrongly(part, reading.plain, found)


def _changed(source: Location, why: str, expected: str | None, found: str) -> ChecksumMismatchError:
    return ChecksumMismatchError(
        f"{source.uri} has other bytes than it should ({why}); nothing was copied: try again",
        path=source.uri,
        expected=expected or "",
        found=found,
    )


def _copied_wrongly(written: Location, expected: str, found: str) -> ChecksumMismatchError:
    return ChecksumMismatchError(
        f"{written.uri} does not have the checksum of its source ({found}, not {expected}); "
        "the copy was removed, the source is in its place: try again",
        path=written.uri,
        expected=expected,
        found=found,
    )


def _require_checksum(written: Location, checksum: str) -> None:
    """The copy that was just made is whole; a damaged one is removed."""
    found = written.checksum_like(checksum)
    if found != checksum:
        written.volume.remove_file(written.path)
        raise _copied_wrongly(written, checksum, found)
