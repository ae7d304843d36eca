"""Mutations of who takes which compaction, and of the values that it keeps; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_QUEUE = "tests/txn/test_compaction_queue.py::"
_VALUES = "tests/compaction/test_odd_values.py::"
_POOLS = "tests/cli/test_served_pool.py::"
_LEAVES = f"{_QUEUE}test_a_selective_worker_leaves_what_hms_bridge_does_not_do"
_REFUSED = f"{_QUEUE}test_what_nobody_here_does_is_refused_with_the_reason"

OF_WORKERS = (
    Mutation(
        name="a worker takes compactions of insert-only tables",
        file="hms_bridge/txn/compaction_queue.py",
        within="",
        old=(
            "and_(or_(*(_Q.CQ_TYPE == kind.stored for kind in CompactionType "
            "if kind in DONE_HERE)), ~_IS_INSERT_ONLY)"
        ),
        new=(
            "and_(or_(*(_Q.CQ_TYPE == kind.stored for kind in CompactionType "
            "if kind in DONE_HERE)))"
        ),
        test=_LEAVES,
    ),
    Mutation(
        name="a worker of a pool takes what it does not do",
        file="hms_bridge/txn/compaction_queue.py",
        within="",
        old="_first_of(_IS_OF_POOL, _IS_DONE_HERE)",
        new="_first_of(_IS_OF_POOL)",
        test=_LEAVES,
    ),
    Mutation(
        name="a worker of the default pool takes what it does not do",
        file="hms_bridge/txn/compaction_queue.py",
        within="",
        old="_of_no_pool(now, row_time, _IS_DONE_HERE)",
        new="_of_no_pool(now, row_time)",
        test=_LEAVES,
    ),
    Mutation(
        name="what nobody does is queued for an insert-only table",
        file="hms_bridge/service/compactions.py",
        within="_worker_refusal",
        old="request.type in DONE_HERE and (not table.is_insert_only)",
        new="request.type in DONE_HERE",
        test=_REFUSED,
    ),
    Mutation(
        name="the default pool of a metastore is taken from over thrift",
        file="hms_bridge/client/queue_client.py",
        within="CompactionClient.find_next_compaction",
        old="pool_name = pool_name or (OWN_POOL if is_selective else None)",
        new="",
        test=f"{_POOLS}test_a_worker_over_thrift_has_a_pool_of_its_own",
    ),
    Mutation(
        name="an entry of the default pool is taken unasked",
        file="hms_bridge/cli/served_pool.py",
        within="ServedPool.require_claimable",
        old="entry.pool_name is None",
        new="False",
        test=f"{_POOLS}test_an_entry_of_the_default_pool_is_not_taken_unasked",
    ),
    Mutation(
        name="the default pool is taken whatever it holds",
        file="hms_bridge/cli/served_pool.py",
        within="ServedPool.require_claimable",
        old="self.is_default",
        new="self.is_default and False",
        test=f"{_POOLS}test_the_default_pool_is_not_taken_while_it_holds_what_others_do",
    ),
    Mutation(
        name="a compaction refuses the last second before 1970",
        file="hms_bridge/compaction/kernel.py",
        within="_settings",
        old=(
            "OrcSettings(compression=tail.compression, "
            "block_size_bytes=max(tail.block_size_bytes, 65536), "
            "has_last_second=True)"
        ),
        new=(
            "OrcSettings(compression=tail.compression, "
            "block_size_bytes=max(tail.block_size_bytes, 65536))"
        ),
        test=f"{_VALUES}test_the_last_second_before_1970_stays",
    ),
    Mutation(
        name="a timestamp that has become text loses digits before a compaction",
        file="hms_bridge/rows/evolution.py",
        within="has_timestamp_as_text",
        old="target.kind in _TEXTS",
        new="False",
        test=f"{_VALUES}test_a_timestamp_that_has_become_text_keeps_all_digits",
    ),
)
