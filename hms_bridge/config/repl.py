"""Settings of replication: dumps, loads, policies."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.config.declare import setting
from hms_bridge.config.values import GivenValues as Given

# fmt: off


BY_THREADS, BY_SPARK = "threads", "spark"
"""What copies the large files of a load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplSettings:
    """Replication. ``external_base`` None: no place for data of external tables is known."""

    root: str = setting(Given.place, "hive.repl.rootdir", "repl",
        "Where dumps are written: a path or a URI. Where fs.defaultFS is a cluster: "
        "/user/USER/repl, if nothing is set.", on_cluster="/user/USER/repl")
    open_txn_timeout_ms: int = setting(Given.duration_ms,
        "hive.repl.bootstrap.dump.open.txn.timeout", "1h",
        "How long a bootstrap dump waits for open transactions of the database.", unit="h")
    is_abort_allowed: bool = setting(Given.flag,
        "hive.repl.bootstrap.dump.abort.write.txn.after.timeout", "false",
        "Whether a bootstrap dump then aborts those that hold locks, instead of giving up (Hive's "
        "default is true).")
    external_base: str | None = setting(Given.place_or_none,
        "hive.repl.replica.external.table.base.dir", "",
        "Where a replica keeps data of external tables: their path at the source is added to it.")
    functions_root: str = setting(Given.place, "hive.repl.replica.functions.root.dir", "functions",
        "Where a replica keeps the files that functions need: a path or a URI. Where fs.defaultFS "
        "is a cluster: /user/USER/repl/functions, if nothing is set.",
        on_cluster="/user/USER/repl/functions")
    is_external_metadata_only: bool = setting(Given.flag,
        "hive.repl.dump.metadata.only.for.external.table", "true",
        "Whether dumps leave the data of external tables alone. If not, a load copies it below "
        "hive.repl.replica.external.table.base.dir, which the dump needs too.")
    is_previous_kept: bool = setting(Given.flag, "hive.repl.retain.prev.dump.dir", "false",
        "Whether older dumps stay when a new one is finished; all of them do.")
    dump_ttl_ms: int = setting(Given.duration_ms, "hive.repl.dumpdir.ttl", "7d",
        "How long a loaded dump stays at least. Older ones are removed, but for the newest and "
        "those that it follows on, from their bootstrap dump on (Hive removes those that are not "
        "loaded, too).", unit="d")
    dump_clean_interval_ms: int = setting(Given.duration_ms, "hive.repl.dumpdir.clean.freq", "0s",
        "How often hms-bridge serve removes loaded dumps that are older than "
        "hive.repl.dumpdir.ttl; cycles of policies do so each time. 0 means never.", unit="s")
    is_filtered: bool = setting(Given.flag, "hive.repl.filter.transactions", "true",
        "Whether incremental dumps leave out transactions that wrote to other databases only "
        "(Hive's default is false).")
    is_batched: bool = setting(Given.flag, "hive.repl.batch.incremental.events", "true",
        "Whether dumped events stand in directories of batches; false for a Hive 3 that loads "
        "them.")
    batch_size: int = setting(Given.number, "hive.repl.approx.max.load.tasks", "10000",
        "Events of one batch.", low=1)
    event_limit: int | None = setting(Given.number_or_none, "hms.bridge.repl.dump.events.max", "",
        "How many events of the notification log an incremental dump covers at most; the next one "
        "goes on. Empty means all that there are.", low=1)
    has_checksums: bool = setting(Given.flag, "hms.bridge.repl.dump.checksums", "true",
        "Whether dumps name files with checksum and archive. Set it to false for a real Hive that "
        "loads from a file system without checksums of its own: it takes such a file for changed.")
    load_roots: tuple[str, ...] = setting(Given.places, "hms.bridge.repl.load.roots", "",
        "The only places below which loads read files of dumps, comma-separated. Empty: those that "
        "--files-from names, or that the replica's database noted at its last load.")
    is_from_hive: bool = setting(Given.flag, "hms.bridge.repl.load.from.hive", "false",
        "Whether loads take dumps without a manifest, which cannot prove that they are whole: "
        "those of Hive, and of early versions.")
    passed_kinds: frozenset[str] = setting(Given.names, "hms.bridge.repl.passed.kinds",
        "EVENT_DELETE_PART_COL_STAT,EVENT_DELETE_TABLE_COL_STAT,EVENT_UPDATE_PART_COL_STAT,"
        "EVENT_UPDATE_TABLE_COL_STAT,RELOAD,UPDATE_PART_COL_STAT_EVENT_BATCH",
        "Kinds of events that a replica can do without, comma-separated, as dumps name them, or "
        "as the notification log does; _functions and _constraints for those of tables that come "
        "whole. Any other kind that cannot be replayed is refused. What is let pass is counted in "
        "the report.")
    event_budget_ms: int = setting(Given.duration_ms, "hms.bridge.repl.events.budget", "30d",
        "How long notification events are kept at most for the next dump of a replicated database, "
        "beyond their time to live. A database that was not dumped for so long is given up: its "
        "replica has to be bootstrapped anew.", unit="d")
    event_budget_bytes: int | None = setting(Given.number_or_none,
        "hms.bridge.repl.events.budget.bytes", "",
        "How many bytes the messages of such events may have together, beyond their time to live: "
        "the newest of them are kept. A database whose next dump needs older ones is given up in "
        "the same way. Empty means any amount.", low=0)
    late_after_ms: int = setting(Given.duration_ms, "hms.bridge.repl.policy.late.after", "6h",
        "How long no cycle of a policy may succeed until hooks are told that it is late: the point "
        "LATE_POLICY. 0 means never.", unit="s", low=0)
    is_drop_allowed: bool = setting(Given.flag, "hms.bridge.repl.load.drop.database", "false",
        "Whether a load drops the replica's database, with all that it holds, if its source has "
        "dropped it. If not, such a load is refused.")
    bandwidth: int | None = setting(Given.number_or_none, "hms.bridge.repl.bandwidth", "",
        "How many bytes a second a load copies at most, all its threads together. Empty means as "
        "many as it can.", low=1)
    is_read_first: bool = setting(Given.flag, "hms.bridge.repl.check.first", "false",
        "Whether a load reads every byte before it changes anything, and again as it copies it.")
    copy_with: str = setting(Given.choice, "hms.bridge.repl.copy.with", BY_THREADS,
        "What copies the files of a load where they are more and larger than "
        "hive.exec.copyfile.maxnumfiles and hive.exec.copyfile.maxsize say: threads of its own "
        "process, or tasks of a Spark job.", choices=(BY_THREADS, BY_SPARK))
    copied_files_max: int = setting(Given.number, "hive.exec.copyfile.maxnumfiles", "1",
        "Up to so many files of a batch a load copies by itself, whatever their size.", low=0)
    copied_bytes_max: int = setting(Given.number, "hive.exec.copyfile.maxsize", "33554432",
        "Up to so many bytes of a batch a load copies by itself, whatever their number.", low=0)
    load_schemes: frozenset[str] = setting(Given.names, "hms.bridge.repl.load.schemes",
        "abfs,abfss,file,gs,hdfs,s3,s3a,s3n,webhdfs",
        "The only kinds of file system from which files of a dump are read.")

    @property
    def event_batch_size(self) -> int | None:
        """Events of one batch; None: they are not batched."""
        return self.batch_size if self.is_batched else None


# fmt: on
