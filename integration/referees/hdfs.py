"""A single-node HDFS 3.4.1 on loopback: NameNode, DataNode, shell."""

from __future__ import annotations

import getpass
import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from changemanager.hadoop import HadoopConfig
from hms_bridge.config.hive_site import read_hadoop_site
from integration.referees import install
from integration.referees.processes import Server, Workplace, free_port
from integration.referees.site import write_site

OPENS = ("java.lang", "java.nio", "sun.nio.ch")
STATE_QUERY = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
# With the default of 400 ms between tries a client that writes small files writes three a second.
CLIENT_SETTINGS = {
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    "dfs.client.block.write.locateFollowingBlock.retries": "12",
}
# Hive and hms-bridge as two users of one group, as on a cluster; "stranger" is in none of theirs.
HIVE_USER, OUR_USER, STRANGER, GROUP = "hive", "hmsbridge", "stranger", "hadoop"
GROUPS = f"{HIVE_USER}={GROUP},hive;{OUR_USER}={GROUP},hive;{STRANGER}=strangers"


class Hdfs:
    """A formatted file system with one data node; permissions and extended attributes are on.

    Who runs it is the superuser; `HADOOP_USER_NAME` makes a client somebody else.
    """

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._jars = install.ensure(install.HADOOP)
        self._java = install.java_17()
        self._folder = workplace.folder("hdfs")
        self.port = free_port()
        self.http_port = free_port()
        self.conf_folder = self._folder / "conf"
        self._write_conf()
        workplace.run(
            "hdfs-format",
            self._command(
                "org.apache.hadoop.hdfs.server.namenode.NameNode",
                "-format",
                "-force",
                "-nonInteractive",
            ),
        )
        self._servers = [
            self._start("namenode", "org.apache.hadoop.hdfs.server.namenode.NameNode"),
            self._start("datanode", "org.apache.hadoop.hdfs.server.datanode.DataNode"),
        ]
        self._servers[1].wait_until(self._has_data_node)

    @property
    def uri(self) -> str:
        return f"hdfs://localhost:{self.port}"

    @property
    def client_settings(self) -> dict[str, str]:
        """What a program needs in its configuration to use this file system as its default."""
        return {"fs.defaultFS": self.uri} | CLIENT_SETTINGS

    @property
    def http_address(self) -> str:
        return f"127.0.0.1:{self.http_port}"

    def environment(self, user: str = OUR_USER) -> dict[str, str]:
        """What makes a program use this file system as its default, as one of its users."""
        return {"HADOOP_CONF_DIR": str(self.conf_folder), "HADOOP_USER_NAME": user}

    def hadoop(self, user: str = OUR_USER) -> HadoopConfig:
        """The same for our own code in this process."""
        values = read_hadoop_site({"HADOOP_CONF_DIR": str(self.conf_folder)})
        return HadoopConfig(values=values, user=user)

    def make_home(self, *paths: str, owner: str = HIVE_USER, mode: str = "775") -> None:
        """Directories for one user and the group, as an administrator makes them.

        One that is there already is refused: two parts of a run would count each other's files.
        """
        for path in paths:
            self.shell("-mkdir", path)
            self.shell("-chown", f"{owner}:{GROUP}", path)
            self.shell("-chmod", mode, path)

    def shell(self, *arguments: str | Path) -> str:
        """Run one command of the file system shell, as in `shell("-put", local, "/there")`."""
        return self._workplace.run(
            "hdfs-shell", [*self.shell_command, *map(str, arguments)], env=_superuser()
        )

    @property
    def shell_command(self) -> list[str]:
        """What `hdfs dfs` is here, as the superuser."""
        return [str(word) for word in self._command("org.apache.hadoop.fs.FsShell")]

    def make_directory(self, path: str, *, owner: str, group: str, mode: str) -> None:
        """Make a directory of somebody's, as the superuser."""
        self._put(path, "MKDIRS")
        self._put(path, "SETOWNER", owner=owner, group=group)
        self._put(path, "SETPERMISSION", permission=mode)

    def _put(self, path: str, operation: str, **parameters: str) -> None:
        words = {"op": operation, "user.name": getpass.getuser(), **parameters}
        address = f"http://{self.http_address}/webhdfs/v1{path}?"
        request = urllib.request.Request(address + urllib.parse.urlencode(words), method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            pass

    def admin(self, *arguments: str) -> str:
        """Run one command of the administrator, as in `admin("-safemode", "enter")`."""
        return self._workplace.run(
            "hdfs-admin",
            self._command("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments),
            env=_superuser(),
        )

    def stop(self) -> None:
        for server in reversed(self._servers):
            server.stop()

    def _start(self, name: str, class_name: str) -> Server:
        return self._workplace.start(name, self._command(class_name))

    def _command(self, class_name: str, *arguments: str) -> list[str | Path]:
        return [
            self._java, "-Xmx256m", *self._workplace.java, "-Djava.net.preferIPv4Stack=true",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS),
            "-cp", f"{self.conf_folder}:{self._jars}/*", class_name, *arguments,
        ]  # fmt: skip

    def _has_data_node(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://{self.http_address}/{STATE_QUERY}", timeout=5
            ) as reply:
                beans = json.load(reply)["beans"]
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        return bool(beans) and beans[0].get("NumLiveDataNodes") == 1

    def _write_conf(self) -> None:
        for page in ("hdfs", "datanode", "static", "secondary"):
            (self.conf_folder / "webapps" / page).mkdir(parents=True)
        data = self._folder / "data"
        user = getpass.getuser()
        write_site(
            self.conf_folder / "core-site.xml",
            {
                **self.client_settings,
                "hadoop.tmp.dir": f"{data}/tmp",
                "fs.trash.interval": "1440",
                "hadoop.user.group.static.mapping.overrides": GROUPS,
                f"hadoop.proxyuser.{user}.hosts": "*",
                f"hadoop.proxyuser.{user}.groups": "*",
                # Hive's compactor works as the owner of the table's directory.
                f"hadoop.proxyuser.{HIVE_USER}.hosts": "*",
                f"hadoop.proxyuser.{HIVE_USER}.groups": "*",
            },
        )
        write_site(
            self.conf_folder / "hdfs-site.xml",
            {
                "dfs.replication": "1",
                "dfs.namenode.name.dir": f"file://{data}/name",
                "dfs.datanode.data.dir": f"file://{data}/blocks",
                "dfs.namenode.rpc-address": f"localhost:{self.port}",
                "dfs.namenode.rpc-bind-host": "127.0.0.1",
                "dfs.namenode.http-address": self.http_address,
                "dfs.namenode.secondary.http-address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.http.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.ipc.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.hostname": "localhost",
                "dfs.namenode.safemode.extension": "0",
                "dfs.namenode.safemode.min.datanodes": "1",
                "dfs.namenode.fs-limits.min-block-size": "4096",
                "dfs.permissions.enabled": "true",
                "dfs.permissions.superusergroup": "hdfs-admins",
                "dfs.heartbeat.interval": "1",
            },
        )


def _superuser() -> dict[str, str]:
    """Who runs the NameNode; our client in this process may have set another user for itself."""
    return {"HADOOP_USER_NAME": getpass.getuser()}
