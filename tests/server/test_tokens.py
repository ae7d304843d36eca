"""Tokens and keys that other services keep in a metastore (docs/hive/metastore.md §34)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.errors import MetastoreError, NoSuchObjectError
from tests.support.databases import SERVER_URL
from tests.support.served_metastore import ServedMetastore, served_metastore


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path) as served:
        yield served


def test_a_token_is_kept_until_it_is_removed(served: ServedMetastore) -> None:
    for identifier in ("b", "a", "A"):
        call = {"token_identifier": identifier, "delegation_token": f"of {identifier}"}
        assert served.call("add_token", **call) is True
    assert served.call("add_token", token_identifier="a", delegation_token="other") is False
    assert served.call("get_token", token_identifier="a") == "of a"
    assert served.call("get_all_token_identifiers") == ["A", "a", "b"]
    assert [served.call("remove_token", token_identifier="a") for _ in "12"] == [True, False]
    assert served.call("get_token", token_identifier="a") == ""
    assert served.call("get_token", token_identifier="A") == "of A"


def test_keys_have_numbers(served: ServedMetastore) -> None:
    first, second = (served.call("add_master_key", key=key) for key in ("k", "l"))
    assert second > first > 0
    served.call("update_master_key", seq_number=first, key="m")
    assert served.call("get_master_keys") == ["m", "l"]
    assert [served.call("remove_master_key", key_seq=first) for _ in "12"] == [True, False]
    with pytest.raises(NoSuchObjectError, match=f"No key found with keyId: {first}"):
        served.call("update_master_key", seq_number=first, key="m")
    assert served.call("get_master_keys") == ["l"]


def test_they_are_bounded_and_not_shown_in_refusals(served: ServedMetastore) -> None:
    secret = "s3cret" * 128
    for call in (
        {"token_identifier": "a", "delegation_token": secret},
        {"token_identifier": secret, "delegation_token": "a"},
    ):
        with pytest.raises(MetastoreError, match="at most 767 fit") as refused:
            served.call("add_token", **call)
        assert "s3cret" not in str(refused.value)
    with pytest.raises(MetastoreError, match="at most 767 fit") as refused:
        served.call("add_master_key", key=secret)
    assert "s3cret" not in str(refused.value)


def test_the_number_of_a_removed_key_is_never_given_again(served: ServedMetastore) -> None:
    """A token that the removed one signed would be checked against the new one."""
    first = served.call("add_master_key", key="k")
    assert served.call("remove_master_key", key_seq=first) is True
    second = served.call("add_master_key", key="l")
    third = served.call("add_master_key", key="m")
    assert served.call("remove_master_key", key_seq=third) is True
    assert first < second < third < served.call("add_master_key", key="n")


@pytest.mark.skipif(SERVER_URL is not None, reason="the others number them by themselves")
def test_keys_that_an_earlier_release_added_are_counted(served: ServedMetastore) -> None:
    """It took the number after the highest."""

    def add_as_before(key: str) -> int:
        with sqlite3.connect(served.database_url.removeprefix("sqlite:///")) as database:
            added = database.execute("INSERT INTO MASTER_KEYS (MASTER_KEY) VALUES (?)", (key,))
        return added.lastrowid or 0

    numbers = [add_as_before("a"), add_as_before("b"), served.call("add_master_key", key="c")]
    numbers += [add_as_before("d"), add_as_before("e"), served.call("add_master_key", key="f")]
    assert numbers == sorted(set(numbers))
    assert served.call("remove_master_key", key_seq=numbers[-1]) is True
    assert served.call("add_master_key", key="g") > numbers[-1]
