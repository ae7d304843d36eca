"""Every setting, declared once: Hive's name, aliases, kind, default, what it does.

Names, defaults and units are Hive's (MetastoreConf.ConfVars, HiveConf.ConfVars); those that begin
with ``hms.bridge.`` are ours. ``docs/reference/settings.md`` and
``conf/hive-site.xml.template`` are generated from this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What the text of a setting must be."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    BOOLEAN = "true or false"
    DURATION = "duration"


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One setting. ``unit`` is what a bare number of a duration means."""

    name: str
    kind: Kind
    default: str
    doc: str
    aliases: tuple[str, ...] = ()
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None


def _text(name: str, default: str, doc: str, *aliases: str) -> Key:
    return Key(name=name, kind=Kind.TEXT, default=default, doc=doc, aliases=aliases)


def _flag(name: str, default: bool, doc: str, *aliases: str) -> Key:
    return Key(name=name, kind=Kind.BOOLEAN, default=str(default).lower(), doc=doc, aliases=aliases)


def _number(
    name: str, default: int, doc: str, *aliases: str, low: int = 0, high: int | None = None
) -> Key:
    return Key(
        name=name, kind=Kind.INTEGER, default=str(default), doc=doc, aliases=aliases,
        minimum=low, maximum=high,
    )  # fmt: skip


def _time(
    name: str, default: str, unit: str, doc: str, *aliases: str, low_ms: int | None = 0
) -> Key:
    return Key(
        name=name, kind=Kind.DURATION, default=default, doc=doc, aliases=aliases, unit=unit,
        minimum=low_ms,
    )  # fmt: skip


