"""The list of methods is complete, and every method has its structs."""

import pytest
from hive_metastore import ThriftHiveMetastore

from hms_bridge.server.serve import dispatcher_of, offered, offered_names
from hms_bridge.wire.additions import METHODS
from hms_bridge.wire.generations import GONE, NEW, RELEASES, UNRELEASED, releases_of
from hms_bridge.wire.methods import OLDER_METHODS, all_names, method
from tests.support.fake_metastore import FakeMetastore
from tests.support.golden_wire import recorded_calls
from tests.support.rules import holds_for

PUBLISHED = {name for name in dir(ThriftHiveMetastore.Iface) if not name.startswith("_")}


def test_the_union_has_every_generation() -> None:
    names = set(all_names())
    assert names >= PUBLISHED
    assert names >= {"abort_Compactions", "drop_table_req", "get_indexes", "get_table"}
    assert names >= {call.method for call in recorded_calls()}
    assert len(names) == len(PUBLISHED) + len(METHODS) + len(OLDER_METHODS)


@holds_for(sorted(set(all_names()) - set(OLDER_METHODS)))
def test_every_method_of_hive_4_has_structs(name: str) -> None:
    described = method(name)
    assert described.name == name
    if described.result is None:
        assert name in ("shutdown", "reinitialize")


def test_what_is_offered_is_answered_and_nothing_else() -> None:
    dispatcher = dispatcher_of(FakeMetastore())  # type: ignore[arg-type]
    assert dispatcher.answered == offered_names()


def test_no_method_is_listed_twice() -> None:
    listed = [name for names in offered().values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(all_names()) - set(OLDER_METHODS)


@pytest.mark.parametrize(
    ("name", "exceptions", "is_void"),
    [
        ("get_table", {"MetaException": "o1", "NoSuchObjectException": "o2"}, False),
        ("drop_table", {"NoSuchObjectException": "o1", "MetaException": "o3"}, True),
        ("drop_table_req", {"NoSuchObjectException": "o1", "MetaException": "o3"}, True),
        ("show_locks", {}, False),
        ("add_write_ids_to_min_history", {"MetaException": "o2"}, True),
    ],
)
def test_declared_exceptions(name: str, exceptions: dict[str, str], is_void: bool) -> None:
    described = method(name)
    assert described.exceptions == exceptions
    assert described.is_void is is_void


def test_what_is_said_of_releases_is_said_of_methods_that_there_are() -> None:
    """Whether it is right, the releases' own jars say: integration/cases/test_generations.py."""
    told = [*NEW.values(), *GONE.values(), frozenset(UNRELEASED)]
    assert frozenset().union(*told) <= set(all_names())
    assert {*NEW, *GONE} <= set(RELEASES)
    assert sum(map(len, NEW.values())) == len(frozenset().union(*NEW.values()))


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("lock", ("2.3", "3.1", "4.0", "4.2")),
        ("get_indexes", ("2.3",)),
        ("get_table", ("2.3", "3.1")),
        ("get_catalog", ("3.1", "4.0", "4.2")),
        ("get_functions_req", ("4.2",)),
        ("create_dataconnector", ()),
    ],
)
def test_releases_of_a_method(name: str, releases: tuple[str, ...]) -> None:
    assert releases_of(name) == releases
