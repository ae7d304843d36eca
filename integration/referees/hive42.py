"""Hive 4.2.0 in a Java process that stays up: SQL, compactor threads one turn at a time, REPL.

The process is py4j's own gateway with Hive on its class path, so nothing has to be compiled. A
`HiveSession` is one Hive session: own gateway client, hence one Java thread, hence one
SessionState. Sessions of one process may use different metastores: the embedded one on PostgreSQL,
or any thrift URI given as `hive.metastore.uris`.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from integration.referees import install
from integration.referees.errors import RefereeError, StatementError
from integration.referees.java_metastore import (
    LISTENER,
    LOG_SELECTOR,
    OPENS,
    pyspark_home,
    write_log_conf,
)
from integration.referees.jdbc import database_settings
from integration.referees.postgresql import Database
from integration.referees.processes import Workplace
from integration.referees.site import write_site

Row = tuple[str, ...]
CompactorThread = Literal["Initiator", "Worker", "Cleaner"]

# What HiveServer2 tells the metastore it can do; without it ACID tables are refused.
CAPABILITIES = (
    "EXTWRITE", "EXTREAD", "HIVEBUCKET2", "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE",
    "HIVECACHEINVALIDATE", "HIVEMANAGESTATS", "HIVEMANAGEDINSERTWRITE", "HIVEMANAGEDINSERTREAD",
    "HIVESQL", "HIVEMQT", "HIVEONLYMQTWRITE", "ACCEPTS_UNMODIFIED_METADATA",
)  # fmt: skip
ACID_OPTIMIZER = "org.apache.hadoop.hive.ql.txn.compactor.AcidTableOptimizer"
ROW_SEPARATOR = "\x1e"

# py4j logs what it raises anyway, and once more for every object that outlives the Java process.
logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)


class Hive42:
    """The Java process with its embedded metastore; `session` opens sessions in it."""

    def __init__(
        self,
        workplace: Workplace,
        database: Database,
        *,
        name: str = "hive-4.2.0",
        warehouse: Path | None = None,
        settings: Mapping[str, str] | None = None,
        hadoop: Mapping[str, str] | None = None,
        user: str | None = None,
        account: str | None = None,
    ) -> None:
        """`hadoop` is its core-site.xml, whose default file system holds everything that is not of
        this process alone; `user` is who it is there. `account` of this machine runs the process.
        """
        self.database = database
        self.folder = workplace.folder(name, owner=account)
        self.warehouse = warehouse or self.folder / "warehouse"
        self.external_warehouse = self.folder / "external"
        self.change_manager_root = self.folder / "cmroot"
        conf = self.folder / "conf"
        self.settings = self._settings() | dict(hadoop or {}) | dict(settings or {})
        for path in (self.warehouse, self.external_warehouse):
            if account is not None:
                shutil.chown(path, account)
        write_site(conf / "hive-site.xml", self.settings)
        if hadoop is not None:
            write_site(conf / "core-site.xml", hadoop)
        write_log_conf(conf)
        jars = install.ensure(install.HIVE_42)
        (py4j_jar,) = (pyspark_home() / "jars").glob("py4j-*.jar")
        self._server = workplace.start(
            name,
            [install.java_21(), "-Xmx1500m", *workplace.java, f"-Djava.io.tmpdir={self.folder}",
             LOG_SELECTOR,
             *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENS),
             "-cp", f"{conf}:{jars}/*:{py4j_jar}",
             "py4j.GatewayServer", "--die-on-broken-pipe", "0"],
            env={"HADOOP_USER_NAME": user} if user else {},
            cwd=self.folder,
            user=account,
            is_piped=True,
        )  # fmt: skip
        self._port = self._read_port()
        self._sessions: list[HiveSession] = []
        self.main = self.session()

    def session(self, settings: Mapping[str, str] | None = None) -> HiveSession:
        """Open a session, with settings of its own over those of the process."""
        session = HiveSession(self._port, dict(settings or {}))
        self._sessions.append(session)
        return session

    def session_at(
        self, metastore_uri: str, settings: Mapping[str, str] | None = None
    ) -> HiveSession:
        """Open a session whose metastore is the server at `metastore_uri`."""
        return self.session({"hive.metastore.uris": metastore_uri, **(settings or {})})

    def log_tail(self) -> str:
        return self._server.log_tail()

    def reads_taken_for_empty(self) -> int:
        """How often a SELECT met a directory that went while it listed, and gave no rows."""
        return self._server.count_in_log("WARN  FetchOperator: Input path")

    def stop(self) -> None:
        for session in self._sessions:
            session.close()
        self._server.stop()

    def _read_port(self) -> int:
        pipe = self._server.process.stdout
        line = pipe.readline() if pipe else b""
        if not line.strip().isdigit():
            raise RefereeError(f"Hive 4.2.0 gave no gateway port\n{self._server.log_tail()}")
        # Tez prints its progress to standard output: somebody has to read it, or the process
        # blocks.
        threading.Thread(target=_drain, args=(pipe,), daemon=True).start()
        return int(line)

    def _settings(self) -> dict[str, str]:
        """Why each of them is not as in a stock Hive stands in `hive42_departures`."""
        folder = self.folder
        for path in (self.warehouse, self.external_warehouse):
            path.mkdir(exist_ok=True)
        return {
            **database_settings(self.database),
            "hive.metastore.warehouse.dir": str(self.warehouse),
            "metastore.warehouse.dir": str(self.warehouse),
            "hive.metastore.warehouse.external.dir": str(self.external_warehouse),
            "hive.support.concurrency": "true",
            "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
            "tez.local.mode": "true",
            "tez.local.mode.without.network": "true",
            "tez.runtime.optimize.local.fetch": "true",
            "tez.ignore.lib.uris": "true",
            "tez.staging-dir": str(folder / "staging"),
            "hive.tez.container.size": "512",
            "hive.jar.directory": str(folder / "jars"),
            "hive.user.install.directory": str(folder / "jars"),
            "mapreduce.framework.name": "local",
            "mapreduce.client.completion.pollinterval": "100",
            "fs.defaultFS": "file:///",
            "hadoop.tmp.dir": str(folder / "tmp"),
            "hive.exec.scratchdir": str(folder / "scratch"),
            "hive.exec.local.scratchdir": str(folder / "scratch-local"),
            "hive.lock.numretries": "20",
            "hive.lock.sleep.between.retries": "1s",
            "hive.repl.bootstrap.dump.open.txn.timeout": "20s",
            "hive.compactor.table.optimizers": ACID_OPTIMIZER,
            "hive.metastore.transactional.event.listeners": LISTENER,
            "hive.metastore.dml.events": "true",
            "hive.notification.event.poll.interval": "0s",
            "hive.repl.rootdir": str(folder / "repl"),
            "hive.repl.cm.enabled": "true",
            "hive.repl.cmrootdir": str(self.change_manager_root),
            "hive.query.results.cache.enabled": "false",
        }


class HiveSession:
    """One Hive session on one Java thread; calls from several Python threads wait for each
    other.
    """

    def __init__(self, port: int, settings: dict[str, str]) -> None:
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auto_convert=True)
        )
        self._lock = threading.RLock()
        self._jvm: Any = self._gateway.jvm
        hive = self._jvm.org.apache.hadoop.hive
        client = hive.metastore.HiveMetaStoreClient
        client.setProcessorIdentifier("HiveServer2#referee")
        client.setProcessorCapabilities(self._strings(CAPABILITIES))
        self._conf = hive.conf.HiveConf()
        for name, value in settings.items():
            self._conf.set(name, value)
        self._session = hive.ql.session.SessionState.start(self._conf)
        stream = hive.common.io.SessionStream(self._jvm.java.lang.System.err, True, "UTF-8")
        for field in ("out", "err", "info"):  # SET fails without them
            self._session.getClass().getField(field).set(self._session, stream)

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; rows as Hive prints their columns. StatementError carries Hive's own
        message.
        """
        with self._lock:
            self._jvm.org.apache.hadoop.hive.ql.session.SessionState.setCurrentSessionState(
                self._session
            )
            try:
                return self._run(statement)
            except Py4JJavaError as error:
                raise StatementError(
                    engine="Hive 4.2.0", statement=statement, message=_message_of(error)
                ) from error

    def run(self, thread: CompactorThread) -> None:
        """One turn of a compactor thread; the worker's until nothing waits for it.

        A turn of the worker takes one entry, and REPL LOAD queues entries that nobody asked for.
        """
        self._turn(thread)
        while thread == "Worker" and self._waiting_compactions():
            self._turn(thread)

    def _waiting_compactions(self) -> int:
        return sum(row[5] == "initiated" for row in self.sql("show compactions"))

    def _turn(self, thread: CompactorThread) -> None:
        """On a Java thread of its own, since it changes session state."""
        with self._lock:
            hive = self._jvm.org.apache.hadoop.hive
            part = getattr(hive.ql.txn.compactor, thread)()
            part.setConf(hive.conf.HiveConf(self._conf))
            # A thread that finds itself stopped already makes exactly one turn of its loop.
            part.init(self._jvm.java.util.concurrent.atomic.AtomicBoolean(True))
            part.start()
            part.join()

    @property
    def jvm(self) -> Any:
        """The Java side, for what SQL cannot say."""
        return self._jvm

    def close(self) -> None:
        self._gateway.close()

    def _run(self, statement: str) -> list[Row]:
        words = statement.split()
        factory = self._jvm.org.apache.hadoop.hive.ql.processors.CommandProcessorFactory
        processor = factory.get(self._strings(words), self._conf)
        if not processor.getClass().getSimpleName().endswith("Driver"):  # set, reset, dfs, add …
            processor.run(" ".join(words[1:]))
            return []
        rows: list[Row] = []
        try:
            processor.run(statement)
            while processor.getResults(batch := self._jvm.java.util.ArrayList()):
                rows.extend(self._rows_of(batch))
        except Py4JJavaError:
            processor.close()
            raise
        # not in a finally: after an interruption its own error would hide the KeyboardInterrupt
        processor.close()
        return rows

    def _rows_of(self, batch: Any) -> list[Row]:
        if batch.isEmpty():
            return []
        text: str = self._jvm.org.apache.hadoop.util.StringUtils.join(ROW_SEPARATOR, batch)
        return [tuple(line.split("\t")) for line in text.split(ROW_SEPARATOR)]

    def _strings(self, words: tuple[str, ...] | list[str]) -> Any:
        array = self._gateway.new_array(self._jvm.java.lang.String, len(words))
        for index, word in enumerate(words):
            array[index] = word
        return array


def table_folder(warehouse: Path, table: str) -> Path:
    """Where Hive puts the managed table `db.table` under its warehouse."""
    database, name = table.lower().split(".")
    return warehouse / name if database == "default" else warehouse / f"{database}.db" / name


def _message_of(error: Py4JJavaError) -> str:
    message = str(error.java_exception.getMessage() or error.java_exception.toString())
    return re.sub(r"\s+", " ", message).strip()


def _drain(pipe: Any) -> None:
    for _ in pipe:
        pass
