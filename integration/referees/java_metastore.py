"""Hive's own metastore servers, each in its own process on loopback: 4.2.0, 4.0.1, 3.1.3 and
2.3.10.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from integration.referees import install
from integration.referees.jdbc import JdbcDatabase, class_path, database_settings
from integration.referees.processes import Workplace, free_port, is_listening
from integration.referees.site import write_site

SERVER_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"
OPENS = (
    "java.base/java.io", "java.base/java.lang", "java.base/java.lang.reflect",
    "java.base/java.math", "java.base/java.net", "java.base/java.nio", "java.base/java.text",
    "java.base/java.time", "java.base/java.util", "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic", "java.base/java.util.regex",
    "java.base/sun.nio.ch", "java.sql/java.sql",
)  # fmt: skip
LOG_SELECTOR = (
    "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.ClassLoaderContextSelector"
)
LOG_TO_STDERR = (
    "log4j.rootLogger=WARN,c\nlog4j.appender.c=org.apache.log4j.ConsoleAppender\n"
    "log4j.appender.c.Target=System.err\nlog4j.appender.c.layout=org.apache.log4j.PatternLayout\n"
    "log4j.appender.c.layout.ConversionPattern=%d{HH:mm:ss} %-5p %c{1}: %m%n\n"
)
LOG2_TO_STDERR = (
    "status=error\nappender.c.type=Console\nappender.c.name=c\nappender.c.target=SYSTEM_ERR\n"
    "appender.c.layout.type=PatternLayout\n"
    "appender.c.layout.pattern=%d{HH:mm:ss} %-5p %c{1}: %m%n\n"
    "rootLogger.level=warn\nrootLogger.appenderRef.c.ref=c\n"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Flavour:
    """How one version of the metastore is run."""

    version: str
    java: Path
    class_path: tuple[str, ...]
    site_name: str = "metastore-site.xml"
    settings: Mapping[str, str] = field(default_factory=dict)


def write_log_conf(folder: Path) -> None:
    """Warnings and worse to standard error, for log4j 1 and 2."""
    (folder / "log4j.properties").write_text(LOG_TO_STDERR)
    (folder / "log4j2.properties").write_text(LOG2_TO_STDERR)
    (folder / "metastore-log4j2.properties").write_text(LOG2_TO_STDERR)


def flavour_42() -> Flavour:
    """Hive 4.2.0 with the notification listener."""
    return Flavour(
        version="4.2.0",
        java=install.java_21(),
        class_path=(f"{install.ensure(install.HIVE_42)}/*",),
        site_name="hive-site.xml",
        settings={
            "hive.metastore.transactional.event.listeners": LISTENER,
            "hive.metastore.dml.events": "true",
            # else only a configured proxy user may read the log
            "hive.metastore.event.db.notification.api.auth": "false",
        },
    )


def flavour_41() -> Flavour:
    """Hive 4.1.0: its engine has the whole metastore inside; the rest is that of 4.2.0, but for the
    newer parts of Hive."""
    (engine,) = install.ensure(install.HIVE_41).glob("*.jar")
    others = sorted(install.ensure(install.HIVE_42).glob("*.jar"))
    newer = re.compile(r"hive-.*-4\.2\.0\.jar")
    return Flavour(
        version="4.1.0",
        java=install.java_21(),
        class_path=(str(engine), *(str(jar) for jar in others if not newer.match(jar.name))),
        site_name="hive-site.xml",
    )


def flavour_401() -> Flavour:
    """Hive 4.0.1 as shipped: no notification listener is in the registry for it."""
    return Flavour(
        version="4.0.1",
        java=install.java_17(),
        class_path=(f"{install.ensure(install.HIVE_401)}/lib/*", *_hadoop_jars()),
    )


def flavour_313() -> Flavour:
    """Hive 3.1.3 as shipped; two of its defaults are classes of hive-exec, which is not there."""
    driver = _postgresql_driver()
    metastore = "org.apache.hadoop.hive.metastore"
    return Flavour(
        version="3.1.3",
        java=install.java_17(),
        class_path=(f"{install.ensure(install.HIVE_313)}/lib/*", *_hadoop_jars(), str(driver)),
        settings={
            "metastore.expression.proxy": f"{metastore}.DefaultPartitionExpressionProxy",
            "metastore.task.threads.always": f"{metastore}.events.EventCleanerTask",
        },
    )


def flavour_2310() -> Flavour:
    """Hive 2.3.10: the jars inside PySpark, which lack the pool that it would choose by itself."""
    return Flavour(
        version="2.3.10",
        java=install.java_17(),
        class_path=(f"{pyspark_home()}/jars/*", str(_postgresql_driver())),
        site_name="hive-site.xml",
        settings={"datanucleus.connectionPoolingType": "HikariCP"},
    )


def pyspark_home() -> Path:
    """The folder of PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark: install the project's requirements first")
    return Path(spec.origin).parent


