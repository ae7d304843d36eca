"""Settings that pages name are settings, or properties that our code names too."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from hms_bridge.config.protection import PROTECTIONS
from hms_bridge.config.settings import KEYS
from tests.support.documents import pages
from tests.support.golden import CHECKOUT
from tests.support.rules import holds_for

PAGES = [page for page in pages() if page.name != "CHANGELOG.md"]
_NAME = re.compile(r"(?<![\w./-])(?:hive|hms\.bridge|metastore)\.[\w.]*\w")
_FILE = re.compile(r".*\.(md|py|db)")
_READ = frozenset(
    name for names in ((key.name, *key.aliases) for key in KEYS) for name in names
) | frozenset(name for protection in PROTECTIONS for name in protection.names)
HIVE_ALONE_READS = frozenset(
    [
        "hive.compactor.clean.aborts.using.cleaner",
        "hive.compactor.crud.query.based",
        "hive.compactor.history.retention",
        "hive.constraint.notnull.enforce",
        "hive.exec.orc.base.delta.ratio",
        "hive.fetch.task.conversion",
        "hive.metastore.client.connect.retry.delay",
        "hive.metastore.connect.retries",
        "hive.metastore.disallow.incompatible.col.type.changes",
        "hive.metastore.dml.events",
        "hive.metastore.thrift.bind.host",
        "hive.repl.bootstrap.acid.tables",
        "hive.repl.bootstrap.external.tables",
        "hive.repl.failover.start",
        "hive.repl.run.data.copy.tasks.on.target",
        "hive.sql.dbcp.password",
        "hive.support.concurrency",
        "hive.transactional.events.mem",
        "hive.txn.manager",
        "hive.txn.xlock.ctas",
        "metastore.compactor.worker.pool.timeout",
        "metastore.execute.setugi",
        "metastore.server.filter.enabled",
        "metastore.stats.fetch.bitvector",
        "metastore.txn.use.minhistorywriteid",
    ]
)
"""Hive's settings and properties that pages name and this program passes over."""


def _named(page: Path) -> set[str]:
    return {name for name in _NAME.findall(page.read_text()) if not _FILE.fullmatch(name)}


@cache
def _properties() -> frozenset[str]:
    """Texts of the product: properties of databases and tables are among them."""
    code = [
        path for room in ("hms_bridge", "changemanager") for path in (CHECKOUT / room).rglob("*.py")
    ]
    nodes = (node for path in code for node in ast.walk(ast.parse(path.read_text())))
    return frozenset(
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@holds_for(PAGES)
def test_settings_that_a_page_names_are_there(page: Path) -> None:
    unknown = _named(page) - _READ - HIVE_ALONE_READS - _properties()
    assert not unknown, f"names settings that nothing reads: {', '.join(sorted(unknown))}"


def test_the_list_of_hives_settings_is_needed_and_short() -> None:
    assert set().union(*map(_named, PAGES)) >= HIVE_ALONE_READS
    assert not HIVE_ALONE_READS & _READ
