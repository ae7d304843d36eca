"""Replicas of whole clusters that were killed, stalled and cut off: equal ones are found equal."""

from __future__ import annotations

import pytest

from hms_bridge.repl.compare.described import Verdict
from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import CompareRequest, Depth
from tests.simulation.cluster import determined
from tests.simulation.run import Tally, play, the_cluster
from tests.simulation.schedule import make_schedule


@pytest.mark.parametrize("seed", range(1, 7))
def test_what_the_model_finds_equal_is_equal(seed: int) -> None:
    tally = Tally()
    assert play(seed, make_schedule(seed), tally) is None
    if not tally.equal_at_the_end:
        pytest.skip("this schedule ends without an equal replica")
    cluster = the_cluster()
    with determined(seed):
        comparer = ReplCompare(
            cluster.resolve,
            cluster.clock,
            source=cluster.source.metastore,
            target=cluster.target.metastore,
        )
        report = comparer.run(
            CompareRequest(
                root="file:/repl",
                source_database="src",
                target_database="dst",
                depth=Depth(has_rows=True, has_checksums=True),
            )
        )
    assert {one.verdict for one in report.findings} == {Verdict.EQUAL}
    assert report.exit_code == 0
