"""A copied file is the one that the dump names, or the load stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.errors import ReplError
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import Copier
from tests.support.copying import copy_below

DELTA = "delta_0000001_0000001_0000"


@pytest.mark.parametrize("has_checksum", [True, False])
def test_other_bytes_under_the_name_of_a_file_stop_the_load(
    tmp_path: Path, has_checksum: bool
) -> None:
    source = tmp_path / "source" / DELTA / "bucket_00000"
    target = tmp_path / "target" / DELTA / "bucket_00000"
    for path in (source, target):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"the source's rows")
    resolve = FsspecResolver()
    file = DumpedFile(
        uri=f"file:{source}",
        checksum=resolve(f"file:{source}").checksum() if has_checksum else None,
        cmroot=None,
        sub_directory=DELTA,
        source_directory=DELTA,
    )
    copier, root = Copier(resolve), resolve(f"file:{tmp_path}/target")
    assert copy_below(copier, (file,), root).kept == 1
    target.write_bytes(b"somebody's rows..")
    with pytest.raises(ReplError, match="is there with other content"):
        copy_below(copier, (file,), root)
    assert target.read_bytes() == b"somebody's rows.."
