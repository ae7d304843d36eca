"""Who may use a file or directory, and who may use what is made of it.

A copy keeps owner, group and mode of its source as far as this process may give them. It is never
wider than its source with the directories above that one, and never wider than the directory that
it lies in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_OWNER = 0o700
_EVERY = 0o777

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Permissions:
    """``owner`` and ``group`` by name (an id in digits where it has none); ``mode``: the nine bits
    of owner, group and others."""

    owner: str
    group: str
    mode: int

    @property
    def of_strangers(self) -> int:
        """The mode for another group: it may do what both the group and all others may.

        0640 becomes 0600, 0644 stays, 0604 becomes 0600.
        """
        shared = self.mode >> 3 & self.mode & 0o7
        return self.mode & _OWNER | shared << 3 | shared

    def of_copy(self, above: Permissions, *, has_group: bool) -> int:
        """The mode of a copy below the directory ``above``. ``has_group``: it has the source's.

        Its owner, who made it, reads it always: the copy is compared with its source.
        """
        mode = self.mode if has_group else self.of_strangers
        return above.narrow(mode) | 0o400

    def through(self, directories: Iterable[Permissions]) -> Permissions:
        """Those of a file that lies below these directories: what its mode gives a group, or all
        others, counts only if each directory lets all of them pass.

        hive:etl 0644 below hive:etl 0750 is 0640; below hive:hadoop 0770, where only some members
        of etl may pass, 0600; below root:root 0755 it stays.
        """
        mode = self.mode
        for directory in directories:
            mode &= directory._passing(self)
        return replace(self, mode=mode)

    def _passing(self, file: Permissions) -> int:
        """The bits of a file that count below this directory. Its owner's do always."""
        # Who is in which group is not known. Of two groups, a member of the file's may be in the
        # directory's or not, and so may all others: both ways must be open. Nor is it known in
        # which group the directory's owner is.
        to_owner = 0 if self.owner == file.owner else 0o100
        to_group, to_others = (0o010, 0o001) if self.group == file.group else (0o011, 0o011)
        bits = _OWNER
        if not (to_owner | to_group) & ~self.mode:
            bits |= 0o070
        if not (to_owner | to_others) & ~self.mode:
            bits |= 0o007
        return bits

    def narrow(self, mode: int) -> int:
        """What is left of a mode in this directory. The owner's bits are its own to give."""
        return mode & (self.mode | _OWNER)

    @property
    def keeps_others_out(self) -> bool:
        """Whether all who are neither owner nor of the group may do nothing."""
        return not self.mode & 0o7


def common(inputs: Sequence[Permissions]) -> Permissions | None:
    """Of a file that is made of several: who may read each of them may read it. None of none.

    alice:g 0640 and alice:g 0644 become alice:g 0640. Of two owners or groups none is kept (an
    empty name): of alice:g 0640 and bob:h 0644 nothing is left but for who makes the file.
    """
    if not inputs:
        return None
    owners, groups = {file.owner for file in inputs}, {file.group for file in inputs}
    is_of_one_group = len(groups) == 1
    mode = _EVERY
    for file in inputs:
        mode &= file.mode if is_of_one_group else file.of_strangers
    return Permissions(
        owner=owners.pop() if len(owners) == 1 else "",
        group=groups.pop() if is_of_one_group else "",
        mode=mode,
    )


class RefusedOwners:
    """The owners and groups to which one file system lets this process give no files; each is
    tried once, and said once."""

    def __init__(self) -> None:
        self._names: set[tuple[str, str]] = set()

    def is_known(self, kind: str, name: str) -> bool:
        """Whether it was refused before. ``kind``: owner or group."""
        return (kind, name) in self._names

    def add(self, kind: str, name: str) -> None:
        """It was refused."""
        self._names.add((kind, name))

    def say(self, path: str, source: Permissions, mode: int) -> None:
        """A line, once for a group: its files get copies that it may not read any more."""
        if mode == source.mode or not source.group or self.is_known("said", source.group):
            return
        self.add("said", source.group)
        _LOG.warning(
            "%s: this process cannot give files to the group %s, so copies of files of mode %04o "
            "get mode %04o; run it as a member of that group, which must exist here, or as root "
            "(HDFS: the superuser)",
            path,
            source.group,
            source.mode,
            mode,
        )
