"""Files as clients of Hive's kind write them: where their plan says, told to nobody."""

from __future__ import annotations

from collections.abc import Callable

from changemanager.filesystem.volume import Volume
from hms_bridge.acid.names import DirectoryName
from hms_bridge.directories.staging import discard, finish, stage_directory
from hms_bridge.rows.writer import BucketWriters, DeltaTarget


def write_bucket(
    volume: Volume,
    root: str,
    name: DirectoryName,
    target: DeltaTarget,
    token: str,
    add: Callable[[BucketWriters], None],
) -> str:
    """A directory of one file; the file's path. A failure leaves nothing, a death what there is."""
    staged = stage_directory(volume, root, name, token)
    writers = BucketWriters(volume, staged.path, target)
    try:
        add(writers)
        (written,) = writers.close()
        finish(volume, staged)
    except BaseException:
        writers.abandon()
        discard(volume, staged)
        raise
    return f"{staged.final_path}/{written.path.rpartition('/')[2]}"
