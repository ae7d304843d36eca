"""Whether and how to compact: decisions without I/O, and those of a real Hive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.compaction.initiator_plan import (
    Candidate,
    InitiatorDecision,
    Verdict,
    decide,
    decide_without_look,
)
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    CompactionType,
    PotentialCompaction,
)
from hms_bridge.model.ids import CompactionId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from tests.support.golden import GoldenStage, golden_stages

SETTINGS = CompactorSettings()
NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
TARGET = PotentialCompaction(target=Target("db", "t"))
PARTITION = PotentialCompaction(target=Target("db", "t", "p=1"))

# What the initiator of a real Hive put into its queue, of these six tables.
HIVES_CHOICE = {
    "g.i10": None,
    "g.i11": CompactionType.MAJOR,
    "g.i_over": CompactionType.MAJOR,
    "g.i_under": None,
    "g.i_noauto": None,
    "g.i_abort": None,
}
HIVES_STAGES = [
    stage
    for stage in golden_stages("full_acid")
    if stage.scenario == "g18_initiator" and "before" in stage.name
]


def directory(
    *sizes: tuple[str, int], write_ids: str = "db.t:99:9223372036854775807::"
) -> AcidState:
    listing = DirectoryListing.build(
        "/t",
        files=[ListedFile(path=f"{name}/bucket_00000", size_bytes=size) for name, size in sizes],
    )
    return resolve(
        listing,
        txns=ValidTxnList.parse("99:9223372036854775807::"),
        write_ids=ValidWriteIdList.parse(write_ids),
    )


def deltas(count: int, size: int = 1, first: int = 1) -> list[tuple[str, int]]:
    return [(f"delta_{n:07d}_{n:07d}_0000", size) for n in range(first, first + count)]


def decided(
    state: AcidState, candidate: Candidate | None = None, **settings: object
) -> InitiatorDecision:
    chosen = candidate or Candidate(potential=TARGET)
    return decide(chosen, state, WriteId(99), replace(SETTINGS, **settings))  # type: ignore[arg-type]


def entry(number: int, state: CompactionState, **given: object) -> Compaction:
    made = Compaction(
        id=CompactionId(number), target=Target("db", "t"), type=CompactionType.MINOR,
        state=state, enqueued_ms=NOW_MS - DAY_MS, error_message=f"reason {number}",
    )  # fmt: skip
    return replace(made, **given)  # type: ignore[arg-type]


def without_look(
    *entries: Compaction, potential: PotentialCompaction = TARGET, **given: object
) -> InitiatorDecision | None:
    candidate = Candidate(potential=potential, entries=entries, **given)  # type: ignore[arg-type]
    return decide_without_look(candidate, SETTINGS, NOW_MS)


# -- what the directory says


@pytest.mark.golden
def test_all_six_tables_of_a_real_initiator_are_there() -> None:
    assert [stage.table for stage in HIVES_STAGES] == list(HIVES_CHOICE)


@pytest.mark.golden
@pytest.mark.parametrize("stage", HIVES_STAGES, ids=str)
def test_the_choice_is_that_of_a_real_hive(stage: GoldenStage) -> None:
    database, _, name = stage.table.partition(".")
    candidate = Candidate(
        potential=PotentialCompaction(target=Target(database, name)),
        table_parameters=stage.state["metastore_table"]["parameters"],
    )
    found = decide_without_look(candidate, SETTINGS, NOW_MS)
    if found is None:
        write_ids = stage.write_ids.compactor_view()
        state = resolve(stage.listing(None), txns=stage.txns, write_ids=write_ids)
        found = decide(candidate, state, write_ids.high_watermark, SETTINGS)
    assert found.type is HIVES_CHOICE[stage.table], found.reason
    assert (found.verdict is Verdict.REQUEST) is (found.type is not None)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (directory(), None),
        (directory(("base_0000009", 100)), None),
        (directory(*deltas(10)), None),
        (directory(*deltas(11)), CompactionType.MAJOR),
        (directory(("base_0000009", 1000), *deltas(10, first=10)), None),
        (directory(("base_0000009", 1000), *deltas(11, first=10)), CompactionType.MINOR),
        (directory(("base_0000009", 1000), *deltas(1, size=100, first=10)), None),
        (directory(("base_0000009", 1000), *deltas(1, size=101, first=10)), CompactionType.MAJOR),
        # Delete deltas count, in both ways.
        (directory(("base_0000009", 1000), *deltas(10, first=10),
                   ("delete_delta_0000020_0000020_0000", 1)), CompactionType.MINOR),
        (directory(("base_0000009", 1000), ("delete_delta_0000020_0000020_0000", 101)),
         CompactionType.MAJOR),
        # An overwrite left its predecessor to the cleaner, who needs an entry of the queue.
        (directory(("base_0000001", 10), ("base_0000002", 10)), CompactionType.MAJOR),
        # Deltas of no length (REPL LOAD) are merged.
        (directory(*deltas(11, size=0)), CompactionType.MINOR),
    ],
)  # fmt: skip
def test_sizes_and_counts_decide(state: AcidState, kind: CompactionType | None) -> None:
    found = decided(state)
    assert found.type is kind, found.reason
    assert found.verdict is (Verdict.NOTHING if kind is None else Verdict.REQUEST)
    assert found.sizes is not None


def test_files_from_before_the_table_was_acid_count_as_base() -> None:
    listing = DirectoryListing.build(
        "/t",
        files=[
            ListedFile(path="000000_0", size_bytes=1000),
            ListedFile(path="delta_10000001_10000001_0000/bucket_00000", size_bytes=101),
        ],
    )
    state = resolve(
        listing,
        txns=ValidTxnList.parse("99:9223372036854775807::"),
        write_ids=ValidWriteIdList.parse("db.t:10000001:9223372036854775807::"),
    )
    assert decided(state).type is CompactionType.MAJOR
    assert decided(state, delta_share_threshold=0.2).type is None


def test_thresholds_can_be_set_and_a_table_may_have_its_own() -> None:
    state = directory(("base_0000009", 1000), *deltas(3, size=50, first=10))
    assert decided(state, delta_share_threshold=0.5).type is None
    assert decided(state, delta_share_threshold=0.5, delta_count_threshold=2).type is (
        CompactionType.MINOR
    )
    own = Candidate(
        potential=TARGET,
        table_parameters={
            "compactorthreshold.hive.compactor.delta.num.threshold": "2",
            "compactorthreshold.hive.compactor.delta.pct.threshold": "0.5",
        },
    )
    assert decided(state, own).type is CompactionType.MINOR
    assert decided(state, own).reason == "3 deltas, more than 2"


def test_a_threshold_that_is_no_number_is_told() -> None:
    name = "compactorthreshold.hive.compactor.delta.num.threshold"
    candidate = Candidate(potential=TARGET, table_parameters={name: "many"})
    with pytest.raises(CompactionError, match=rf"property {name} of the table is 'many'"):
        decided(directory(*deltas(3)), candidate)


def test_aborted_writes_that_share_a_delta_need_a_compaction() -> None:
    shared = directory(
        ("delta_0000001_0000010", 5), *deltas(1, first=11),
        write_ids="db.t:99:9223372036854775807::3",
    )  # fmt: skip
    own = directory(*deltas(3), write_ids="db.t:99:9223372036854775807::3")
    many = Candidate(potential=replace(TARGET, has_too_many_aborts=True))
    old = Candidate(potential=replace(TARGET, has_old_abort=True))
    assert decided(shared, many).type is CompactionType.MAJOR
    assert decided(shared, old).type is CompactionType.MINOR
    assert decided(shared).type is None
    # Those with directories of their own are the cleaner's.
    assert decided(own, many).type is decided(own, old).type is None


# -- what the metastore says


def test_nothing_in_the_way_means_a_look() -> None:
    assert without_look() is None
    assert without_look(potential=PARTITION, is_partitioned=True) is None
    assert without_look(entry(1, CompactionState.READY_FOR_CLEANING)) is None


@pytest.mark.parametrize("state", [CompactionState.INITIATED, CompactionState.WORKING])
def test_what_is_queued_is_left_alone(state: CompactionState) -> None:
    found = without_look(entry(7, state))
    assert found is not None
    assert found.verdict is Verdict.LEFT_ALONE
    assert found.reason == f"compaction 7 is {state.word} already"


def test_what_was_taken_whole_waits_for_the_cleaner() -> None:
    waiting = entry(7, CompactionState.READY_FOR_CLEANING, highest_write_id=WriteId(99))
    found = decided(directory(*deltas(11)), Candidate(potential=TARGET, entries=(waiting,)))
    assert found.verdict is Verdict.LEFT_ALONE
    assert "waits for the cleaner" in found.reason
    earlier = replace(waiting, highest_write_id=WriteId(98))
    found = decided(directory(*deltas(11)), Candidate(potential=TARGET, entries=(earlier,)))
    assert found.verdict is Verdict.REQUEST


@pytest.mark.parametrize(
    "given",
    [
        {"table_parameters": {"no_auto_compaction": "true"}},
        {"table_parameters": {"NO_AUTO_COMPACTION": "True"}},
        {"database_parameters": {"no_auto_compaction": "true"}},
        {"database_parameters": {"hive.repl.first.inc.pending": "true"}},
        {"is_partitioned": True},
    ],
)
def test_what_is_switched_off_is_left_alone(given: dict[str, object]) -> None:
    found = without_look(**given)  # type: ignore[arg-type]
    assert found is not None
    assert found.verdict is Verdict.LEFT_ALONE


def test_repeated_failures_block_for_a_while() -> None:
    failed = CompactionState.FAILED
    found = without_look(entry(1, failed), entry(2, failed), entry(3, CompactionState.REFUSED))
    assert found is not None
    assert found.verdict is Verdict.BLOCKED
    assert "its last 2 compactions failed, the last one with: reason 2" in found.reason
    assert without_look(entry(1, failed)) is None
    assert without_look(entry(1, failed), entry(2, CompactionState.SUCCEEDED)) is None
    assert without_look(entry(0, CompactionState.SUCCEEDED), entry(1, failed)) is None
    long_ago = {"enqueued_ms": NOW_MS - 8 * DAY_MS}
    assert without_look(entry(1, failed, **long_ago), entry(2, failed, **long_ago)) is None


def test_a_failure_is_never_tried_again_if_the_setting_says_so() -> None:
    entries = tuple(entry(n, CompactionState.FAILED, enqueued_ms=1) for n in (1, 2))
    candidate = Candidate(potential=TARGET, entries=entries)
    assert decide_without_look(candidate, SETTINGS, NOW_MS) is None
    never = replace(SETTINGS, failed_retry_ms=0)
    assert decide_without_look(candidate, never, NOW_MS) is not None


def test_the_pool_of_the_table_goes_before_that_of_the_database() -> None:
    pool = "hive.compactor.worker.pool"
    both = Candidate(
        potential=TARGET, table_parameters={pool: "a"}, database_parameters={pool: "b"}
    )
    assert both.decided(Verdict.NOTHING, "").pool_name == "a"
    assert replace(both, table_parameters={}).decided(Verdict.NOTHING, "").pool_name == "b"
    assert Candidate(potential=TARGET).decided(Verdict.NOTHING, "").pool_name is None
