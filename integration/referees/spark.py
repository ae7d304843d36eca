"""Spark from PySpark's jars: drivers on local[2], and standalone masters with two workers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from integration.referees import install
from integration.referees.conversation import Conversation
from integration.referees.java_metastore import pyspark_home
from integration.referees.processes import QUICK_JAVA, Server, Workplace, free_port

CHECKOUT = Path(__file__).parents[2]
WORKERS = 2
VERSIONS = ("4.3", "3.5")
"""Spark's generations, of which each case of its catalog is true."""
SPARK_JAVA = " ".join(QUICK_JAVA)


def spark_home(python: str | Path) -> Path:
    """The Spark of an interpreter."""
    if str(python) == sys.executable:
        return pyspark_home()
    (home,) = Path(python).parents[1].glob("lib/python3*/site-packages/pyspark")
    return home


def spark_environment(python: str | Path = sys.executable) -> dict[str, str]:
    """What a program of Spark's is started with."""
    return {
        "JAVA_HOME": str(install.java_17().parents[1]),
        "SPARK_HOME": str(spark_home(python)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": str(python),
        "PYTHONPATH": str(CHECKOUT),
    }


class SparkDriver:
    """A driver process with one session; `sql` and `call` run in it."""

    def __init__(
        self,
        workplace: Workplace,
        *,
        master: str = "local[2]",
        metastore_uri: str | None = None,
        settings: Mapping[str, str] | None = None,
        catalog: Mapping[str, object] | None = None,
        python: str | Path = sys.executable,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`catalog`: what hms_bridge.spark.catalog.configure is given, if it is called."""
        folder = workplace.folder("spark-driver")
        chosen = {
            "spark.master": master,
            "spark.driver.memory": "768m",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"file:{folder}/warehouse",
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        }
        if metastore_uri is not None:
            chosen["spark.hadoop.hive.metastore.uris"] = metastore_uri
        conf = {
            "settings": chosen | dict(settings or {}),
            "is_hive": metastore_uri is not None,
            "is_ours": False,
            "catalog": dict(catalog or {}),
        }
        own = spark_environment(python) | dict(environment or {})
        self._start(workplace, folder, conf, python, own)

    def _start(
        self,
        workplace: Workplace,
        folder: Path,
        conf: Mapping[str, object],
        python: str | Path,
        environment: Mapping[str, str],
    ) -> None:
        path = folder / "conf.json"
        path.write_text(json.dumps(conf))
        self._server = workplace.start(
            "spark-driver",
            [python, "-m", "integration.drivers.spark_sql", path],
            env=environment,
            cwd=folder,
            is_piped=True,
        )
        self._conversation = Conversation(self._server)
        self.version: str = self._conversation.read()["ready"]

    def sql(self, statement: str) -> list[list[Any]]:
        """Rows of one statement; StatementError carries Spark's message."""
        rows: list[list[Any]] = self._conversation.ask(sql=statement)
        return rows

    def call(self, target: str, **arguments: object) -> Any:
        """Run `module:function` with the session first; arguments and result are plain JSON."""
        return self._conversation.ask(call=target, arguments=arguments)

    def stop(self) -> None:
        self._server.stop()


class OurSparkDriver(SparkDriver):
    """The same, with the session that hms-bridge opens: a user's settings, and no other."""

    def __init__(
        self,
        workplace: Workplace,
        *,
        master: str = "local[2]",
        settings: Mapping[str, str] | None = None,
        python: str | Path = sys.executable,
    ) -> None:
        own = {"spark.master": master, "spark.driver.extraJavaOptions": SPARK_JAVA}
        conf = {"settings": own | dict(settings or {}), "is_ours": True}
        environment = {
            "JAVA_HOME": str(install.java_17().parents[1]),
            "PYTHONPATH": str(CHECKOUT),
        }
        folder = workplace.folder("our-spark-driver")
        self._start(workplace, folder, conf, python, environment)


class SparkStandalone:
    """A master and two workers of one core each; `driver` opens a session on them."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self.port = free_port()
        spark_class = pyspark_home() / "bin" / "spark-class"
        environment = spark_environment() | {"SPARK_DAEMON_MEMORY": "256m"}
        self._servers = [
            workplace.start(
                "spark-master",
                [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
                 "--port", str(self.port), "--webui-port", "0"],
                env=environment,
            )
        ]  # fmt: skip
        self._servers[0].wait_until(lambda: self._servers[0].log_contains("Starting Spark master"))
        for number in range(WORKERS):
            self._servers.append(
                workplace.start(
                    f"spark-worker-{number}",
                    [spark_class, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1",
                     "--cores", "1", "--memory", "1g", "--webui-port", "0",
                     "--work-dir", workplace.folder("spark-work"), self.master],
                    env=environment,
                )
            )  # fmt: skip
        for worker in self._servers[1:]:
            worker.wait_until(partial(worker.log_contains, "Successfully registered"))

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def driver(
        self, *, metastore_uri: str | None = None, settings: Mapping[str, str] | None = None
    ) -> SparkDriver:
        """A driver whose tasks run in the executors of both workers."""
        own = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": str(WORKERS),
            # both executors, before the first task goes to the only one that is there
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        }
        return SparkDriver(
            self._workplace,
            master=self.master,
            metastore_uri=metastore_uri,
            settings=own | dict(settings or {}),
        )

    def stop(self) -> None:
        for server in reversed(self._servers):
            server.stop()


HIDDEN_HOSTS = ("127.0.0.2", "127.0.0.3")
"""Two addresses of the loopback interface: Spark takes them for two hosts, so that a speculative
copy may run on the other."""

_HIDDEN_WORKER = """
set -e
mount --bind "$1" "$2"
for hidden in "$3" "$4"; do
    # an environment inside the checkout went with it
    if [ -d "$hidden" ]; then mount -t tmpfs tmpfs "$hidden"; fi
done
home=$2 java=$5 host=$6 master=$7 work=$8 quick=$9
cd "$work"
exec env -i PATH=/usr/bin:/bin JAVA_HOME="$java" SPARK_HOME="$home" SPARK_LOCAL_IP="$host" \\
    SPARK_NO_DAEMONIZE=1 SPARK_DAEMON_MEMORY=256m SPARK_DAEMON_JAVA_OPTS="$quick" \\
    "$home/bin/spark-class" \\
    org.apache.spark.deploy.worker.Worker --host "$host" --cores 2 --memory 2g --webui-port 0 \\
    --work-dir "$work" "$master"
"""


class HiddenStandalone:
    """A master and two workers that see neither the checkout nor the driver's environment.

    Each worker has a mount namespace of its own, in which both are empty, and an environment with
    nothing of ours; Spark lies where only they have it. Works for root, and for others where the
    kernel lets them have a user namespace.
    """

    def __init__(self, workplace: Workplace, python: str | Path = sys.executable) -> None:
        """``python``: the interpreter whose Spark it is."""
        self._home = spark_home(python).resolve()
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self.master_server = workplace.start(
            "hidden-master",
            [self._home / "bin" / "spark-class", "org.apache.spark.deploy.master.Master",
             "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
            env=spark_environment(python)
            | {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": SPARK_JAVA},
        )  # fmt: skip
        self.master_server.wait_until(
            lambda: self.master_server.log_contains("Starting Spark master")
        )
        self.work_folders = [workplace.folder(f"spark-work-{host}") for host in HIDDEN_HOSTS]
        self.workers = [
            self._worker(workplace, host, folder)
            for host, folder in zip(HIDDEN_HOSTS, self.work_folders, strict=True)
        ]
        for worker in self.workers:
            worker.wait_until(partial(worker.log_contains, "Successfully registered"))

    def _worker(self, workplace: Workplace, host: str, work_folder: Path) -> Server:
        own = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "-m"]
        return workplace.start(
            f"hidden-worker-{host}",
            [*own, "sh", "-c", _HIDDEN_WORKER, "sh", self._home,
             workplace.folder(f"spark-home-{host}"), CHECKOUT.resolve(),
             Path(sys.prefix).resolve(), install.java_17().parents[1], host, self.master,
             work_folder, SPARK_JAVA],
        )  # fmt: skip

    def stop(self) -> None:
        for server in [*self.workers, self.master_server]:
            server.stop()


def is_below(pid: int, server: Server) -> bool:
    """Whether a process was started, through whomever, by this server."""
    while pid > 1:
        if pid == server.process.pid:
            return True
        pid = parent_of(pid)
    return False


def parent_of(pid: int) -> int:
    """The process that started another one."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def is_alive(pid: int) -> bool:
    """Whether a process can still do anything: one that nobody has reaped cannot."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def spark_of(workplace: Workplace, version: str) -> SparkDriver:
    """A Spark of one of VERSIONS, with nothing of ours in it yet."""
    if version == "3.5":
        return OurSparkDriver(workplace, python=install.spark_35())
    return SparkDriver(workplace, settings={"spark.sql.session.timeZone": "UTC"})
