"""Who may use a copy: the rule by itself, and how each volume carries it out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from changemanager.filesystem.local import LocalVolume
from changemanager.filesystem.permissions import Permissions, common
from changemanager.filesystem.webhdfs import WebHdfsVolume
from tests.support.web_hdfs import NameNode, over_http


def of(text: str) -> Permissions:
    """`alice:g 640`."""
    owner, _, rest = text.partition(":")
    group, _, mode = rest.partition(" ")
    return Permissions(owner=owner, group=group, mode=int(mode, 8))


@pytest.mark.parametrize(
    ("source", "above", "with_group", "without"),
    [
        (0o600, 0o755, 0o600, 0o600),
        (0o640, 0o755, 0o640, 0o600),
        (0o644, 0o755, 0o644, 0o644),
        (0o664, 0o755, 0o644, 0o644),
        (0o664, 0o775, 0o664, 0o644),
        (0o664, 0o770, 0o660, 0o640),
        (0o644, 0o700, 0o600, 0o600),
        (0o604, 0o755, 0o604, 0o600),
        (0o755, 0o750, 0o750, 0o750),
        (0o040, 0o777, 0o440, 0o400),
        (0o444, 0o777, 0o444, 0o444),
    ],
)
def test_of_copy(source: int, above: int, with_group: int, without: int) -> None:
    permissions = Permissions(owner="a", group="g", mode=source)
    directory = Permissions(owner="b", group="h", mode=above)
    for has_group, wanted in ((True, with_group), (False, without)):
        mode = permissions.of_copy(directory, has_group=has_group)
        assert f"{mode:04o}" == f"{wanted:04o}"
        assert mode & ~(source | 0o400) == 0
        assert mode & ~(above | 0o700) == 0


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        ([], None),
        (["a:g 640"], "a:g 640"),
        (["a:g 640", "a:g 644"], "a:g 640"),
        (["a:g 664", "b:g 640"], ":g 640"),
        (["a:g 600", "b:g 600"], ":g 600"),
        (["a:g 640", "a:h 644"], "a: 600"),
        (["a:g 644", "b:h 664"], ": 644"),
    ],
)
def test_common(inputs: list[str], wanted: str | None) -> None:
    assert common([of(text) for text in inputs]) == (None if wanted is None else of(wanted))


@pytest.fixture(params=[0o000, 0o077], ids=["umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(place: Path) -> int:
    return place.stat().st_mode & 0o777


def test_what_is_made_locally(tmp_path: Path, umask: int) -> None:
    volume, above = LocalVolume(), tmp_path / "d"
    above.mkdir()
    above.chmod(0o750)
    volume.make_directory(f"{above}/x/y")
    volume.make_working_directory(f"{above}/w/v")
    volume.make_directory(f"{above}/limited", limit=0o710)
    volume.make_directory(f"{above}/exact", 0o770)
    volume.write_new(f"{above}/f", [b"x"])
    with volume.open_output(f"{above}/p"):
        pass
    for name in ("x", "x/y", "w", "w/v"):
        assert mode_of(above / name) == 0o750 & ~umask
    assert mode_of(above / "limited") == 0o710 & ~umask
    assert mode_of(above / "exact") == 0o770
    assert mode_of(above / "f") == mode_of(above / "p") == 0o640 & ~umask


def test_a_copy_is_closed_before_its_first_byte(tmp_path: Path, umask: int) -> None:
    place = tmp_path / "f"
    seen = []

    def chunks() -> Iterator[bytes]:
        seen.append(mode_of(place))
        yield b"x"
        seen.append(mode_of(place))

    like = LocalVolume().permissions(str(tmp_path))
    assert like is not None
    wanted = Permissions(owner=like.owner, group=like.group, mode=0o600)
    LocalVolume().write_new(str(place), chunks(), wanted)
    assert [*seen, mode_of(place)] == [0o600] * 3
    assert umask in (0o000, 0o077)


class Hdfs:
    """A NameNode, and a volume of a user there."""

    def __init__(self, user: str, *groups: str) -> None:
        self.node = NameNode()
        self.node.groups[user] = set(groups)
        self.volume = WebHdfsVolume(over_http(self.node, user=user))
        self.volume.make_directory("/d", 0o775)

    def copy(self, name: str, like: str) -> str:
        self.volume.write_new(f"/d/{name}", [b"x"], of(like))
        found = self.volume.permissions(f"/d/{name}")
        assert found is not None
        return f"{found.owner}:{found.group} {found.mode:o}"


def test_the_superuser_of_hdfs_gives_copies_away() -> None:
    assert Hdfs("hdfs").copy("f", "alice:etl 640") == "alice:etl 640"


def test_a_member_of_the_group_gives_copies_to_it() -> None:
    hdfs = Hdfs("bridge", "etl")
    assert hdfs.copy("f", "alice:etl 640") == "bridge:etl 640"
    assert hdfs.copy("g", "alice:supergroup 640") == "bridge:supergroup 640"


def test_everybody_else_narrows_and_asks_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hdfs = Hdfs("bridge")
    for name in ("f", "g"):
        assert hdfs.copy(name, "alice:etl 640") == "bridge:supergroup 600"
    assert hdfs.copy("h", "alice:etl 644") == "bridge:supergroup 644"
    assert hdfs.node.calls.count("SETOWNER") == 2, "of an owner, and of a group"
    (said,) = caplog.messages
    assert "cannot give files to the group etl" in said
    assert "0640 get mode 0600" in said


def test_what_is_made_on_hdfs_is_no_wider_than_its_directory() -> None:
    hdfs = Hdfs("bridge")
    hdfs.volume.make_directory("/d/x", 0o750)
    hdfs.volume.write_new("/d/x/f", [b"x"])
    hdfs.volume.make_directory("/d/x/y/z")
    assert {
        path: hdfs.node.nodes[path].permission for path in ("/d/x/f", "/d/x/y", "/d/x/y/z")
    } == {
        "/d/x/f": "640",
        "/d/x/y": "750",
        "/d/x/y/z": "750",
    }
