"""What Spark's tasks have written is seen whole, or nothing of it."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from changemanager.location import parse_uri
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.model.ids import WriteId
from hms_bridge.model.txn import TxnState
from hms_bridge.rows.event_files import EventFileSpec, write_inserts
from tests.conformance import objects
from tests.plans.conftest import Driver

ROWS = [(1, "a"), (2, "b")]


def _begin(driver: Driver, name: str = "t") -> Any:
    definition = driver.load(name)["definition"]
    return driver.ask("write/begin", namespace="db", name=name, definition=definition)


def _task(driver: Driver, begun: Any, name: str = "t", number: int = 0) -> list[Any]:
    """The files of a task, as it reports them."""
    table = driver.describe(name)
    spec = EventFileSpec.of_table(table, begun["staging"], WriteId(begun["write_id"]), 0)
    ids, texts = zip(*ROWS, strict=True)
    columns: dict[str, Any] = {"id": pa.array(ids, pa.int32()), "v": pa.array(texts)}
    columns |= {key.name: pa.array(["x"] * len(ROWS)) for key in table.partition_columns}
    files = write_inserts(driver.resolve, spec, [pa.record_batch(columns)], number, "1")
    values = ["x" for _ in table.partition_columns]
    return [
        [file.path, values, file.bucket_id, 0, file.row_count, file.size_bytes] for file in files
    ]


def _open_writers(driver: Driver) -> int:
    listed = driver.metastore.get_open_txns_info()
    return len([txn for txn in listed if txn.state is TxnState.OPEN])


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_an_append_is_seen_at_its_commit(driver: Driver, is_partitioned: bool) -> None:
    driver.create_table(is_partitioned=is_partitioned)
    begun = _begin(driver)
    files = _task(driver, begun) + _task(driver, begun, number=1)
    before = driver.plan()
    assert before["files"] == []
    assert driver.ask("write/keep", write=begun["write"]) == {}
    assert driver.ask("write/commit", write=begun["write"], files=files) == {}
    plan = driver.plan(statement="later")
    assert len(plan["files"]) == 2
    assert plan["partitions"] == ([["x"]] if is_partitioned else [])
    assert not [name for name in driver.names() if name.startswith("_tmp")]
    assert driver.ask("write/commit", write=begun["write"], files=files) == "WriteGone"
    driver.ask("read/end", leases=[before["lease"], plan["lease"]])


def test_nothing_is_seen_of_what_ends_otherwise(driver: Driver) -> None:
    path = driver.create_table()
    begun = _begin(driver)
    _task(driver, begun)
    assert driver.ask("write/abort", write=begun["write"]) == {}
    assert driver.ask("write/abort", write=begun["write"]) == {}
    silent = _begin(driver)
    _task(driver, silent)
    driver.clock.advance_ms(121_000)
    driver.end_silent()
    assert driver.ask("write/keep", write=silent["write"]) == "WriteGone"
    assert (list(path.rglob("bucket*")), _open_writers(driver)) == ([], 0)


def test_a_file_that_is_not_what_a_task_wrote_is_refused(driver: Driver) -> None:
    driver.create_table("other")
    driver.insert("other", (1, "a"))
    (theirs,) = driver.path("other").rglob("bucket*")
    path = driver.create_table()
    for change in ("elsewhere", "longer", "twice", "gone"):
        begun = _begin(driver)
        (file,) = files = _task(driver, begun)
        match change:
            case "elsewhere":
                files = [[theirs.as_uri(), *file[1:5], theirs.stat().st_size]]
            case "longer":
                files = [[*file[:5], file[5] + 1]]
            case "twice":
                files = [file, *_task(driver, begun)]
            case "gone":
                files = [[f"{file[0]}x", *file[1:]]]
        assert driver.ask("write/commit", write=begun["write"], files=files) == "Refused", change
    assert (list(path.rglob("bucket*")), theirs.exists(), _open_writers(driver)) == ([], True, 0)


@pytest.mark.parametrize(
    "files",
    [None, [[]], [["p", [], 0, 0, 1, -1]], [["p", [], 4096, 0, 1, 1]], [["p", 0, 0, 0, 1, 1]]],
)
def test_a_report_that_is_none_is_malformed(driver: Driver, files: Any) -> None:
    driver.create_table()
    begun = _begin(driver)
    assert driver.ask("write/commit", write=begun["write"], files=files) == "Malformed"
    driver.ask("write/abort", write=begun["write"])


def test_values_become_the_names_of_hives_partitions(driver: Driver) -> None:
    driver.create_table(is_partitioned=True)
    begun = _begin(driver)
    files = []
    for number, value in enumerate([None, "a/b", "p", "x y"]):
        files += [[file[0], [value], *file[2:]] for file in _task(driver, begun, number=number)]
    assert driver.ask("write/commit", write=begun["write"], files=files) == {}
    names = driver.metastore.get_partition_names("db", "t")
    assert sorted(names) == ["p=__HIVE_DEFAULT_PARTITION__", "p=a%2Fb", "p=p", "p=x y"]


def test_what_cannot_be_written_as_hive_would_is_refused(driver: Driver) -> None:
    driver.create_table("i", transactional_properties="insert_only")
    assert _begin(driver, "i") == "Refused"
    view = objects.acid_table("db", "mv", type="MATERIALIZED_VIEW")
    driver.metastore.create_table(view)
    assert _begin(driver, "mv") == "Refused"
    storage = objects.orc_storage(bucket_columns=("id",), bucket_count=2)
    driver.metastore.create_table(objects.acid_table("db", "b", storage=storage))
    assert _begin(driver, "b") == "Refused"
    for kind, expression in ((ConstraintKind.CHECK, "id > 0"), (ConstraintKind.DEFAULT, "7")):
        name = kind.name.lower()
        driver.create_table(name)
        constraint = ColumnConstraint(name="c", kind=kind, column="id", expression=expression)
        driver.metastore.add_constraints("db", name, [constraint])
        assert _begin(driver, name) == "Refused", kind
    assert _open_writers(driver) == 0


def test_a_table_that_changed_since_it_was_loaded_is_not_written(driver: Driver) -> None:
    driver.create_table()
    definition = driver.load()["definition"]
    table = driver.describe()
    columns = (*table.storage.columns, replace(table.storage.columns[0], name="more"))
    changed = replace(table, storage=replace(table.storage, columns=columns))
    driver.metastore.alter_table("db", "t", changed)
    answer = driver.ask("write/begin", namespace="db", name="t", definition=definition)
    assert (answer, _open_writers(driver)) == ("TableChanged", 0)


def test_the_end_of_the_service_aborts(driver: Driver) -> None:
    path = driver.create_table()
    begun = _begin(driver)
    assert parse_uri(begun["staging"]).path.startswith(str(path))
    driver.endpoint.stop()
    assert (list(path.rglob("_tmp*")), _open_writers(driver)) == ([], 0)
