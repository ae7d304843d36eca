"""What a file's mode is worth below its directories: the rule, and how often one is looked at."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from changemanager.directories_above import DirectoriesAbove
from changemanager.filesystem.local import LocalVolume
from changemanager.filesystem.permissions import Permissions
from changemanager.location import FsspecResolver, Location
from tests.changemanager.test_permissions import of


def shown(permissions: Permissions) -> str:
    return f"{permissions.owner}:{permissions.group} {permissions.mode:o}"


@pytest.mark.parametrize(
    ("file", "directories", "wanted"),
    [
        # open to all
        ("u:g 644", [], "u:g 644"),
        ("u:g 644", ["root:root 755"], "u:g 644"),
        ("u:g 644", ["root:root 755", "u:g 711"], "u:g 644"),
        # closed: nobody else reads the file at its source
        ("u:g 644", ["u:g 700"], "u:g 600"),
        ("u:g 644", ["root:root 755", "u:g 755", "root:root 700"], "u:g 600"),
        ("u:g 777", ["u:g 700"], "u:g 700"),
        ("u:g 444", ["u:g 700"], "u:g 400"),
        # one group
        ("u:g 644", ["u:g 750"], "u:g 640"),
        ("u:g 664", ["u:g 770"], "u:g 660"),
        ("u:g 600", ["u:g 770"], "u:g 600"),
        ("u:g 644", ["u:g 755", "u:g 750", "root:root 755"], "u:g 640"),
        # to list a directory is not to pass it, and to pass it is enough
        ("u:g 644", ["u:g 744"], "u:g 600"),
        ("u:g 644", ["u:g 754"], "u:g 640"),
        # the group is kept out, all others are not
        ("u:g 644", ["u:g 705"], "u:g 604"),
        ("u:g 604", ["u:g 755"], "u:g 604"),
        # two groups: who is in which is not known
        ("hive:hive 644", ["hive:hadoop 770"], "hive:hive 600"),
        ("hive:hive 640", ["hive:hadoop 750"], "hive:hive 600"),
        ("hive:hive 644", ["hive:hadoop 705"], "hive:hive 600"),
        ("hive:hive 644", ["hive:hadoop 771"], "hive:hive 644"),
        ("u:g 644", ["u:g 750", "u:h 750"], "u:g 600"),
        # a directory's owner may be in the file's group, or one of all others
        ("u:g 644", ["w:g 055"], "u:g 600"),
        ("u:g 644", ["u:g 055"], "u:g 644"),
        ("u:g 644", ["w:g 711"], "u:g 644"),
        # which nobody may look at
        ("u:g 644", [": 0"], "u:g 600"),
    ],
)
def test_what_counts_of_a_mode(file: str, directories: list[str], wanted: str) -> None:
    assert shown(of(file).through(map(of, directories))) == wanted


class Looked(LocalVolume):
    """A disk that knows which directories were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: Counter[str] = Counter()
        self.refused = ""

    def permissions(self, path: str) -> Permissions | None:
        self.looks[path] += 1
        if path == self.refused:
            raise PermissionError(path)
        return super().permissions(path)


def looked_at(path: Path) -> tuple[Looked, Location]:
    volume = Looked()
    return volume, FsspecResolver(lambda *_: volume)(str(path))


def test_each_directory_of_a_run_is_looked_at_once(tmp_path: Path) -> None:
    volume, place = looked_at(tmp_path)
    above = DirectoriesAbove()
    for name in ("d/1/a", "d/1/b", "d/2/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        above.of(place.child(name))
    parents = [str(level) for level in (tmp_path, *tmp_path.parents)]
    below = [str(tmp_path / name) for name in ("d", "d/1", "d/2")]
    assert volume.looks == Counter(parents + below)


def test_what_is_gone_says_nothing_and_what_is_refused_is_closed(tmp_path: Path) -> None:
    volume, place = looked_at(tmp_path)
    there = DirectoriesAbove().of(place.child("f"))
    assert DirectoriesAbove().of(place.child("gone/d/f")) == there
    volume.refused = str(tmp_path)
    assert Permissions(owner="", group="", mode=0) in DirectoriesAbove().of(place.child("f"))


def test_a_file_lies_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "closed" / "t").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o710)
    (tmp_path / "t").symlink_to(tmp_path / "closed" / "t")
    _, place = looked_at(tmp_path)
    found = DirectoriesAbove().of(place.child("t/f"))
    assert found == DirectoriesAbove().of(place.child("closed/t/f"))
    assert 0o710 in {directory.mode for directory in found}


def test_an_object_has_no_directories() -> None:
    assert DirectoriesAbove().of(FsspecResolver()("memory://wh/t/f")) == frozenset()


def test_what_a_link_leads_to_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "f").chmod(0o644)
    (tmp_path / "link").symlink_to(tmp_path / "f")
    with pytest.raises(OSError, match="symbolic link"):
        LocalVolume().set_mode(str(tmp_path / "link"), 0o600)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o644