WAREHOUSE = _text(
    "hive.metastore.warehouse.dir", "warehouse",
    "Where managed tables live: a path or a URI. Where fs.defaultFS is a cluster: "
    "/user/hive/warehouse, if nothing is set.", "metastore.warehouse.dir",
)  # fmt: skip
EXTERNAL_WAREHOUSE = _text(
    "hive.metastore.warehouse.external.dir", "",
    "Where external tables live that give no place of their own, and what new databases tell as "
    "their location; empty: hive.metastore.warehouse.dir. Beside a Hive: its own value.",
    "metastore.warehouse.external.dir",
)  # fmt: skip
DELETION_ROOTS = _text(
    "hms.bridge.deletion.roots", "",
    "More directories below which files of dropped and emptied tables may be deleted, besides the "
    "warehouses and the directories of databases: a comma-separated list. Elsewhere files stay.",
)  # fmt: skip
FILE_SYSTEMS = _text(
    "hms.bridge.file.systems", "",
    "More file systems on hosts (hdfs://HOST:PORT, webhdfs://HOST:PORT) to which the metastore "
    "connects for locations that clients give, besides those of the other settings and Hadoop's "
    "name services: a comma-separated list. External tables elsewhere are only noted.",
)  # fmt: skip
THRIFT_PORT = _number(
    "metastore.thrift.port", 9083, "The port of the server; 0 picks a free one.",
    "hive.metastore.port", high=65535,
)  # fmt: skip
MAX_MESSAGE_SIZE = _number(
    "metastore.server.max.message.size", 104_857_600,
    "The longest message that a client may send, in bytes.",
    "hive.metastore.server.max.message.size", low=1024,
)  # fmt: skip
MAX_MESSAGE_ELEMENTS = _number(
    "hms.bridge.server.max.message.elements", 5_000_000,
    "The most fields and entries of lists, sets and maps that a message may hold. Each takes "
    "about 150 bytes of memory.", low=1024,
)  # fmt: skip
MAX_CONTAINER_LENGTH = _number(
    "hms.bridge.server.max.container.length", 1_000_000,
    "The most entries that one list, set or map of a message may hold.", low=1024,
)  # fmt: skip
MAX_CONNECTIONS = _number(
    "metastore.server.max.threads", 1000,
    "The most connections that are open at the same time.",
    "hive.metastore.server.max.threads", low=1,
)  # fmt: skip
IDLE_TIMEOUT = _time(
    "hms.bridge.server.idle.timeout", "60s", "s",
    "When all connections are in use, the one whose client sends nothing, or half a message, or "
    "does not take its answer for longest, and for this long at least, is closed for a new one. "
    "Clients of Hive connect again by themselves.",
)  # fmt: skip
EVENT_HOOKS = _text(
    "hms.bridge.event.hooks", "",
    "Python objects that are told of every notification event after its commit, at least once "
    "and in order: a comma-separated list of module:attribute. A hook's position in the log is "
    "stored under that name.",
)  # fmt: skip
EVENT_MESSAGE_FORMAT = _text(
    "hms.bridge.event.message.format",
    "gzip(json-2.0)",
    "How event messages are stored: gzip(json-2.0), as Hive 4, or json-0.2, plain text.",
)
ALTER_PARTITIONS_ONE_EVENT = _flag(
    "metastore.alterPartitions.notification.v2.enabled", True,
    "Whether a change of partitions is one event ALTER_PARTITIONS, as Hive 4.2 logs it, or an "
    "ALTER_PARTITION for each, for readers that do not know the former.",
    "hive.metastore.alterPartitions.notification.v2.enabled",
)  # fmt: skip
EVENT_TTL = _time(
    "metastore.event.db.listener.timetolive", "1d", "s",
    "How long notification events are kept.", "hive.metastore.event.db.listener.timetolive",
)  # fmt: skip
REPL_EVENT_TTL = _time(
    "metastore.repl.event.db.listener.timetolive", "10d", "s",
    "How long notification events are kept while the ChangeManager is on.",
    "hive.repl.event.db.listener.timetolive",
)  # fmt: skip
TXN_TIMEOUT = _time(
    "metastore.txn.timeout", "300s", "s",
    "A transaction or lock without a heartbeat for this long is aborted.",
    "hive.txn.timeout", low_ms=1000,
)  # fmt: skip
REPL_TXN_TIMEOUT = _time(
    "metastore.repl.txn.timeout", "11d", "d", "The same for replayed transactions.",
    "hive.repl.txn.timeout",
)  # fmt: skip
OPEN_TXN_TIMEOUT = _time(
    "metastore.txn.opentxn.timeout", "1000ms", "ms",
    "Within this time an opened transaction may not be visible to others yet.",
    "hive.txn.opentxn.timeout",
)  # fmt: skip
MAX_OPEN_BATCH = _number(
    "metastore.txn.max.open.batch", 1000, "Most transactions that one call opens.",
    "hive.txn.max.open.batch", low=1,
)  # fmt: skip
MAX_OPEN_TXNS = _number(
    "metastore.max.open.txns", 100_000, "Most transactions that may be open.",
    "hive.max.open.txns", low=1,
)  # fmt: skip
INITIATOR_ON = _flag(
    "metastore.compactor.initiator.on",
    False,
    "Whether the server looks for tables to compact.",
    "hive.compactor.initiator.on",
)
CLEANER_ON = _flag(
    "metastore.compactor.cleaner.on",
    False,
    "Whether the server runs the cleaner.",
    "hive.compactor.cleaner.on",
)
WORKER_THREADS = _number(
    "metastore.compactor.worker.threads", 0, "Compaction workers of the server.",
    "hive.compactor.worker.threads", high=64,
)  # fmt: skip
WORKER_TIMEOUT = _time(
    "hive.compactor.worker.timeout",
    "86400s",
    "s",
    "A compaction that takes longer is given back to the queue.",
)
CHECK_INTERVAL = _time(
    "hive.compactor.check.interval", "300s", "s", "How often the initiator looks.", low_ms=100
)
DELTA_NUM_THRESHOLD = _number(
    "hive.compactor.delta.num.threshold", 10, "More deltas than this ask for a minor compaction."
)
DELTA_PCT_THRESHOLD = Key(
    name="hive.compactor.delta.pct.threshold", kind=Kind.DECIMAL, default="0.1",
    doc="A larger share of delta bytes to base bytes asks for a major compaction.", minimum=0,
)  # fmt: skip
ABORTED_TXN_THRESHOLD = _number(
    "hive.compactor.abortedtxn.threshold",
    1000,
    "More aborted writes than this are cleaned up; where they share deltas with other writes, a "
    "major compaction is asked for.",
)
ABORTED_TXN_TIME_THRESHOLD = _time(
    "hive.compactor.aborted.txn.time.threshold",
    "12h",
    "h",
    "An aborted write older than this is cleaned up; where it shares a delta with other writes, a "
    "minor compaction is asked for. A negative time switches this off.",
    low_ms=None,
)
FAILED_COMPACTS_THRESHOLD = _number(
    "hive.compactor.initiator.failed.compacts.threshold", 2,
    "After so many failed compactions of a table or partition in a row the initiator leaves it "
    "alone.", "metastore.compactor.initiator.failed.compacts.threshold", low=1, high=20,
)  # fmt: skip
FAILED_RETRY_TIME = _time(
    "hive.compactor.initiator.failed.retry.time", "7d", "d",
    "… but tries again after this time; 0 means never.",
    "metastore.compactor.initiator.failed.retry.time",
)  # fmt: skip
VERIFY = _text(
    "hms.bridge.compactor.verify", "keys",
    "What a second reader compares before a compaction is published: full (all values), keys (the "
    "rows' identifiers) or counts.",
)  # fmt: skip
CLEANER_INTERVAL = _time(
    "hive.compactor.cleaner.run.interval", "5000ms", "ms", "How often the cleaner looks.",
    low_ms=100,
)  # fmt: skip
DELAYED_CLEANUP = _flag(
    "hive.compactor.delayed.cleanup.enabled",
    False,
    "Whether replaced files stay for a while after the last reader.",
)
CLEANER_RETENTION = _time(
    "hive.compactor.cleaner.retention.time.seconds",
    "300s",
    "s",
    "How long, where delayed clean-up is on.",
)
CLEANER_MAX_ATTEMPTS = _number(
    "hive.compactor.cleaner.retry.maxattempts", 5,
    "Failed attempts after which a clean-up is given up.", high=10,
)  # fmt: skip
CLEANER_RETRY_RETENTION = _time(
    "hive.compactor.cleaner.retry.retention.time", "300s", "s",
    "The wait after the first failed clean-up; it doubles each time.",
    "hive.compactor.cleaner.retry.retentionTime",
)  # fmt: skip
CM_ENABLED = _flag(
    "hive.repl.cm.enabled", True,
    "Whether replaced files of replicated databases are archived (Hive's default is false).",
    "metastore.repl.cm.enabled",
)  # fmt: skip
CM_ROOT = _text(
    "hive.repl.cmrootdir", "cmroot",
    "The archive: a path or a URI, on the file system of the warehouse. Where fs.defaultFS is a "
    "cluster: /user/USER/cmroot, if nothing is set.",
    "metastore.repl.cmrootdir",
)  # fmt: skip
CM_RETAIN = _time(
    "hive.repl.cm.retain", "10d", "h",
    "How long archived files are kept. A bare number means HOURS, as in Hive's metastore.",
    "metastore.repl.cm.retain", low_ms=1,
)  # fmt: skip
CM_INTERVAL = _time(
    "hive.repl.cm.interval", "3600s", "s", "How often the archive is purged.",
    "metastore.repl.cm.interval", low_ms=100,
)  # fmt: skip
CM_TRASH = _text(
    "hms.bridge.cm.trash.dir", "",
    "Where the purge moves files of tables and partitions that were dropped without PURGE: a "
    "directory outside of the archive; empty keeps such files in the archive.",
)  # fmt: skip
CM_TRASH_RETAIN = _time(
    "hms.bridge.cm.trash.retain", "30d", "d",
    "How much longer than hive.repl.cm.retain files of what was dropped without PURGE are kept: in "
    "hms.bridge.cm.trash.dir, or in the archive where that is empty.",
)  # fmt: skip
CM_ELSEWHERE = _flag(
    "hms.bridge.cm.other.file.system", False,
    "Whether the archive may lie on another file system than the warehouse. Files are then copied "
    "into it instead of renamed, and Hive's own REPL LOAD must reach it too.",
)  # fmt: skip
HDFS_CLIENT = _text(
    "hms.bridge.hdfs.client", "auto",
    "How hdfs:// is spoken: auto (natively where hdfs-native is installed, else over HTTP) or "
    "http.",
)  # fmt: skip
WEB_HDFS = _text(
    "hms.bridge.webhdfs.addresses", "",
    "HTTP addresses of HDFS clusters that Hadoop's configuration does not name: "
    "AUTHORITY=HOST:PORT, comma-separated, where AUTHORITY is what stands in hdfs:// URIs and "
    "HOST:PORT its NameNode's dfs.namenode.http-address, or an HttpFS gateway. HDFS's checksums "
    "and extended attributes go over HTTP.",
)  # fmt: skip
HADOOP_USER = _text(
    "hms.bridge.hadoop.user", "",
    "Who HDFS takes this program for, where there is no Kerberos; empty means HADOOP_USER_NAME, "
    "or who runs it.",
)  # fmt: skip
REPL_ROOT = _text(
    "hive.repl.rootdir", "repl",
    "Where dumps are written: a path or a URI. Where fs.defaultFS is a cluster: /user/USER/repl, "
    "if nothing is set.",
)  # fmt: skip
REPL_OPEN_TXN_TIMEOUT = _time(
    "hive.repl.bootstrap.dump.open.txn.timeout",
    "1h",
    "h",
    "How long a bootstrap dump waits for open transactions of the database.",
)
REPL_ABORT_WRITERS = _flag(
    "hive.repl.bootstrap.dump.abort.write.txn.after.timeout", False,
    "Whether a bootstrap dump then aborts those that hold locks, instead of giving up "
    "(Hive's default is true).",
)  # fmt: skip
REPL_EXTERNAL_BASE = _text(
    "hive.repl.replica.external.table.base.dir", "",
    "Where a replica keeps data of external tables: their path at the source is added to it.",
)  # fmt: skip
REPL_EXTERNAL_METADATA_ONLY = _flag(
    "hive.repl.dump.metadata.only.for.external.table", True,
    "Whether dumps leave the data of external tables alone. If not, a load copies it below "
    "hive.repl.replica.external.table.base.dir, which the dump needs too.",
)  # fmt: skip
REPL_KEEP_PREVIOUS = _flag(
    "hive.repl.retain.prev.dump.dir", False,
    "Whether older dumps stay when a new one is finished; all of them do.",
)  # fmt: skip
REPL_FILTER_TXNS = _flag(
    "hive.repl.filter.transactions", True,
    "Whether incremental dumps leave out transactions that wrote to other databases only "
    "(Hive's default is false).",
)  # fmt: skip
REPL_BATCH_EVENTS = _flag(
    "hive.repl.batch.incremental.events", True,
    "Whether dumped events stand in directories of batches; false for a Hive 3 that loads them.",
)  # fmt: skip
REPL_BATCH_SIZE = _number(
    "hive.repl.approx.max.load.tasks", 10_000, "Events of one batch.", low=1,
)  # fmt: skip
REPL_CHECKSUMS = _flag(
    "hms.bridge.repl.dump.checksums", True,
    "Whether dumps name files with checksum and archive. Set it to false for a real Hive that "
    "loads from a file system without checksums of its own: it takes such a file for changed.",
)  # fmt: skip
REPL_LOAD_ROOTS = _text(
    "hms.bridge.repl.load.roots", "",
    "The only places below which files of a dump are read, archive and external tables included: "
    "a comma-separated list of paths and URIs; empty means anywhere.",
)  # fmt: skip
REPL_PASSED_KINDS = _text(
    "hms.bridge.repl.passed.kinds",
    "EVENT_DELETE_PART_COL_STAT,EVENT_DELETE_TABLE_COL_STAT,EVENT_UPDATE_PART_COL_STAT,"
    "EVENT_UPDATE_TABLE_COL_STAT,RELOAD,UPDATE_PART_COL_STAT_EVENT_BATCH",
    "Kinds of events that a replica can do without, comma-separated, as dumps name them, or as the "
    "notification log does; _functions and _constraints for those of tables that come whole. Any "
    "other kind that cannot be replayed is refused. What is let pass is counted in the report.",
)  # fmt: skip
REPL_LOAD_SCHEMES = _text(
    "hms.bridge.repl.load.schemes", "abfs,abfss,file,gs,hdfs,s3,s3a,s3n,webhdfs",
    "The only kinds of file system from which files of a dump are read.",
)  # fmt: skip

METASTORE_URIS = _text(
    "metastore.thrift.uris", "",
    "The metastore to connect to if neither --metastore nor --database is given, as "
    "thrift://HOST:PORT, or several of them, comma-separated. Verbs that need the metastore's own "
    "database (serve, cleaner, cm, initiator, schema) use javax.jdo.option.ConnectionURL instead.",
    "hive.metastore.uris",
)  # fmt: skip
CONNECTION_URL = _text(
    "javax.jdo.option.ConnectionURL", "",
    "The metastore's database if nothing else names one: a JDBC URL of PostgreSQL, MySQL or "
    "MariaDB. Parameters that have no meaning here are left out, unknown ones refused.",
)  # fmt: skip
CONNECTION_DRIVER = _text(
    "javax.jdo.option.ConnectionDriverName", "",
    "Java's driver; it must fit the database of the URL.",
)  # fmt: skip
CONNECTION_USER = _text("javax.jdo.option.ConnectionUserName", "", "User of the database.")
CONNECTION_PASSWORD = _text(
    "javax.jdo.option.ConnectionPassword", "", "Password of the database; never shown.",
)  # fmt: skip

KEYS: tuple[Key, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Key))
"""All settings, in the order above."""