class JavaMetastore:
    """A running metastore; `uri` is what clients set as hive.metastore.uris."""

    def __init__(
        self,
        workplace: Workplace,
        flavour: Flavour,
        *,
        database: JdbcDatabase,
        warehouse: Path | None = None,
        external_warehouse: Path | None = None,
        settings: Mapping[str, str] | None = None,
        hadoop: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        """`hadoop` is its core-site.xml, `user` who it is on that file system."""
        self.version = flavour.version
        self.database = database
        self.folder = workplace.folder(f"metastore-{flavour.version}")
        self.warehouse = warehouse or self.folder / "warehouse"
        self.external_warehouse = external_warehouse or self.folder / "external"
        self.port = free_port()
        conf = self.folder / "conf"
        write_site(
            conf / flavour.site_name,
            {
                **self._warehouse_settings(),
                **database_settings(database),
                **flavour.settings,
                **(settings or {}),
            },
        )
        if hadoop is not None:
            write_site(conf / "core-site.xml", hadoop)
        write_log_conf(conf)
        self._server = workplace.start(
            f"metastore-{flavour.version}",
            [flavour.java, "-Xmx512m", *workplace.java,
             *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENS),
             LOG_SELECTOR,
             "-cp", class_path(conf, flavour.class_path, database), SERVER_CLASS,
             "-p", str(self.port)],
            env={"HADOOP_USER_NAME": user} if user else {},
            cwd=self.folder,
        )  # fmt: skip
        self._server.wait_until(lambda: is_listening(self.port))

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds

    @property
    def memory_peak_mib(self) -> float:
        return self._server.memory_peak_mib

    def stop(self) -> None:
        self._server.stop()

    def _warehouse_settings(self) -> dict[str, str]:
        for folder in (self.warehouse, self.external_warehouse):
            folder.mkdir(exist_ok=True)
        return {
            "metastore.warehouse.dir": f"file:{self.warehouse}",
            "hive.metastore.warehouse.dir": f"file:{self.warehouse}",
            "metastore.warehouse.external.dir": f"file:{self.external_warehouse}",
            "hive.metastore.warehouse.external.dir": f"file:{self.external_warehouse}",
            "hive.support.concurrency": "true",
            "hive.compactor.initiator.on": "false",
            "hive.compactor.cleaner.on": "false",
            # The asynchronous log wants a jar that the distributions do not ship.
            "metastore.async.log.enabled": "false",
            "metastore.thrift.bind.host": "127.0.0.1",
            "hive.metastore.thrift.bind.host": "127.0.0.1",
        }


def _hadoop_jars() -> tuple[str, ...]:
    # The metastores bring their own guava and their own binding of slf4j.
    jars = install.ensure(install.HADOOP).glob("*.jar")
    return tuple(
        sorted(str(jar) for jar in jars if not jar.name.startswith(("guava-", "slf4j-reload4j")))
    )


def _postgresql_driver() -> Path:
    (driver,) = install.ensure(install.HIVE_42).glob("postgresql-*.jar")
    return driver
