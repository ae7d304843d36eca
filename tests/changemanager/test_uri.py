"""File references and archive names, as Hive writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changemanager.errors import EncodedUriError
from changemanager.uri import (
    ArchiveName,
    EncodedUri,
    archive_name,
    decode_uri,
    encode_uri,
    join_uris,
    parse_archive_name,
    split_uris,
)

CHECKSUM = "0000020000000000000000009b921ebadf20d9450b951aafdacb7f0d"
HIVES_LINE = (
    "hdfs://localhost:9280/warehouse/managed/src.db/t_part/p=a%2Fb c%23d/"
    f"delta_0000010_0000010_0000/bucket_00000_0#{CHECKSUM}#hdfs://localhost:9280/cmroot"
    "#delta_0000010_0000010_0000"
)


def test_a_line_of_hive_is_read_and_written_the_same() -> None:
    file = decode_uri(HIVES_LINE)
    assert file.base_name == "bucket_00000_0"
    assert file.checksum == CHECKSUM
    assert file.cmroot == "hdfs://localhost:9280/cmroot"
    assert file.sub_directory == "delta_0000010_0000010_0000"
    assert encode_uri(file) == HIVES_LINE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/b", EncodedUri(uri="/a/b")),
        ("/a/b###", EncodedUri(uri="/a/b")),
        ("/a/b###d_1", EncodedUri(uri="/a/b", sub_directory="d_1")),
        ("/a/b#c", EncodedUri(uri="/a/b", checksum="c")),
        ("/a/b#c#/cm", EncodedUri(uri="/a/b", checksum="c", cmroot="/cm")),
        ("/a/b#c#/cm#", EncodedUri(uri="/a/b", checksum="c", cmroot="/cm")),
        ("/a/b##/cm#d", EncodedUri(uri="/a/b", cmroot="/cm", sub_directory="d")),
        ("/a/b#c#/cm#d####", EncodedUri(uri="/a/b", checksum="c", cmroot="/cm", sub_directory="d")),
        ("/a/b###d\r\n", EncodedUri(uri="/a/b", sub_directory="d")),
    ],
)
def test_reading(text: str, expected: EncodedUri) -> None:
    assert decode_uri(text) == expected


@pytest.mark.parametrize(
    "text", ["", "###", "#c#d", "/a/b#c#/cm#d#e", "/a###../x", "/a###d/../../x", "/a###/etc"]
)
def test_what_hive_would_guess_at_is_refused(text: str) -> None:
    with pytest.raises(EncodedUriError):
        decode_uri(text)


@pytest.mark.parametrize(
    "file",
    [
        EncodedUri(uri="/a#b"),
        EncodedUri(uri=""),
        EncodedUri(uri="/a", checksum="c", cmroot="/c#m"),
        EncodedUri(uri="/a", sub_directory="d#e"),
        EncodedUri(uri="/a\nb"),
    ],
)
def test_what_cannot_be_named_is_refused(file: EncodedUri) -> None:
    with pytest.raises(EncodedUriError):
        encode_uri(file)


@pytest.mark.parametrize(
    "file",
    [EncodedUri(uri="/a", checksum="c"), EncodedUri(uri="/a", cmroot="/cm"), EncodedUri(uri="/a")],
)
def test_checksum_and_cmroot_are_written_together_or_not_at_all(file: EncodedUri) -> None:
    assert encode_uri(file) == "/a###"


def test_a_checksum_of_a_file_system_without_any() -> None:
    line = "/a##/cm#d"  # as Hive 4.2 logs files on a local file system
    assert encode_uri(decode_uri(line)) == "/a###d"
    assert encode_uri(EncodedUri(uri="/a", checksum="", cmroot="/cm", sub_directory="d")) == line


PATH = st.text(st.characters(exclude_characters="#]\r\n\0", codec="utf-8"), min_size=1).map(
    lambda text: "/" + text.strip("/ ")
)


@given(
    PATH,
    st.none() | st.tuples(st.just(CHECKSUM), PATH),
    st.none() | st.sampled_from(["delta_1_1", "p=x y/base_5_v9"]),
)
def test_round_trip(uri: str, archived: tuple[str, str] | None, sub_directory: str | None) -> None:
    checksum, cmroot = archived or (None, None)
    file = EncodedUri(uri=uri, checksum=checksum, cmroot=cmroot, sub_directory=sub_directory)
    assert decode_uri(encode_uri(file)) == file
    assert encode_uri(file).count("#") == 3
    assert split_uris(join_uris([encode_uri(file)] * 2)) == (encode_uri(file),) * 2


def test_lists_of_write_events() -> None:
    assert split_uris("a###x ] b###y]c###") == ("a###x", "b###y", "c###")
    assert split_uris("  ") == ()
    with pytest.raises(EncodedUriError, match="']'"):
        join_uris(["/a]b###"])


def test_names_in_the_archive() -> None:
    assert archive_name("bucket_00000", CHECKSUM) == f"bucket_00000_{CHECKSUM}"
    assert parse_archive_name(f"bucket_00000_{CHECKSUM}") == ArchiveName(
        base_name="bucket_00000", checksum=CHECKSUM
    )
    assert parse_archive_name("myup.jar_0a1b2c3d") == ArchiveName(
        base_name="myup.jar", checksum="0a1b2c3d"
    )
    assert parse_archive_name("bucket_00000_0_null") == ArchiveName(
        base_name="bucket_00000_0", checksum=None
    )


@pytest.mark.parametrize(
    "name", ["bucket_00000", CHECKSUM, f"_{CHECKSUM}", "notes.txt", f".x_{CHECKSUM}", "x_NULL", ""]
)
def test_names_that_no_change_manager_makes(name: str) -> None:
    assert parse_archive_name(name) is None


def test_a_long_name_is_cut_to_one_less_than_the_limit() -> None:
    just = "x" * (255 - 57)
    assert archive_name(just, CHECKSUM) == f"{just}_{CHECKSUM}"
    cut = archive_name(just + "x", CHECKSUM)
    assert len(cut) == 254
    assert f"{just}x_{CHECKSUM}".startswith(cut)
    assert len(archive_name("y" * 400, CHECKSUM)) == 254
    assert len(archive_name("z" * 60, CHECKSUM, 100)) == 99


def test_lengths_are_counted_as_java_does() -> None:
    two_units = "\U0001f3b2"
    name = two_units * 99 + "x"
    assert archive_name(name, CHECKSUM).startswith(name)
    cut = archive_name(two_units * 150, CHECKSUM)
    assert cut == two_units * 127
