"""The texts of a dump, hashed as they are written, and checked against it as they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from changemanager.location import Resolver
from hms_bridge.errors import DumpIncompleteError, ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.manifest import DumpManifest, FinishMark, text_digest
from hms_bridge.repl.format.texts import (
    child_directories,
    make_dump_directory,
    read_text,
    read_text_if_there,
    write_fresh,
    write_text,
)

_MARK_BYTES_MAX = 1 << 16


class NotedTexts:
    """Writes the texts of a new dump, each once, and remembers their hashes. ``paths``: those of
    the dump; ``resolve`` reaches them, and its source's files.

    Several threads may write at the same time.
    """

    def __init__(self, resolve: Resolver, paths: DumpPaths) -> None:
        self.resolve = resolve
        self.paths = paths
        self._prefix = f"{paths.hive}/"
        self._digests: dict[str, str] = {}

    def write(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Write texts by path; the directories above them are made. Returns their hashes, by their
        paths below ``hive/``."""
        places = {self.resolve(path): text for path, text in texts.items()}
        for directory in dict.fromkeys(place.parent for place in places):
            make_dump_directory(directory)
        for place, text in places.items():
            write_fresh(place, text)
        digests = {
            path.removeprefix(self._prefix): text_digest(text) for path, text in texts.items()
        }
        self._digests.update(digests)
        return digests

    def adopt(self, digests: Mapping[str, str]) -> None:
        """Texts that are written already, by their paths below ``hive/``."""
        self._digests.update(digests)

    def write_metadata(
        self,
        kind: DumpType,
        scope: ReplScope,
        cm_root: str | None,
        first: EventId,
        last: EventId,
        *,
        is_scope_modified: bool = False,
    ) -> None:
        """What the dump holds, at its top. ``is_scope_modified``: the replica has another scope,
        so a Hive that loads the dump drops what is not of this one."""
        metadata = DumpMetadata(
            type=kind.value,
            from_event_id=first,
            to_event_id=last,
            cm_root=cm_root,
            is_scope_modified=is_scope_modified,
            scope=scope,
        )
        self.write({self.paths.metadata: metadata.format()})

    def manifest(self, reference_count: int) -> str:
        """Write the manifest of all that was written; its hash."""
        text = DumpManifest(digests=self._digests, reference_count=reference_count).format()
        write_text(self.resolve(self.paths.manifest), text)
        return text_digest(text)


class CheckedTexts:
    """Reads the texts of a finished dump. Each must be as its manifest says, if it has one.

    Raises DumpIncompleteError for what is missing, ReplError for what is other than it was.
    """

    def __init__(self, resolve: Resolver, paths: DumpPaths, bytes_max: int) -> None:
        self._resolve = resolve
        self._prefix = f"{paths.hive}/"
        self._bytes_max = bytes_max
        marker = read_text_if_there(resolve(paths.finished_dump), _MARK_BYTES_MAX)
        if marker is None:
            raise DumpIncompleteError(
                f"{paths.finished_dump} is missing: the dump is not finished; let it finish or "
                "dump again"
            )
        mark = FinishMark.parse(marker, paths.finished_dump)
        self.manifest = self._manifest(paths, mark)
        self._directories = _directories_of(self.manifest.digests if self.manifest else ())

    def _manifest(self, paths: DumpPaths, mark: FinishMark) -> DumpManifest | None:
        text = read_text_if_there(self._resolve(paths.manifest), self._bytes_max)
        if text is None:
            if mark.manifest_digest is None:
                return None
            raise DumpIncompleteError(
                f"{paths.manifest} is missing, which the dump had when it was finished; copy the "
                "dump again"
            )
        if mark.manifest_digest not in (None, text_digest(text)):
            raise ReplError(
                f"{paths.manifest} is not the one that {paths.finished_dump} names; copy the dump "
                "again"
            )
        return DumpManifest.parse(text, paths.manifest)

    def read(self, path: str) -> str:
        """A text that must be there."""
        text = read_text(self._resolve(path), self._bytes_max)
        self._check(path, text)
        return text

    def read_if_there(self, path: str) -> str | None:
        """A text; None where the dump has none."""
        text = read_text_if_there(self._resolve(path), self._bytes_max)
        self._check(path, text)
        return text

    def directories(self, path: str) -> tuple[str, ...]:
        """Names of the directories in a directory, sorted. None may be missing: where the dump is
        removed meanwhile, nobody would ask for texts of one that is gone already."""
        directories = child_directories(self._resolve(path))
        gone = self._directories.get(path.removeprefix(self._prefix), set()).difference(directories)
        if gone:
            raise DumpIncompleteError(
                f"{path}/{min(gone)} is missing, which the dump had when it was finished: it is "
                "being removed, or a copy lost it"
            )
        return directories

    def check_all(self) -> None:
        """Read every text that the manifest names: none may be missing, cut or changed."""
        if self.manifest is not None:
            with FilePool() as pool:
                pool.all(lambda name: self.read(self._prefix + name), self.manifest.digests)

    def _check(self, path: str, text: str | None) -> None:
        if self.manifest is None:
            return
        noted = self.manifest.digests.get(path.removeprefix(self._prefix))
        if text is None and noted is not None:
            raise DumpIncompleteError(
                f"{path} is missing, which the dump had when it was finished; copy the dump again"
            )
        if text is not None and noted is None:
            raise ReplError(
                f"{path} is not of this dump: its manifest does not name it; copy the dump again "
                "to an empty directory"
            )
        if text is not None and text_digest(text) != noted:
            raise ReplError(
                f"{path} is not as it was when the dump was finished: cut or changed; copy the "
                "dump again"
            )


def _directories_of(texts: Iterable[str]) -> Mapping[str, set[str]]:
    """Names of the directories that texts are in, by the directory above."""
    directories: dict[str, set[str]] = defaultdict(set)
    for text in texts:
        above = text.rpartition("/")[0]
        while above:
            above, _, name = above.rpartition("/")
            directories[above].add(name)
    return directories
