"""Policies and their history, as every database keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import (
    AlreadyExistsError,
    ConfigError,
    InvalidOperationError,
    NoSuchObjectError,
)
from hms_bridge.model.replication import (
    Cycle,
    CycleOutcome,
    CycleResult,
    PolicySide,
    PolicyTotals,
    ReplicationPolicy,
)
from hms_bridge.policies import cycles
from hms_bridge.policy_store import PolicyStore
from hms_bridge.service.open import open_local_metastore
from tests.support.databases import fresh_url
from tests.support.simulated_clock import SimulatedClock

SALES = ReplicationPolicy(
    name="sales",
    root="hdfs://dr/dumps",
    source=PolicySide(
        metastore="thrift://source:9083",
        database="sales",
        settings={"hive.repl.cmrootdir": "hdfs://source/cm", "ä": 'a "b" \\'},
    ),
    target=PolicySide(database="sales"),
)
SHOP = replace(
    SALES,
    name="shop",
    source=PolicySide(metastore="thrift://source:9083", database="shop"),
    target=PolicySide(metastore="thrift://replica:9083", database="shop"),
)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(1_700_000_000_000)


@pytest.fixture
def store(tmp_path: Path, clock: SimulatedClock) -> Iterator[PolicyStore]:
    service = open_local_metastore(
        fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"), clock=clock
    )
    yield service.policies
    service.close()


def result(outcome: CycleOutcome, **more: int | str) -> CycleResult:
    return CycleResult(outcome=outcome, **more)  # type: ignore[arg-type]


def cycle(store: PolicyStore, outcome: CycleOutcome, policy: str = "sales") -> int:
    number = store.begin_cycle(policy, "here")
    store.end_cycle(policy, number, result(outcome))
    return number


def numbers(store: PolicyStore) -> list[tuple[int, str]]:
    return [(one.number, one.result.outcome.value) for one in store.get_cycles("sales")]


def test_what_was_added_is_there_as_it_was(store: PolicyStore) -> None:
    store.add_policies([SHOP, SALES])
    assert store.get_policies() == (SALES, SHOP)
    assert store.get_policy("shop") == SHOP


def test_a_policy_is_replaced_only_where_that_is_meant(store: PolicyStore) -> None:
    store.add_policies([SALES])
    other = replace(SALES, root="hdfs://elsewhere/dumps")
    with pytest.raises(AlreadyExistsError, match="there is a policy sales already"):
        store.add_policies([other])
    store.add_policies([other], is_replacing=True)
    assert store.get_policies() == (other,)


def test_a_policy_that_is_there_just_so_may_be_added_again(store: PolicyStore) -> None:
    """By somebody who does not know whether the command that was killed had done it."""
    some = replace(SALES, included_tables="t[0-9]+")
    store.add_policies([some])
    store.add_policies([some])
    assert store.get_policies() == (some,)
    store.set_paused("sales", is_paused=True)
    with pytest.raises(AlreadyExistsError, match="there is a policy sales already"):
        store.add_policies([some])


def test_the_tables_of_a_policy_are_kept_changed_and_forgotten(store: PolicyStore) -> None:
    some = replace(SALES, included_tables="t[0-9]+", excluded_tables="t2")
    store.add_policies([some, SHOP])
    assert store.get_policies() == (some, SHOP)
    other = replace(SALES, included_tables="u")
    store.add_policies([other], is_replacing=True)
    assert store.get_policy("sales") == other
    assert store.begin_cycle("sales", "here") == 1
    store.add_policies([SALES], is_replacing=True)
    assert store.get_policy("sales") == SALES
    store.add_policies([some], is_replacing=True)
    store.remove_policy("sales")
    store.add_policies([SALES])
    assert store.get_policy("sales") == SALES


def test_of_policies_that_come_together_all_are_kept_or_none(store: PolicyStore) -> None:
    with pytest.raises(AlreadyExistsError):
        store.add_policies([SHOP, SALES, replace(SALES, root="hdfs://elsewhere/dumps")])
    assert store.get_policies() == ()


def test_two_sources_for_one_target_are_refused(store: PolicyStore) -> None:
    store.add_policies([SALES])
    second = replace(SHOP, target=SALES.target)
    with pytest.raises(AlreadyExistsError, match="policy sales replicates into sales there"):
        store.add_policies([second])


def test_two_policies_do_not_share_dumps(store: PolicyStore) -> None:
    store.add_policies([SALES])
    second = replace(SALES, name="again", target=PolicySide(database="other"))
    with pytest.raises(AlreadyExistsError, match="policy sales keeps dumps"):
        store.add_policies([second])
    store.add_policies([replace(second, root="hdfs://dr/others")])


def own_url(store: PolicyStore) -> str:
    """Of the database that keeps the policies, as people write it."""
    with store._transactions.database.engine.connect() as connection:  # type: ignore[attr-defined]
        return str(connection.engine.url.render_as_string(hide_password=False))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("thrift://replica:9083", "thrift://Replica:9083"),
        ("thrift://replica:9083", "thrift://replica"),
        ("thrift://replica:9083", "thrift://replica:9083/"),
        ("thrift://localhost:9083", "thrift://127.0.0.1:9083"),
        ("postgresql+psycopg://hive:${PW}@db/meta", "postgresql://other@DB:5432/meta"),
        ("mariadb+pymysql://hive@db/meta", "mysql+pymysql://hive@db:3306/meta"),
        ("sqlite:////tmp/dr/meta.db", "sqlite:////tmp/x/../dr/meta.db"),
    ],
)
def test_one_metastore_with_two_names_is_one_target(
    store: PolicyStore, first: str, second: str
) -> None:
    store.add_policies([replace(SALES, target=PolicySide(metastore=first, database="sales"))])
    again = replace(SHOP, target=PolicySide(metastore=second, database="Sales"))
    with pytest.raises(AlreadyExistsError, match="a replica has one source"):
        store.add_policies([again])


def test_the_metastore_that_keeps_policies_is_one_target_by_its_url_too(store: PolicyStore) -> None:
    store.add_policies([SALES])
    named = PolicySide(metastore=own_url(store), database="sales")
    with pytest.raises(AlreadyExistsError, match="a replica has one source"):
        store.add_policies([replace(SHOP, target=named)])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("thrift://replica:9083", "thrift://replica:9084"),
        ("thrift://replica:9083", "thrift://other:9083"),
        ("postgresql://db/meta", "postgresql://db/other"),
        ("postgresql://db/meta?options=-csearch_path%3Da", "postgresql://db/meta"),
        ("postgresql://db/meta", "mysql://db/meta"),
        ("no url", "another"),
    ],
)
def test_two_metastores_are_two_targets(store: PolicyStore, first: str, second: str) -> None:
    store.add_policies([replace(SALES, target=PolicySide(metastore=first, database="sales"))])
    again = replace(SHOP, target=PolicySide(metastore=second, database="sales"))
    store.add_policies([again])


@pytest.mark.parametrize(
    "root",
    ["/x", "file:/x", "file:///x", "file://localhost/x", "/x/", "//x", "/x/../x", "/x/./"],
)
@pytest.mark.parametrize("kept", ["/x", "file:///x"])
def test_one_directory_with_two_spellings_is_one_root(
    store: PolicyStore, kept: str, root: str
) -> None:
    store.add_policies([replace(SALES, root=kept)])
    second = replace(SALES, name="again", root=root, target=PolicySide(database="other"))
    with pytest.raises(AlreadyExistsError, match=f"policy sales keeps dumps .* below {kept} "):
        store.add_policies([second])


@pytest.mark.parametrize(
    ("kept", "root", "is_one"),
    [
        ("hdfs://dr/x", "hdfs://DR:8020/x/", True),
        ("s3://bucket/x", "s3a://bucket/x", True),
        ("hdfs://dr/x", "/x", True),  # it may be, where fs.defaultFS is the cluster
        ("hdfs://dr/x", "hdfs://other/x", False),
        ("hdfs://dr/x", "file:/x", False),
        ("/x", "/x/y", False),
        ("s3://bucket/x", "s3://other/x", False),
        ("dumps", "./dumps", True),
        ("dumps", "others", False),
    ],
)
def test_roots_on_file_systems(store: PolicyStore, kept: str, root: str, is_one: bool) -> None:
    store.add_policies([replace(SALES, root=kept)])
    second = replace(SALES, name="again", root=root, target=PolicySide(database="other"))
    if not is_one:
        store.add_policies([second])
        return
    with pytest.raises(AlreadyExistsError, match="policy sales keeps dumps"):
        store.add_policies([second])


def test_policies_at_work_are_found_by_the_database_of_either_side(store: PolicyStore) -> None:
    here = own_url(store)
    store.add_policies(
        [
            SALES,
            replace(SHOP, root="hdfs://dr/shop", source=PolicySide(database="Sales")),
            replace(
                SALES,
                name="named",
                source=replace(SALES.source, database="other"),
                target=PolicySide(metastore=here, database="named"),
            ),
        ]
    )
    assert store.get_names_at_work("sales") == ("sales", "shop")
    assert store.get_names_at_work("named") == ("named",)
    assert store.get_names_at_work("shop") == ()  # of another metastore
    store.set_paused("sales", is_paused=True)
    assert store.get_names_at_work("sales") == ("shop",)


def test_paused_and_resumed(store: PolicyStore) -> None:
    store.add_policies([SALES])
    store.set_paused("sales", is_paused=True)
    assert store.get_policy("sales") == replace(SALES, is_paused=True)
    store.set_paused("sales", is_paused=False)
    assert store.get_policy("sales") == SALES


def test_what_is_not_there_is_named_with_what_is(store: PolicyStore) -> None:
    store.add_policies([SALES])
    for attempt in (
        lambda: store.get_policy("sale"),
        lambda: store.set_paused("sale", is_paused=True),
        lambda: store.remove_policy("sale"),
        lambda: store.begin_cycle("sale", "here"),
    ):
        with pytest.raises(NoSuchObjectError, match="no policy sale; there are: sales"):
            attempt()


def test_a_cycle_is_written_down_from_its_begin_to_its_end(
    store: PolicyStore, clock: SimulatedClock
) -> None:
    store.add_policies([SALES])
    began_ms = clock.now_ms()
    number = store.begin_cycle("sales", "here")
    (running,) = store.get_cycles()
    assert running == Cycle(
        policy="sales",
        number=number,
        started_at_ms=began_ms,
        ended_at_ms=None,
        host="here",
        result=result(CycleOutcome.RUNNING),
    )
    clock.advance_ms(2500)
    done = result(
        CycleOutcome.REPLICATED,
        dump_kind="incremental",
        dump_directory="hdfs://dr/dumps/1",
        until_event_id=17,
        event_count=3,
        file_count=2,
        byte_count=5_000_000_000_000,
        attempt_count=2,
    )
    store.end_cycle("sales", number, done)
    (ended,) = store.get_cycles("sales")
    assert (ended.result, ended.duration_ms) == (done, 2500)


def test_a_cycle_that_was_killed_counts_as_interrupted(store: PolicyStore) -> None:
    store.add_policies([SALES])
    store.begin_cycle("sales", "here")
    cycle(store, CycleOutcome.REPLICATED)
    assert numbers(store) == [(2, "replicated"), (1, "interrupted")]


def test_nothing_new_again_and_again_is_told_once(store: PolicyStore) -> None:
    store.add_policies([SALES])
    for outcome in (
        CycleOutcome.NOTHING_NEW,
        CycleOutcome.NOTHING_NEW,
        CycleOutcome.FAILED,
        CycleOutcome.NOTHING_NEW,
        CycleOutcome.NOTHING_NEW,
        CycleOutcome.NOTHING_NEW,
    ):
        cycle(store, outcome)
    assert numbers(store) == [(6, "nothing new"), (3, "failed"), (2, "nothing new")]


def test_history_is_bounded(store: PolicyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "KEPT_MAX", 3)
    store.add_policies([SALES])
    for _ in range(5):
        cycle(store, CycleOutcome.FAILED)
    assert [number for number, _ in numbers(store)] == [5, 4, 3]
    assert [one.number for one in store.get_cycles("sales", limit=2)] == [5, 4]


def test_history_goes_with_its_policy(store: PolicyStore, clock: SimulatedClock) -> None:
    store.add_policies([SALES, SHOP])
    cycle(store, CycleOutcome.FAILED)
    clock.advance_ms(1)
    cycle(store, CycleOutcome.FAILED, "shop")
    assert [one.policy for one in store.get_cycles()] == ["shop", "sales"]
    store.remove_policy("sales")
    assert [one.policy for one in store.get_cycles()] == ["shop"]
    assert store.get_policies() == (SHOP,)


def test_sums_count_what_history_forgets(store: PolicyStore, clock: SimulatedClock) -> None:
    store.add_policies([SALES, SHOP])
    store.begin_cycle("sales", "here")  # its process is killed
    for outcome, events in (
        (CycleOutcome.REPLICATED, 3),
        (CycleOutcome.NOTHING_NEW, 0),
        (CycleOutcome.NOTHING_NEW, 0),
        (CycleOutcome.REPLICATED, 4),
    ):
        number = store.begin_cycle("sales", "here")
        clock.advance_ms(1500)
        store.end_cycle(
            "sales", number, result(outcome, event_count=events, byte_count=events * 10**12)
        )
    success_ms = clock.now_ms()
    number = store.begin_cycle("sales", "here")
    clock.advance_ms(700)
    store.end_cycle("sales", number, result(CycleOutcome.FAILED))
    store.set_paused("shop", is_paused=True)
    sales, shop = store.get_totals()
    assert sales == PolicyTotals(
        policy="sales",
        is_paused=False,
        cycle_counts={
            CycleOutcome.REPLICATED: 2,
            CycleOutcome.NOTHING_NEW: 2,
            CycleOutcome.FAILED: 1,
            CycleOutcome.INTERRUPTED: 1,
        },
        event_count=7,
        byte_count=7 * 10**12,
        last_success_ms=success_ms,
        last_duration_ms=700,
    )
    assert (shop.policy, shop.is_paused, shop.cycle_counts) == ("shop", True, {})
    assert (shop.last_success_ms, shop.last_duration_ms) == (None, None)
    store.remove_policy("sales")
    store.add_policies([SALES])
    assert store.get_totals()[0].cycle_counts == {}


def test_a_cycle_of_a_policy_that_was_removed_meanwhile_says_so(store: PolicyStore) -> None:
    store.add_policies([SALES])
    number = store.begin_cycle("sales", "here")
    store.remove_policy("sales")
    with pytest.raises(NoSuchObjectError, match="removed meanwhile"):
        store.end_cycle("sales", number, result(CycleOutcome.REPLICATED))


@pytest.mark.parametrize("name", ["", "-all", "a b", "a/b", "a" * 129, "ä"])
def test_a_name_is_told_from_options_and_paths(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a policy"):
        replace(SALES, name=name)


def test_a_change_of_what_is_not_there_any_more_is_refused(store: PolicyStore) -> None:
    """Of two that change a policy at the same time the second has not seen what the first did."""
    store.add_policies([SALES])
    changed = replace(SALES, root="hdfs://elsewhere/dumps")
    store.set_paused("sales", is_paused=True)
    paused = store.get_policy("sales")
    for was in (SALES, None, changed):
        with pytest.raises(InvalidOperationError, match="policy sales was changed by somebody"):
            store.add_policies([changed], is_replacing=True, made_from={"sales": was})
    assert store.get_policies() == (paused,)
    store.add_policies([changed], is_replacing=True, made_from={"sales": paused})
    store.add_policies([SHOP], is_replacing=True, made_from={"shop": None})
    assert store.get_policies() == (changed, SHOP)
    for was in (SALES, paused):
        with pytest.raises(InvalidOperationError, match="policy sales was changed by somebody"):
            store.begin_removal("sales", made_from=was)
    assert store.get_names_ending() == ()
    store.begin_removal("sales", made_from=changed)
    store.begin_removal("sales", made_from=replace(changed, is_paused=True))
    assert store.get_names_ending() == ("sales",)
    store.remove_policy("sales")
    with pytest.raises(InvalidOperationError, match="policy sales was changed by somebody"):
        store.add_policies([SALES], is_replacing=True, made_from={"sales": changed})
    assert store.get_policies() == (SHOP,)


def test_a_replica_notes_where_its_files_come_from(store: PolicyStore) -> None:
    assert store.get_load_roots("sales") == ()
    roots = ("hdfs://nn:8020/warehouse", 'file:/ä "b"')
    for noted in (roots, roots, roots[:1]):
        store.set_load_roots("Sales", noted)
        assert store.get_load_roots("sALES") == noted
    assert store.get_load_roots("shop") == ()
