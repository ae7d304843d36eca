"""A promotion in the midst of a load that drops what left the scope."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.repl.load.replica import Replica
from tests.support.handover_world import POLICY, Sites


class KilledError(Exception):
    """The load dies here."""


@pytest.fixture
def sites(fast_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    """`u` left the scope; the load that tells of it has dropped it, and died before it noted so.
    The policy is of all tables again."""

    def dies(*_: object) -> NoReturn:
        raise KilledError

    with Sites(fast_folder) as made:
        made.with_tables()
        limited = replace(made.policy, included_tables="t")
        made.dr.metastore.policies.add_policies([limited], is_replacing=True)
        made.dump()
        with made.sides().open_cycle(limited) as cycle, monkeypatch.context() as patch:
            patch.setattr(Replica, "set_parameters", dies)
            plan = cycle.loader.plan(cycle.load)
            with pytest.raises(KilledError):
                cycle.loader.run(plan)
        all_again = replace(limited, included_tables=None)
        made.dr.metastore.policies.add_policies([all_again], is_replacing=True)
        assert made.dr.metastore.get_tables(POLICY) == ("t",)
        yield made


def test_it_does_not_close_the_tables_that_are_gone_here(sites: Sites) -> None:
    with pytest.raises(ReplError, match=r"has only sales\.'t', and a promotion closes"):
        sites.promote(is_dump_left=True)
    sites.main.insert("u", (3, "c"))


def test_its_way_back_does_not_take_what_is_gone_for_all(sites: Sites) -> None:
    """A replica of it would have had other tables than its source, and nobody would have known."""
    sites.lose_main()
    sites.promote(is_source_lost=True, is_dump_left=True)
    sites.find_main()
    with pytest.raises(ReplError, match="a fence closes the whole database"):
        sites.promote()
    with pytest.raises(ReplError, match="has only the tables 't' of its former source"):
        sites.failback(is_discarded=True)
    assert [row["id"] for row in sites.main.rows("u")] == [1, 2]
