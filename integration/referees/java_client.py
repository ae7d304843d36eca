"""Hive 4.0.1's own Java client, HiveMetaStoreClient, on any metastore: what HiveServer2, Impala and
other Java programs of that release ask through.

py4j's own gateway runs with the client's jars on its class path, so nothing has to be compiled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.java_collections import JavaArray, JavaList, JavaMap, JavaSet
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from integration.referees.errors import RefereeError
from integration.referees.java_metastore import (
    LOG_SELECTOR,
    OPENS,
    flavour_401,
    pyspark_home,
    write_log_conf,
)
from integration.referees.processes import Workplace

Answer = dict[str, Any]
METASTORE = "org.apache.hadoop.hive.metastore"


class JavaProcess:
    """A Java process with these classes; `gateway` calls them, from any thread."""

    def __init__(
        self, workplace: Workplace, name: str, java: Path, class_path: Sequence[str]
    ) -> None:
        folder = workplace.folder(name)
        write_log_conf(folder)
        (py4j_jar,) = (pyspark_home() / "jars").glob("py4j-*.jar")
        self._server = workplace.start(
            name,
            [java, "-Xmx256m", *workplace.java, LOG_SELECTOR,
             *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENS),
             "-cp", ":".join([str(folder), *class_path, str(py4j_jar)]),
             "py4j.GatewayServer", "--die-on-broken-pipe", "0"],
            cwd=folder,
            is_piped=True,
        )  # fmt: skip
        pipe = self._server.process.stdout
        line = pipe.readline() if pipe else b""
        if not line.strip().isdigit():
            raise RefereeError(f"{name} gave no gateway port\n{self._server.log_tail()}")
        self.gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(line), auto_convert=True)
        )

    def stop(self) -> None:
        self.gateway.close()
        self._server.stop()


class JavaClients(JavaProcess):
    """The Java process that holds the clients."""

    def __init__(self, workplace: Workplace) -> None:
        flavour = flavour_401()
        self.version = flavour.version
        super().__init__(workplace, "java-client-4.0.1", flavour.java, flavour.class_path)

    def at(self, uri: str) -> JavaClient:
        """A client of the metastore at `uri`."""
        return JavaClient(self.gateway, uri)


class JavaClient:
    """One HiveMetaStoreClient. Records are given and come as JSON's values: a record is a
    dictionary of its thrift fields by their names."""

    def __init__(self, gateway: JavaGateway, uri: str) -> None:
        self._gateway = gateway
        self._java: Any = gateway.jvm
        conf = self._class(f"{METASTORE}.conf.MetastoreConf").newMetastoreConf()
        conf.set("hive.metastore.uris", uri)
        conf.set("metastore.thrift.uris", uri)
        self._client: Any = self._class(f"{METASTORE}.HiveMetaStoreClient")(conf)

    def ask(self, method: str, *arguments: object) -> Answer:
        """What a method of the client returns (`{"value": …}`), or what it raises: `{"error": class
        and, where the class has one, message}`."""
        try:
            value = getattr(self._client, method)(*arguments)
        except Py4JJavaError as error:
            return {"error": error.java_exception.getClass().getSimpleName()}
        return {"value": self._plain(value)}

    def record(self, name: str, fields: Mapping[str, object]) -> Any:
        """A thrift record of Hive's interface, with these fields."""
        record = self._class(f"{METASTORE}.api.{name}")()
        for field, value in fields.items():
            getattr(record, f"set{field[0].upper()}{field[1:]}")(value)
        return record

    def member(self, name: str, constant: str) -> Any:
        """A constant of one of the interface's enumerations."""
        return self._class(f"{METASTORE}.api.{name}").valueOf(constant)

    def strings(self, *texts: str) -> Any:
        """A Java array."""
        array = self._gateway.new_array(self._java.java.lang.String, len(texts))
        for at, text in enumerate(texts):
            array[at] = text
        return array

    def close(self) -> None:
        self._client.close()

    def _class(self, name: str) -> Any:
        found: Any = self._java
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, JavaMap):
            return {str(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, JavaList | JavaSet | JavaArray):
            return [self._plain(item) for item in value]
        if not self._is_thrift(value):
            return value.toString()
        protocol = self._class("org.apache.thrift.protocol.TSimpleJSONProtocol")
        serializer = self._class("org.apache.thrift.TSerializer")(protocol.Factory())
        return json.loads(serializer.toString(value))

    def _is_thrift(self, value: Any) -> bool:
        base = self._java.java.lang.Class.forName("org.apache.thrift.TBase")
        return bool(base.isInstance(value))
