"""Every setting, declared once, at the field of the frozen record that holds it.

Names, defaults and units are Hive's (MetastoreConf.ConfVars, HiveConf.ConfVars); those that begin
with ``hms.bridge.`` are ours. ``docs/reference/settings.md`` and ``conf/hive-site.xml.template``
are generated from here. The records are made once at start (:mod:`hms_bridge.config.reading`);
below ``cli/`` nobody reads a string key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from changemanager.config import PinBudget
from changemanager.hadoop import HadoopConfig
from hms_bridge.config.access import AccessSettings
from hms_bridge.config.declare import keys_of, setting
from hms_bridge.config.jdbc import JdbcConnection
from hms_bridge.config.repl import ReplSettings
from hms_bridge.config.values import GivenValues as Given
from hms_bridge.config.values import Key

# fmt: off


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """The thrift server. Its bounds hold before memory is given to a message; the depth of structs
    inside structs is bounded by the thrift library (64)."""

    port: int = setting(Given.number, "metastore.thrift.port", "9083",
        "The port of the server; 0 picks a free one.", "hive.metastore.port", high=65535)
    message_size_bytes_max: int = setting(Given.number, "metastore.server.max.message.size",
        "104857600",
        "The longest message that a client may send, in bytes.",
        "hive.metastore.server.max.message.size", low=1024)
    message_elements_max: int = setting(Given.number, "hms.bridge.server.max.message.elements",
        "5000000",
        "The most fields and entries of lists, sets and maps that a message may hold. Each takes "
        "about 150 bytes of memory.", low=1024)
    processes: int = setting(Given.number, "hms.bridge.server.processes", "1",
        "How many processes answer clients. With more than one, another one does what is done in "
        "the background, and the limits on connections and on the memory of messages are divided.",
        low=1, high=64)
    container_length_max: int = setting(Given.number, "hms.bridge.server.max.container.length",
        "1000000",
        "The most entries that one list, set or map of a message may hold.", low=1024)
    messages_memory_bytes_max: int = setting(Given.number, "hms.bridge.server.messages.memory",
        "2147483648",
        "The most memory that messages of all clients may take together while they arrive and are "
        "worked on, in bytes; a message of up to 64 KiB does not count. What would take more is "
        "refused, and its connection closed, unless others are idle for long "
        "(hms.bridge.server.idle.timeout) and make room.", low=1024)
    connections_max: int = setting(Given.number, "metastore.server.max.threads", "1000",
        "The most connections that are open at the same time.",
        "hive.metastore.server.max.threads", low=1)
    host_connections_max: int | None = setting(Given.number_or_none,
        "hms.bridge.server.max.connections.per.host", "", "When all connections are in use, a host "
        "that has more than this many makes room for others. Empty means half of them.", low=1)
    idle_timeout_ms: int = setting(Given.duration_ms, "hms.bridge.server.idle.timeout", "60s",
        "When all connections are in use, the one whose client sends nothing, or half a message, "
        "or does not take its answer for longest, and for this long at least, is closed for a new "
        "one; when all memory of messages is, those whose messages take it so. Clients of Hive "
        "connect again by themselves.", unit="s")
    partitions_max: int = setting(Given.number, "metastore.limit.partition.request", "-1",
        "The most partitions that a client may read in one call; a call that would read more is "
        "refused. Names of partitions do not count; -1 means any number.",
        "hive.metastore.limit.partition.request", low=-1)
    database_wait_ms: int = setting(Given.duration_ms, "hms.bridge.database.start.wait", "5m",
        "How long serve, and repl run --every, wait at their start for a database server that does "
        "not answer yet; 0 does not wait. What it refuses is heard at once.", unit="s")
    message_timeout_ms: int = 600_000  # no setting: how long one message may take


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricsSettings:
    """Figures of the server for a monitor; off without a port."""

    port: int | None = setting(Given.number_or_none, "hms.bridge.metrics.port", "",
        "The port on which the server tells its metrics over HTTP, as OpenMetrics at /metrics; "
        "0 picks a free one, empty means not at all.", high=65535)
    host: str = setting(Given.text, "hms.bridge.metrics.host", "127.0.0.1",
        "The address of that port. Whoever reaches it reads the metrics: it asks for no password.")
    timeout_ms: int = setting(Given.duration_ms, "hms.bridge.metrics.timeout", "5s",
        "How long a scrape waits for the database; figures that take longer are left out of it and "
        "counted. Less than the monitor's own time-out, which is 10s in Prometheus.", unit="s",
        low=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class EventSettings:
    """Rules of notification events. How long they are kept is :attr:`Settings.event_ttl_ms`."""

    hooks: tuple[str, ...] = setting(Given.items, "hms.bridge.event.hooks", "",
        "Python objects that are told of every notification event after its commit, at least once "
        "and in order: a comma-separated list of module:attribute. A hook's position in the log "
        "is stored under that name.")
    pre_listeners: tuple[str, ...] = setting(Given.items, "metastore.pre.event.listeners", "",
        "Hooks that are asked before a change is committed and may refuse it: a comma-separated "
        "list of module:attribute, module.attribute, or names of installed ones.",
        "hive.metastore.pre.event.listeners")
    transactional_listeners: tuple[str, ...] = setting(Given.items,
        "metastore.transactional.event.listeners", "",
        "Hooks that are told inside of the transaction, named in the same way. Hive's "
        "DbNotificationListener may stand here, too: this metastore always logs events.",
        "hive.metastore.transactional.event.listeners")
    listeners: tuple[str, ...] = setting(Given.items, "metastore.event.listeners", "",
        "Hooks that are told after the commit, named in the same way, besides those of "
        "hms.bridge.event.hooks.", "hive.metastore.event.listeners")
    message_format: str = setting(Given.text, "hms.bridge.event.message.format", "gzip(json-2.0)",
        "How event messages are stored: gzip(json-2.0), as Hive 4, or json-0.2, plain text.")
    is_alter_partitions_one_event: bool = setting(Given.flag,
        "metastore.alterPartitions.notification.v2.enabled", "true",
        "Whether a change of partitions is one event ALTER_PARTITIONS, as Hive 4.2 logs it, or an "
        "ALTER_PARTITION for each, for readers that do not know the former.",
        "hive.metastore.alterPartitions.notification.v2.enabled")
    ttl_without_archive_ms: int = setting(Given.duration_ms,
        "metastore.event.db.listener.timetolive", "1d",
        "How long notification events are kept.", "hive.metastore.event.db.listener.timetolive",
        unit="s")
    ttl_with_archive_ms: int = setting(Given.duration_ms,
        "metastore.repl.event.db.listener.timetolive", "10d",
        "How long notification events are kept while the ChangeManager is on.",
        "hive.repl.event.db.listener.timetolive", unit="s")
    mark_ttl_ms: int = setting(Given.duration_ms, "metastore.event.expiry.duration", "0s",
        "How long marks on partitions (markPartitionForEvent) are kept; 0 keeps them for ever.",
        "hive.metastore.event.expiry.duration", unit="s")


@dataclass(frozen=True, kw_only=True, slots=True)
class HookSettings:
    """The hooks that come with this program: json-lines, webhook, command."""

    json_lines_file: str | None = setting(Given.text_or_none, "hms.bridge.hooks.json.lines.file",
        "", "The file of this machine to which the hook json-lines appends events.")
    webhook_url: str | None = setting(Given.text_or_none, "hms.bridge.hooks.webhook.url", "",
        "Where the hook webhook posts events: http://HOST:PORT/PATH or https://HOST/PATH. It "
        "connects to nothing else: no redirection is followed, no proxy asked.")
    webhook_secret: str = setting(Given.text, "hms.bridge.hooks.webhook.secret", "",
        "With what it signs them (HMAC-SHA256), 16 characters at least; ${env:NAME} takes it from "
        "the environment.", is_secret=True)
    command: str = setting(Given.text, "hms.bridge.hooks.command", "",
        "The program that the hook command runs for each event, with its words; no shell reads "
        "them. The event comes as JSON on its standard input.")
    timeout_ms: int = setting(Given.duration_ms, "hms.bridge.hooks.timeout", "30s",
        "How long webhook waits for an answer, and command for its program.", unit="s", low=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnSettings:
    """Rules of transactions and locks."""

    timeout_ms: int = setting(Given.duration_ms, "metastore.txn.timeout", "300s",
        "A transaction or lock without a heartbeat for this long is aborted.", "hive.txn.timeout",
        unit="s", low=1000)
    repl_timeout_ms: int = setting(Given.duration_ms, "metastore.repl.txn.timeout", "11d",
        "The same for replayed transactions.", "hive.repl.txn.timeout", unit="d")
    open_timeout_ms: int = setting(Given.duration_ms, "metastore.txn.opentxn.timeout", "1000ms",
        "Within this time an opened transaction may not be visible to others yet.",
        "hive.txn.opentxn.timeout", unit="ms")
    open_batch_max: int = setting(Given.number, "metastore.txn.max.open.batch", "1000",
        "Most transactions that one call opens.", "hive.txn.max.open.batch", low=1)
    open_txns_max: int = setting(Given.number, "metastore.max.open.txns", "100000",
        "Most transactions that may be open.", "hive.max.open.txns", low=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactorSettings:
    """Rules of initiator, worker and cleaner."""

    is_initiator_on: bool = setting(Given.flag, "metastore.compactor.initiator.on", "false",
        "Whether the server looks for tables to compact.", "hive.compactor.initiator.on")
    is_cleaner_on: bool = setting(Given.flag, "metastore.compactor.cleaner.on", "false",
        "Whether the server runs the cleaner.", "hive.compactor.cleaner.on")
    worker_threads: int = setting(Given.number, "metastore.compactor.worker.threads", "0",
        "Compaction workers of the server.", "hive.compactor.worker.threads", high=64)
    worker_timeout_ms: int = setting(Given.duration_ms, "hive.compactor.worker.timeout", "86400s",
        "A compaction that takes longer is given back to the queue.", unit="s")
    check_interval_ms: int = setting(Given.duration_ms, "hive.compactor.check.interval", "300s",
        "How often the initiator looks.", unit="s", low=100)
    delta_count_threshold: int = setting(Given.number, "hive.compactor.delta.num.threshold", "10",
        "More deltas than this ask for a minor compaction.")
    delta_share_threshold: float = setting(Given.decimal, "hive.compactor.delta.pct.threshold",
        "0.1",
        "A larger share of delta bytes to base bytes asks for a major compaction.")
    aborted_txn_threshold: int = setting(Given.number, "hive.compactor.abortedtxn.threshold",
        "1000",
        "More aborted writes than this are cleaned up; where they share deltas with other writes, "
        "a major compaction is asked for.")
    aborted_txn_time_threshold_ms: int = setting(Given.duration_ms,
        "hive.compactor.aborted.txn.time.threshold", "12h",
        "An aborted write older than this is cleaned up; where it shares a delta with other "
        "writes, a minor compaction is asked for. A negative time switches this off.", unit="h",
        low=None)
    failed_compactions_threshold: int = setting(Given.number,
        "hive.compactor.initiator.failed.compacts.threshold", "2",
        "After so many failed compactions of a table or partition in a row the initiator leaves "
        "it alone.", "metastore.compactor.initiator.failed.compacts.threshold", low=1, high=20)
    failed_retry_ms: int = setting(Given.duration_ms, "hive.compactor.initiator.failed.retry.time",
        "7d",
        "… but tries again after this time; 0 means never.",
        "metastore.compactor.initiator.failed.retry.time", unit="d")
    local_bytes_max: int = setting(Given.number, "hms.bridge.compactor.local.bytes",
        "67108864",
        "A compaction of at most so many bytes of input runs in the worker's own process; Spark is "
        "started for the first one of more. 0: all run on Spark.")
    verify: str = setting(Given.choice, "hms.bridge.compactor.verify", "keys",
        "What a second reader compares before a compaction is published: full (all values), keys "
        "(the rows' identifiers) or counts.", choices=("full", "keys", "counts"))
    has_hive_workers: bool = setting(Given.flag, "hms.bridge.compactor.hive.workers", "false",
        "Whether a Hive's workers take compactions here, too. Only then the default pool queues "
        "what workers of hms-bridge do not do: rebalance, and insert-only tables.")
    cleaner_interval_ms: int = setting(Given.duration_ms, "hive.compactor.cleaner.run.interval",
        "5000ms",
        "How often the cleaner looks.", unit="ms", low=100)
    cleaner_threads: int = setting(Given.number, "hive.compactor.cleaner.threads.num", "1",
        "So many tables the cleaner cleans side by side: for file systems that answer slowly.",
        low=1, high=20)
    is_cleanup_delayed: bool = setting(Given.flag, "hive.compactor.delayed.cleanup.enabled",
        "false",
        "Whether replaced files stay for a while after the last reader.")
    cleanup_delay_ms: int = setting(Given.duration_ms,
        "hive.compactor.cleaner.retention.time.seconds", "300s",
        "How long, where delayed clean-up is on.", unit="s")
    abort_retention_ms: int = setting(Given.duration_ms, "hms.bridge.cleaner.abort.retention",
        "1h",
        "How long after its abort a write counts as aborted at least, cleaned up or not: a writer "
        "that was given up for lost may still bring files, which would be read otherwise.",
        unit="s")
    cleaner_attempts_max: int = setting(Given.number, "hive.compactor.cleaner.retry.maxattempts",
        "5",
        "Failed attempts after which a clean-up is given up.", high=10)
    cleaner_retry_retention_ms: int = setting(Given.duration_ms,
        "hive.compactor.cleaner.retry.retention.time", "300s",
        "The wait after the first failed clean-up; it doubles each time.",
        "hive.compactor.cleaner.retry.retentionTime", unit="s")

    @property
    def cleaner_retention_ms(self) -> int:
        """How long replaced files stay after the last reader."""
        return self.cleanup_delay_ms if self.is_cleanup_delayed else 0


# on_cluster: what Hive takes (MetastoreConf.WAREHOUSE, HiveConf.REPL_CM_ROOT, REPL_DIR).


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveSettings:
    """The ChangeManager: whether, where, how long. Paths and URIs as given."""

    is_enabled: bool = setting(Given.flag, "hive.repl.cm.enabled", "true",
        "Whether replaced files of replicated databases are archived (Hive's default is false).",
        "metastore.repl.cm.enabled")
    root: str = setting(Given.place, "hive.repl.cmrootdir", "cmroot",
        "The archive: a path or a URI, on the file system of the warehouse. A relative path is of "
        "the metastore's folder. Where fs.defaultFS is "
        "a cluster: /user/USER/cmroot, if nothing is set.", "metastore.repl.cmrootdir",
        on_cluster="/user/USER/cmroot")
    retain_ms: int = setting(Given.duration_ms, "hive.repl.cm.retain", "10d",
        "How long archived files are kept. A bare number means HOURS, as in Hive's metastore.",
        "metastore.repl.cm.retain", unit="h", low=1)
    interval_ms: int = setting(Given.duration_ms, "hive.repl.cm.interval", "3600s",
        "How often the archive is purged.", "metastore.repl.cm.interval", unit="s", low=100)
    trash: str | None = setting(Given.place_or_none, "hms.bridge.cm.trash.dir", "",
        "Where the purge moves files of tables and partitions that were dropped without PURGE: a "
        "directory outside of the archive; empty keeps such files in the archive.")
    trash_retain_ms: int = setting(Given.duration_ms, "hms.bridge.cm.trash.retain", "30d",
        "How much longer than hive.repl.cm.retain files of what was dropped without PURGE are "
        "kept: in hms.bridge.cm.trash.dir, or in the archive where that is empty.", unit="d")
    history_retain_ms: int = setting(Given.duration_ms, "hms.bridge.cm.history.retain", "10d",
        "How long the manifest of the archive tells what was purged, removed and leased; a day at "
        "least.",
        unit="d")
    budget_ms: int = setting(Given.duration_ms, "hms.bridge.repl.archive.budget", "30d",
        "How long an archived file is kept at most for a dump that is not loaded or for the next "
        "dump of a database, beyond hive.repl.cm.retain. What needs older files is given up: the "
        "purge and repl status name it.", unit="d", low=1)
    budget_bytes: int | None = setting(Given.number_or_none,
        "hms.bridge.repl.archive.budget.bytes", "",
        "How many bytes of files that are older than hive.repl.cm.retain each such dump, and each "
        "database, may keep: the newest of them. Empty means any amount.", low=0)
    is_elsewhere_allowed: bool = setting(Given.flag, "hms.bridge.cm.other.file.system", "false",
        "Whether the archive may lie on another file system than the warehouse. Files are then "
        "copied into it instead of renamed, and Hive's own REPL LOAD must reach it too.")

    @property
    def budget(self) -> PinBudget:
        """What each dump and each policy may keep."""
        return PinBudget(keep_ms=self.budget_ms, size_bytes=self.budget_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class HdfsSettings:
    """Our own ones of HDFS; with Hadoop's they make a :class:`HadoopConfig`."""

    client: str = setting(Given.choice, "hms.bridge.hdfs.client", "auto",
        "How hdfs:// is spoken: auto (natively where hdfs-native is installed, else over HTTP) or "
        "http.", choices=("auto", "http"))
    web_addresses: Mapping[str, str] = setting(Given.addresses, "hms.bridge.webhdfs.addresses", "",
        "HTTP addresses of HDFS clusters that Hadoop's configuration does not name: "
        "AUTHORITY=HOST:PORT, comma-separated, where AUTHORITY is what stands in hdfs:// URIs and "
        "HOST:PORT its NameNode's dfs.namenode.http-address, or an HttpFS gateway. HDFS's "
        "checksums and extended attributes go over HTTP.")
    user: str | None = setting(Given.text_or_none, "hms.bridge.hadoop.user", "",
        "Who HDFS takes this program for, where there is no Kerberos; empty means "
        "HADOOP_USER_NAME, or who runs it.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSettings:
    """How long is kept what other services write down."""

    query_timeout_ms: int = setting(Given.duration_ms,
        "metastore.scheduled.queries.execution.timeout", "120s",
        "A scheduled query of whose execution nothing is heard for this long is given out again.",
        "hive.metastore.scheduled.queries.progress.timeout", unit="s")
    execution_age_max_ms: int = setting(Given.duration_ms,
        "metastore.scheduled.queries.execution.max.age", "30d",
        "How long is known how executions of scheduled queries ended.",
        "hive.metastore.scheduled.queries.execution.max.age", unit="s")
    metric_age_max_ms: int = setting(Given.duration_ms, "metastore.repl.metrics.max.age", "7d",
        "How long Hive's figures of replications are kept.",
        "hive.metastore.repl.metrics.max.age", unit="d")
    runtime_statistics_age_max_ms: int = setting(Given.duration_ms,
        "metastore.runtime.stats.max.age", "3d",
        "How long statistics are kept of what queries met.",
        "hive.metastore.runtime.stats.max.age", unit="s")


@dataclass(frozen=True, kw_only=True, slots=True)
class MetastorePlace:
    """The metastore that the settings name: servers, and a database; nothing if they name none."""

    thrift_uris: tuple[str, ...] = setting(Given.items, "metastore.thrift.uris", "",
        "The metastore to connect to if neither --metastore nor --database is given, as "
        "thrift://HOST:PORT, or several of them, comma-separated. Verbs that need the metastore's "
        "own database (serve, cleaner, cm, initiator, schema) use javax.jdo.option.ConnectionURL "
        "instead.", "hive.metastore.uris")
    connection: JdbcConnection | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All of them.

    ``external_warehouse`` None: as ``warehouse``. ``hadoop``: how file systems are reached, and
    which one bare paths are of.
    """

    warehouse: str = setting(Given.place, "hive.metastore.warehouse.dir", "warehouse",
        "Where managed tables live: a path or a URI. A relative path is of the metastore's folder. "
        "Where fs.defaultFS is a cluster: "
        "/user/hive/warehouse, if nothing is set.", "metastore.warehouse.dir",
        on_cluster="/user/hive/warehouse")
    external_warehouse: str | None = setting(Given.place_or_none,
        "hive.metastore.warehouse.external.dir", "",
        "Where external tables live that give no place of their own, and what new databases tell "
        "as their location; empty: hive.metastore.warehouse.dir. Beside a Hive: its own value.",
        "metastore.warehouse.external.dir")
    deletion_roots: tuple[str, ...] = setting(Given.items, "hms.bridge.deletion.roots", "",
        "More directories below which files of dropped and emptied tables may be deleted, and "
        "files of renamed ones moved, besides the warehouses: a comma-separated list. Elsewhere "
        "they stay, also in the directory of a database, which its client names.")
    location_roots: tuple[str, ...] = setting(Given.items, "hms.bridge.location.roots", "",
        "More directories below which the metastore makes directories and counts files, besides "
        "the warehouses and hms.bridge.deletion.roots: a comma-separated list. See metastore.md.")
    known_file_systems: tuple[str, ...] = setting(Given.items, "hms.bridge.file.systems", "",
        "More file systems on hosts (hdfs://HOST:PORT, webhdfs://HOST:PORT) to which the "
        "metastore connects for locations that clients give, besides those of the other settings "
        "and Hadoop's name services: a comma-separated list. External tables elsewhere are only "
        "noted.")
    admins: tuple[str, ...] = setting(Given.items, "metastore.users.in.admin.role", "",
        "Users that get the role admin when a server starts, for HiveServer2's SQL authorization: "
        "a comma-separated list. Nobody loses it because the list no longer names them.",
        "hive.users.in.admin.role")
    hadoop: HadoopConfig = field(default_factory=HadoopConfig)
    server: ServerSettings = field(default_factory=ServerSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    txn: TxnSettings = field(default_factory=TxnSettings)
    events: EventSettings = field(default_factory=EventSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    compactor: CompactorSettings = field(default_factory=CompactorSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    repl: ReplSettings = field(default_factory=ReplSettings)
    reports: ReportSettings = field(default_factory=ReportSettings)
    metastore: MetastorePlace = field(default_factory=MetastorePlace)

    @property
    def event_ttl_ms(self) -> int:
        """How long notification events are kept."""
        ttls = self.events
        return ttls.ttl_with_archive_ms if self.archive.is_enabled else ttls.ttl_without_archive_ms

    @property
    def event_ttl_name(self) -> str:
        """The setting that says so, as Hive's own pages call it."""
        which = "ttl_with_archive_ms" if self.archive.is_enabled else "ttl_without_archive_ms"
        return keys_of(EventSettings)[which].aliases[0]


# fmt: on

_GROUPS = (
    Settings, ServerSettings, AccessSettings, MetricsSettings, EventSettings, HookSettings,
    TxnSettings, CompactorSettings, ArchiveSettings, HdfsSettings, ReplSettings, ReportSettings,
    MetastorePlace, JdbcConnection,
)  # fmt: skip
KEYS: tuple[Key, ...] = tuple(key for group in _GROUPS for key in keys_of(group).values())
"""All settings, in the order of the pages."""

WAREHOUSE = keys_of(Settings)["warehouse"]
EXTERNAL_WAREHOUSE = keys_of(Settings)["external_warehouse"]
DELETION_ROOTS = keys_of(Settings)["deletion_roots"]
LOCATION_ROOTS = keys_of(Settings)["location_roots"]
KNOWN_FILE_SYSTEMS = keys_of(Settings)["known_file_systems"]
MAX_MESSAGE_SIZE = keys_of(ServerSettings)["message_size_bytes_max"]
TXN_TIMEOUT = keys_of(TxnSettings)["timeout_ms"]
MAX_OPEN_BATCH = keys_of(TxnSettings)["open_batch_max"]
JSON_LINES_FILE = keys_of(HookSettings)["json_lines_file"]
WEBHOOK_URL = keys_of(HookSettings)["webhook_url"]
WEBHOOK_SECRET = keys_of(HookSettings)["webhook_secret"]
HOOK_COMMAND = keys_of(HookSettings)["command"]
CM_ROOT = keys_of(ArchiveSettings)["root"]
REPL_ROOT = keys_of(ReplSettings)["root"]
FUNCTIONS_ROOT = keys_of(ReplSettings)["functions_root"]
LOAD_ROOTS = keys_of(ReplSettings)["load_roots"]
METASTORE_URIS = keys_of(MetastorePlace)["thrift_uris"]
CONNECTION_URL = keys_of(JdbcConnection)["url"]
