"""Tokens and keys that other services keep in a metastore (docs/hive/metastore.md §34)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.errors import MetastoreError, NoSuchObjectError
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
