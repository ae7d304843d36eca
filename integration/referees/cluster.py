"""A Hadoop cluster as people have it: HDFS with permissions, PostgreSQL, several Hive 4.2 as user
`hive`, and hms-bridge as a user of its own, in one group with Hive.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from integration.referees import java_metastore
from integration.referees.errors import StartError
from integration.referees.hdfs import CLIENT_SETTINGS, GROUP, GROUPS, HIVE_USER, OUR_USER, Hdfs
from integration.referees.hive42 import Hive42, HiveSession
from integration.referees.hive_schema import HiveSchemas
from integration.referees.java_metastore import JavaMetastore
from integration.referees.ours import PROGRAM, environment_of_ours
from integration.referees.postgresql import Database
from integration.referees.processes import Server, Workplace, free_port
from integration.referees.site import write_site
from tests.support.program import Answer

USERS = {
    # Files that one of the two users makes can be replaced by the other one.
    "fs.permissions.umask-mode": "002",
    "hadoop.user.group.static.mapping.overrides": GROUPS,
}
QUICK = {
    "hive.compactor.cleaner.run.interval": "500ms",
    "hive.compactor.check.interval": "2s",
}


class Places:
    """Where one side keeps what it has on HDFS: `/NAME/warehouse`, `cmroot`, `dumps`."""

    def __init__(self, hdfs: Hdfs, name: str, *, owner: str) -> None:
        self.path = f"/{name}"
        self.uri = f"{hdfs.uri}/{name}"
        for folder in ("", "/warehouse", "/external", "/dumps"):
            hdfs.make_directory(f"{self.path}{folder}", owner=owner, group=GROUP, mode="775")

    @property
    def warehouse(self) -> str:
        return f"{self.uri}/warehouse"

    @property
    def cmroot(self) -> str:
        return f"{self.uri}/cmroot"

    @property
    def dumps(self) -> str:
        return f"{self.uri}/dumps"


class OurSide:
    """hms-bridge on the cluster: a configuration folder, verbs, servers that can be killed."""

    def __init__(
        self,
        workplace: Workplace,
        hdfs: Hdfs,
        store: Database,
        name: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._workplace = workplace
        self.store = store
        self.places = Places(hdfs, name, owner=OUR_USER)
        self.folder = workplace.folder(f"{name}-site")
        self.port = free_port()
        write_hadoop_client(hdfs, self.folder)
        write_site(
            self.folder / "hive-site.xml",
            {
                "hive.metastore.warehouse.dir": self.places.warehouse,
                "hive.repl.cmrootdir": self.places.cmroot,
                "hive.repl.rootdir": self.places.dumps,
                "hms.bridge.repl.load.roots": f"{hdfs.uri}/",
                **QUICK,
                **(settings or {}),
            },
        )

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **environment_of_ours(),
            "HADOOP_CONF_DIR": str(self.folder),
            "HADOOP_USER_NAME": OUR_USER,
            "HMS_BRIDGE_CONFIG": str(self.folder / "hive-site.xml"),
            "HMS_BRIDGE_METASTORE": self.store.sqlalchemy_url,
        }

    def start(self, *words: str) -> Server:
        """Start a verb as a process that can be killed; its output goes to a log."""
        return self._workplace.start(
            f"hms-bridge-{words[0]}", [*PROGRAM, *words], env=self.environment, cwd=self.folder
        )

    def serve(self, *words: str) -> Server:
        """The metastore server, once it is ready."""
        self.ok("schema", "init")
        server = self.start("serve", "--port", str(self.port), *words)
        try:
            # a start of Spark takes minutes on a machine where others work too
            server.wait_until(lambda: server.log_contains("serving thrift://"), timeout_seconds=400)
        except StartError:
            server.stop()  # it would keep the port
            raise
        return server

    def run(self, *words: str, timeout_seconds: float = 300) -> Answer:
        """Run a verb to its end, whatever that is."""
        done = subprocess.run(
            [*PROGRAM, *words], env=os.environ | self.environment, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=self.folder,
            timeout=timeout_seconds,
        )  # fmt: skip
        return Answer(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str) -> Answer:
        """Run a verb that has to succeed."""
        answer = self.run(*words)
        assert answer.exit_code == 0, (words, answer.out, answer.err)
        return answer

    def told(self, *words: str) -> Any:
        """What a verb that has to succeed says as JSON."""
        return self.ok(*words, "--format", "json").json


class Cluster:
    """The whole: what a case asks for is started then."""

    def __init__(self, workplace: Workplace, hdfs: Hdfs, schemas: HiveSchemas) -> None:
        self._workplace = workplace
        self.hdfs = hdfs
        self._schemas = schemas
        self._started: list[Hive42 | JavaMetastore | Server] = []
        for path in ("/tmp", "/tmp/hive", "/user"):
            hdfs.make_directory(path, owner="hdfs", group=GROUP, mode="1777")
        hdfs.make_directory("/user/hive", owner=HIVE_USER, group=GROUP, mode="775")
        self.hive_places = Places(hdfs, "hive", owner=HIVE_USER)
        self.second_places = Places(hdfs, "second", owner=HIVE_USER)

    def our_side(self, name: str, settings: Mapping[str, str] | None = None) -> OurSide:
        """A metastore of ours that nobody serves yet: its database, its places on HDFS."""
        store = self._schemas.database("4.2.0", name)
        return OurSide(self._workplace, self.hdfs, store, name, settings)

    @cached_property
    def ours(self) -> OurSide:
        """hms-bridge serve with its worker and its cleaner, on PostgreSQL."""
        side = self.our_side("ours")
        self._started.append(side.serve("--worker", "--cleaner"))
        return side

    @cached_property
    def hive(self) -> Hive42:
        """Hive 4.2 with a metastore, a warehouse and an archive of its own."""
        database = self._schemas.database("4.2.0", "cluster_hive")
        return self._hive("cluster-hive", database, self.hive_places)

    @cached_property
    def hive_on_ours(self) -> Hive42:
        """Hive 4.2 whose metastore is our server."""
        return self.hive_at(self.ours)

    def hive_at(self, side: OurSide, settings: Mapping[str, str] | None = None) -> Hive42:
        """A Hive 4.2 whose metastore is one of our servers."""
        return self._hive(
            f"hive-on-{side.places.path[1:]}",
            side.store,
            side.places,
            {"hive.metastore.uris": side.uri} | dict(settings or {}),
        )

    @cached_property
    def first(self) -> JavaMetastore:
        """Hive's metastore server on the database of `hive`."""
        return self._metastore(self.hive.database, self.hive_places)

    @cached_property
    def second(self) -> JavaMetastore:
        """Another one, with a warehouse of its own."""
        return self._metastore(
            self._schemas.database("4.2.0", "cluster_second"), self.second_places
        )

    @cached_property
    def hive_at_second(self) -> HiveSession:
        """SQL on `second`."""
        return self.hive.session_at(
            self.second.uri,
            {
                "hive.repl.cmrootdir": self.second_places.cmroot,
                # REPL LOAD chooses places by the session's settings, not by the metastore's.
                "hive.metastore.warehouse.dir": self.second_places.warehouse,
                "metastore.warehouse.dir": self.second_places.warehouse,
            },
        )

    def stop(self) -> None:
        for one in reversed(self._started):
            one.stop()

    def _hive(
        self,
        name: str,
        database: Database,
        places: Places,
        settings: Mapping[str, str] | None = None,
    ) -> Hive42:
        own = _places_of(places) | {"hive.repl.rootdir": places.dumps} | dict(settings or {})
        return self.hive_with(name, database, own)

    def hive_with(self, name: str, database: Database, settings: Mapping[str, str]) -> Hive42:
        """A Hive 4.2 as user hive, with these settings."""
        scratch = {"tez.staging-dir": "/tmp/tez", "hive.exec.scratchdir": f"/tmp/hive/{name}"}
        hive = Hive42(
            self._workplace,
            database,
            name=name,
            user=HIVE_USER,
            hadoop=self.hdfs.client_settings | USERS,
            settings=scratch | dict(settings),
        )
        self._started.append(hive)
        return hive

    def _metastore(self, database: Database, places: Places) -> JavaMetastore:
        metastore = JavaMetastore(
            self._workplace,
            java_metastore.flavour_42(),
            database=database,
            user=HIVE_USER,
            hadoop=self.hdfs.client_settings | USERS,
            settings=_places_of(places),
        )
        self._started.append(metastore)
        return metastore


def _places_of(places: Places) -> dict[str, str]:
    return {
        "hive.metastore.warehouse.dir": places.warehouse,
        "metastore.warehouse.dir": places.warehouse,
        "hive.metastore.warehouse.external.dir": f"{places.uri}/external",
        "metastore.warehouse.external.dir": f"{places.uri}/external",
        "hive.repl.cm.enabled": "true",
        "hive.repl.cmrootdir": places.cmroot,
    }


def write_hadoop_client(hdfs: Hdfs, folder: Path) -> None:
    """core-site.xml and hdfs-site.xml of a client."""
    write_site(folder / "core-site.xml", {"fs.defaultFS": hdfs.uri} | USERS)
    write_site(folder / "hdfs-site.xml", {"dfs.replication": "1"} | CLIENT_SETTINGS)
