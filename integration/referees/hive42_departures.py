"""Where the Hive 4.2.0 of the cases is not a stock one: every setting, why, and what ends it.

A case holds it true: what the referee sets stands here, nothing here is Hive's default, and the
README's table is made from it. None of them spares hms-bridge.
"""

from __future__ import annotations

from dataclasses import dataclass

STAYS = "stays"


@dataclass(frozen=True, kw_only=True, slots=True)
class Departure:
    """Settings that are not Hive's defaults, why, and when they go."""

    settings: tuple[str, ...]
    reason: str
    end: str = STAYS


DEPARTURES = (
    Departure(
        settings=(
            "javax.jdo.option.ConnectionDriverName",
            "javax.jdo.option.ConnectionPassword",
            "javax.jdo.option.ConnectionURL",
            "javax.jdo.option.ConnectionUserName",
            "datanucleus.connectionPool.maxPoolSize",
        ),
        reason="the metastore's database, PostgreSQL as in real use, with few connections",
    ),
    Departure(
        settings=(
            "fs.defaultFS",
            "hadoop.tmp.dir",
            "hive.exec.local.scratchdir",
            "hive.exec.scratchdir",
            "hive.jar.directory",
            "hive.metastore.warehouse.dir",
            "hive.metastore.warehouse.external.dir",
            "hive.repl.cmrootdir",
            "hive.repl.rootdir",
            "hive.user.install.directory",
            "metastore.warehouse.dir",
            "tez.staging-dir",
        ),
        reason="every run has folders of its own on the local disk",
    ),
    Departure(
        settings=("hive.support.concurrency", "hive.txn.manager"),
        reason="ACID tables need Hive's own transactions, which are off in a stock Hive",
    ),
    Departure(
        settings=(
            "hive.metastore.dml.events",
            "hive.metastore.transactional.event.listeners",
            "hive.repl.cm.enabled",
        ),
        reason="replication needs events, also of plain tables, and the archive",
    ),
    Departure(
        settings=(
            "hive.tez.container.size",
            "mapreduce.client.completion.pollinterval",
            "mapreduce.framework.name",
            "tez.ignore.lib.uris",
            "tez.local.mode",
            "tez.local.mode.without.network",
            "tez.runtime.optimize.local.fetch",
        ),
        reason="queries and compactions run inside the one process, without YARN",
    ),
    Departure(
        settings=(
            "hive.lock.numretries",
            "hive.lock.sleep.between.retries",
            "hive.repl.bootstrap.dump.open.txn.timeout",
        ),
        reason="what a case leaves locked or open fails the next one instead of hanging it",
    ),
    Departure(
        settings=("hive.notification.event.poll.interval",),
        reason="the session reads what it needs when asked; a thread of its own would outlive it",
    ),
    Departure(
        settings=("hive.query.results.cache.enabled",),
        reason="a repeated SELECT has to read the table again: that is what cases look at",
    ),
    Departure(
        settings=("hive.compactor.table.optimizers",),
        reason="the default names Iceberg's optimizer too, whose jar is no part of Hive's",
        end="when the referee installs Iceberg's Hive module",
    ),
)


def departing_settings() -> frozenset[str]:
    """All names."""
    return frozenset(name for departure in DEPARTURES for name in departure.settings)


def departures_table() -> str:
    """As it stands in the README."""
    lines = ["| settings | reason | ends |", "|---|---|---|"]
    for departure in DEPARTURES:
        names = ", ".join(f"`{name}`" for name in departure.settings)
        lines.append(f"| {names} | {departure.reason} | {departure.end} |")
    return "\n".join(lines) + "\n"
