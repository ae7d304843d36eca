"""Others at the archive and at dumps: who recycles a file again, and who damages a dump."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from hms_bridge.repl.format.layout import DUMP_MANIFEST
from tests.simulation.daemons import Daemons
from tests.simulation.disk import Directory, File
from tests.simulation.statements import NotTodayError

_MARK = "_finished_dump"
_MARKS = ("_finished", "_dumpmetadata")


class Meddlers(Daemons):
    """Each a method that an actor runs to its end."""

    def touch_archive(self, dice: random.Random) -> None:
        """A Hive archives a content that is there: the file's retention begins anew
        (ReplChangeManager.recycle)."""
        disk, clock = self.cluster.disk, self.cluster.clock
        archive = disk.directory(self.cluster.source.cm_root.removeprefix("file:"))
        found = sorted(name for name, node in archive.names.items() if isinstance(node, File))
        found = [name for name in found if not name.startswith(".")]
        for name in dice.sample(found, min(3, len(found))):
            with self.cluster.scheduler.atomic():
                file = archive.names.get(name)
                if isinstance(file, File):
                    file.mtime_ms = clock.now_ms()
                    self.cluster.ages.renew(file, clock.steady_ms())
            self.cluster.scheduler.point("touches", changes=True)

    def load_forged(self, dice: random.Random) -> None:
        """A dump whose texts somebody changed, and its manifest with them, or not. What a load
        says that it has loaded is asked for as always. In the end it is copied again."""
        dumps = [one for one in self.cluster.dumps() if not self.cluster.is_loaded(one)]
        if not dumps:
            raise NotTodayError("no dump")
        with self._forged(f"{dumps[-1].removeprefix('file:')}/hive", dice):
            self.load(dice)

    @contextmanager
    def _forged(self, root: str, dice: random.Random) -> Iterator[None]:
        disk = self.cluster.disk
        texts = [
            path
            for path, _ in disk.files(root)
            if not path.rpartition("/")[2].startswith(_MARKS) and DUMP_MANIFEST not in path
        ]
        if not texts:
            raise NotTodayError("nothing to change")
        changed = [dice.choice(sorted(texts))]
        if dice.random() < 0.7:
            changed.append(DUMP_MANIFEST)
            changed += [_MARK] * (dice.random() < 0.7)
        taken: list[tuple[Directory, str, File]] = []
        for path in changed:
            above = disk.directory(f"{root}/{path}".rpartition("/")[0])
            name = path.rpartition("/")[2]
            file = above.names.get(name)
            if isinstance(file, File):
                taken.append((above, name, file))
                _put(above, name, _forged_text(name, file, dice))
        disk.version += 1
        try:
            yield
        finally:
            for above, name, file in taken:
                _put(above, name, file)
            disk.version += 1


def _forged_text(name: str, file: File, dice: random.Random) -> File | None:
    """The manifest is not there, and its mark empty, as Hive's is; others lack their last line, or
    are not there."""
    if name == DUMP_MANIFEST:
        return None
    if name == _MARK:
        return File(b"", file.mtime_ms, durable=b"")
    lines = file.data.splitlines(keepends=True)
    if not lines or dice.random() < 0.5:
        return None
    data = b"".join(lines[:-1])
    return File(data, file.mtime_ms, durable=data)


def _put(above: Directory, name: str, file: File | None) -> None:
    for names in (above.names, above.durable):
        names.pop(name, None)
        if file is not None:
            names[name] = file
