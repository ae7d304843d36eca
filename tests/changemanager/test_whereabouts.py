"""Where a file of a dump is, in every case of Hive's getFileInfo and those that it misses."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from changemanager.checksum import ChecksumLayout, composite_checksum, plain_checksum
from changemanager.location import FsspecResolver, Location
from changemanager.recycle import RecycleKind
from changemanager.uri import EncodedUri, archive_name, decode_uri, encode_uri
from changemanager.whereabouts import LocatedFile, Whereabouts, locate
from tests.support.archive_world import ArchiveWorld, context

ROWS = b"rows of a bucket"


def checksum_of(content: bytes) -> str:
    return composite_checksum(io.BytesIO(content))


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    world = ArchiveWorld(tmp_path)
    world.write("t/delta_1_1/bucket_00000", ROWS)
    return world


def named(world: ArchiveWorld, **given: str | None) -> EncodedUri:
    values: dict[str, str | None] = {
        "uri": f"file:{world.warehouse}/t/delta_1_1/bucket_00000",
        "checksum": checksum_of(ROWS),
        "cmroot": f"file:{world.cmroot}",
        "sub_directory": "delta_1_1",
    } | given
    return EncodedUri(**values)  # type: ignore[arg-type]


def look(file: EncodedUri, **given: object) -> LocatedFile:
    return locate(file, FsspecResolver(), **given)  # type: ignore[arg-type]


def recycle(world: ArchiveWorld) -> None:
    world.archive.recycle(
        str(world.warehouse / "t/delta_1_1"), RecycleKind.MOVE,
        is_purge=True, root=str(world.warehouse), context=context(),
    )  # fmt: skip


def test_at_its_source(world: ArchiveWorld) -> None:
    found = look(decode_uri(encode_uri(named(world))))
    assert (found.whereabouts, found.size_bytes, found.reason) == (
        Whereabouts.AT_SOURCE, len(ROWS), "",
    )  # fmt: skip
    assert found.location is not None
    assert b"".join(found.location.chunks()) == ROWS


def test_in_the_archive(world: ArchiveWorld) -> None:
    recycle(world)
    found = look(named(world))
    assert found.whereabouts is Whereabouts.IN_CM
    assert found.location is not None
    assert found.location.name == archive_name("bucket_00000", checksum_of(ROWS))
    assert "is not there" in found.reason


def test_a_source_with_other_content_means_the_archive(world: ArchiveWorld) -> None:
    recycle(world)
    world.write("t/delta_1_1/bucket_00000", b"Rows of a bucket")
    found = look(named(world))
    assert found.whereabouts is Whereabouts.IN_CM
    assert "has other content" in found.reason


def test_nowhere_says_both_places(world: ArchiveWorld) -> None:
    recycle(world)
    (only,) = world.cmroot.iterdir()
    only.unlink()
    found = look(named(world))
    assert (found.whereabouts, found.location) == (Whereabouts.MISSING, None)
    assert found.reason == (
        f"file:{world.warehouse}/t/delta_1_1/bucket_00000 is not there; file:{only} is not there"
    )


def test_a_damaged_archive_is_no_archive(world: ArchiveWorld) -> None:
    recycle(world)
    (only,) = world.cmroot.iterdir()
    only.write_bytes(b"Rows of a bucket")
    assert look(named(world)).whereabouts is Whereabouts.MISSING
    assert look(named(world), is_content_checked=False).whereabouts is Whereabouts.IN_CM


def test_without_a_checksum_only_the_source_counts(world: ArchiveWorld) -> None:
    file = named(world, checksum=None)
    assert look(file).whereabouts is Whereabouts.AT_SOURCE
    recycle(world)
    assert look(file).whereabouts is Whereabouts.MISSING


def test_without_a_cmroot(world: ArchiveWorld) -> None:
    recycle(world)
    assert look(named(world, cmroot=None)).whereabouts is Whereabouts.MISSING


def test_checksums_of_other_clusters(world: ArchiveWorld) -> None:
    """A dump of a cluster with small blocks, or in COMPOSITE_CRC mode, is checked all the same."""
    small = composite_checksum(io.BytesIO(ROWS), ChecksumLayout(crc_bytes=4, block_bytes=8))
    for checksum in (small, plain_checksum(io.BytesIO(ROWS))):
        assert look(named(world, checksum=checksum)).whereabouts is Whereabouts.AT_SOURCE
        assert look(named(world, checksum=checksum[:-1] + "x")).whereabouts is Whereabouts.MISSING


@pytest.mark.parametrize(
    "given",
    [
        {"checksum": "null"},
        {"checksum": "../../etc/passwd"},
        {"cmroot": "relative"},
        {"cmroot": "/cm/../.."},
        {"uri": "nope://x/y"},
        {"uri": "relative/x"},
    ],
)
def test_a_line_that_makes_no_sense_is_missing_not_an_error(
    world: ArchiveWorld, given: dict[str, str]
) -> None:
    file = named(world, **{"uri": f"file:{world.warehouse}/t/gone"} | given)
    found = look(file)
    assert found.whereabouts is Whereabouts.MISSING
    assert found.reason


def test_a_directory_is_no_file(world: ArchiveWorld) -> None:
    file = named(world, uri=f"file:{world.warehouse}/t/delta_1_1")
    assert "is no file" in look(file).reason


def test_the_limit_of_names_is_the_archives(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, name_length_max=100)
    base = "y" * 120
    world.write(f"t/delta_1_1/{base}", ROWS)
    recycle(world)
    file = named(world, uri=f"file:{world.warehouse}/t/delta_1_1/{base}")
    assert look(file, name_length_max=100).whereabouts is Whereabouts.IN_CM
    assert look(file).whereabouts is Whereabouts.MISSING


def test_a_place_that_cannot_be_looked_at_is_not_taken_for_empty(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = named(world, uri=f"file:{world.warehouse}/t/gone")
    assert look(gone).is_unreadable is False

    def refuse(place: Location) -> None:
        raise PermissionError(13, "Permission denied", place.uri)

    monkeypatch.setattr(Location, "status", refuse)
    refused = look(gone)
    assert (refused.whereabouts, refused.is_unreadable) == (Whereabouts.MISSING, True)
    assert "cannot be read" in refused.reason
