"""What is free where a file of this machine lies."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """A file system: its device, where it is mounted, and what this user may still write there.
    ``free_files``: inodes; None where a file system has no number of them."""

    device: str
    mount: str
    size_bytes: int
    free_bytes: int
    free_files: int | None


def local_space(path: str) -> Space | None:
    """Of the file system that a path of this machine is in, or will be; None if it does not say."""
    place = Path(path).resolve()
    try:
        while not place.exists():
            place = place.parent
        answer = os.statvfs(place)
        while not place.is_mount():
            place = place.parent
    except OSError:
        return None
    return Space(
        device=_device(str(place)),
        mount=str(place),
        size_bytes=answer.f_blocks * answer.f_frsize,
        free_bytes=answer.f_bavail * answer.f_frsize,
        free_files=answer.f_favail if answer.f_files else None,
    )


def _device(mount: str) -> str:
    """Of what is mounted at a place last, with its type, as ``/dev/sdb1 (ext4)``."""
    device = "the file system"
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return device
    for line in lines:
        source, place, kind, *_ = line.split(" ")
        if place.encode().decode("unicode_escape") == mount:
            device = f"{source} ({kind})"
    return device
