"""Which release has which method, as docs/reference/wire-methods.md lists: what the releases' own
jars say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_bridge.wire.generations import ASKED, RELEASES, releases_of
from hms_bridge.wire.methods import all_names
from integration.referees.java_interface import interface_methods
from integration.referees.java_metastore import (
    Flavour,
    flavour_42,
    flavour_313,
    flavour_401,
    flavour_2310,
)

_INTERFACE = "org/apache/hadoop/hive/metastore/api/ThriftHiveMetastore$Iface"


@pytest.mark.parametrize(
    ("version", "release", "flavour"),
    list(zip(ASKED, RELEASES, (flavour_2310, flavour_313, flavour_401, flavour_42), strict=True)),
    ids=ASKED,
)
def test_methods_of_a_release(version: str, release: str, flavour: Callable[[], Flavour]) -> None:
    found = flavour()
    assert found.version == version
    listed = {name for name in all_names() if release in releases_of(name)}
    assert listed == interface_methods(found.class_path, _INTERFACE)
