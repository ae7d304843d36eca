"""What holds for every test."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from hms_bridge.backend.engine import Database

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")

LONG = frozenset(
    (
        "acid/test_obsolete_properties.py",
        "adoption/test_adopt.py",
        "adoption/test_adopt_golden.py",
        "backend/test_interrupts.py",
        "changemanager/test_delete_protocol.py",
        "cleaner/test_cleaning_trouble.py",
        "cli/test_adopt.py",
        "cli/test_bad_input.py",
        "cli/test_file_systems.py",
        "cli/test_formats.py",
        "cli/test_initiator.py",
        "cli/test_logs.py",
        "cli/test_output.py",
        "cli/test_repl_options.py",
        "cli/test_repl_policies.py",
        "clients",
        "compaction/test_golden_compaction.py",
        "compaction/test_power_loss.py",
        "compaction/test_worker.py",
        "conformance/test_thrift_metastore.py",
        "orc/test_round_trip.py",
        "orc/test_stripe_copy.py",
        "repl/test_compare.py",
        "repl/test_compare_faults.py",
        "repl/test_compare_kinds.py",
        "repl/test_compare_simulated.py",
        "repl/test_discard.py",
        "repl/test_dump_crash.py",
        "repl/test_dump_manifest.py",
        "repl/test_edges.py",
        "repl/test_lease.py",
        "repl/test_load_crash_matrix.py",
        "repl/test_load_golden.py",
        "repl/test_load_rows.py",
        "repl/test_replica_gate.py",
        "repl/test_tables_anew.py",
        "repl/test_two_metastores.py",
        "repl/test_unreported_writes.py",
        "repl/test_write_id_truth.py",
        "rows/test_golden_rows.py",
        "rows/test_writer.py",
        "server/test_golden_replay.py",
        "server/test_malformed_input.py",
        "service/test_allowed_deletions.py",
        "service/test_bound_deletions.py",
        "service/test_hooks.py",
        "service/test_many_at_once.py",
        "service/test_warehouse_files.py",
        "session/test_heartbeat.py",
        "simulation/test_cleaning_schedules.py",
        "simulation/test_found.py",
        "simulation/test_simulated_cluster.py",
        "spark",
        "txn/test_txn_machine.py",
        "wire/test_fields.py",
    )
)
"""What takes the most time (`pytest --durations 0`), also to be collected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make quick` asks for it."""
    parser.addoption("--quick", action="store_true", help="without the files that take long")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nothing is said of what is not left out: others may have a reason."""
    here = Path(__file__).parent
    is_long = collection_path.relative_to(here).as_posix() in LONG
    return True if is_long and config.getoption("quick") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Spark run in one process, so that a run starts one session."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for the whole run."""
    import pyspark

    from hms_bridge.spark.session import open_session
    from tests.support.quick_jvm import prefer_quick_start

    prefer_quick_start(os.environ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own sockets and deprecated calls
        session = open_session("tests", master="local[2]")
        if not pyspark.__version__.startswith("3."):  # which have no data sources in Python
            from hms_bridge.spark.data_source import register

            register(session)
        yield session
        session.stop()


@pytest.fixture(scope="session")
def fast_root() -> Iterator[Path]:
    """A folder in memory where there is one: syncs cost nothing there."""
    memory = Path("/dev/shm")
    above = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=above, prefix="hms-bridge-") as folder:
        yield Path(folder)


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """The same for one test, removed after it."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def database() -> Iterator[Database]:
    """With the schema, and nothing in it."""
    from tests.support.databases import fresh_database

    with fresh_database() as opened:
        yield opened


@pytest.fixture
def shared_database(tmp_path: Path) -> Iterator[Database]:
    """One that threads can use side by side."""
    from tests.support.databases import fresh_database

    with fresh_database(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def empty_database(fast_root: Path) -> Path:
    """A database with the schema, to be copied."""
    from tests.support.program import Program

    program = Program(fast_root / "empty")
    program.folder.mkdir()
    program.ok("schema", "init")
    return program.folder / "metastore.db"
