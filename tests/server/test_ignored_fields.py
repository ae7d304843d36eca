"""Every field of every request is read by who answers it, or stands in the table of those without
an effect: each method is sent requests that record what is read of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hms_bridge.server.ignored_fields import IGNORED
from hms_bridge.server.serve import offered_names
from tests.support.field_requests import fields_of, ignored_fields, unread_fields
from tests.support.served_metastore import ServedMetastore, served_metastore


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("fields")) as served:
        yield served


@pytest.mark.parametrize("name", sorted(offered_names()))
def test_what_is_not_read_is_known(served: ServedMetastore, name: str) -> None:
    known = ignored_fields(name)
    unread = unread_fields(served, name, known)
    assert unread - known == set(), "heed it, refuse it by name, or say in IGNORED why not"
    assert known - unread == set(), "it is read: take it out of IGNORED"


def test_each_row_is_of_a_field_that_clients_send() -> None:
    sent = {field for name in offered_names() for field in fields_of(name)}
    names = [name for names in IGNORED.values() for name in names.split()]
    assert len(names) == len(set(names))
    of_method = {name: name.partition("@") for name in names}
    unknown = [
        name for name, (field, _, method) in of_method.items()
        if tuple(field.split(".")) not in (fields_of(method) if method else sent)
    ]  # fmt: skip
    assert unknown == []
