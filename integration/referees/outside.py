"""Clients that no one here wrote: Trino's and pymetastore (own interpreter), hmsclient, PyIceberg,
Hive's bindings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hive_metastore import ThriftHiveMetastore
from hmsclient import hmsclient
from pyiceberg.catalog.hive import HiveCatalog
from thrift.protocol import TBinaryProtocol
from thrift.transport import TSocket, TTransport

from integration.referees import install
from integration.referees.conversation import Conversation
from integration.referees.processes import Workplace

DRIVER = Path(__file__).parents[1] / "drivers" / "clients.py"


class OutsideClients:
    """The driver process of the interpreter that has Trino's client and pymetastore."""

    def __init__(self, workplace: Workplace) -> None:
        self._server = workplace.start(
            "outside-clients", [install.interpreter(), DRIVER], is_piped=True
        )
        self._conversation = Conversation(self._server)

    def ask(self, **request: object) -> Any:
        """One request; drivers/clients.py says which."""
        return self._conversation.ask(**request)

    def pymetastore(self, port: int, method: str, *arguments: object) -> Any:
        """Call a method of pymetastore's HMS on the metastore at `port`; its records come as
        objects of JSON.
        """
        return self.ask(client="pymetastore", port=port, method=method, arguments=list(arguments))

    def stop(self) -> None:
        self._server.stop()


@contextmanager
def thrift_client(port: int) -> Iterator[Any]:
    """Hive's thrift interface as PyIceberg ships it, on the metastore at `port`."""
    socket = TSocket.TSocket("127.0.0.1", port)
    socket.setTimeout(120_000)
    transport = TTransport.TBufferedTransport(socket)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
    finally:
        transport.close()


@contextmanager
def hms_client(port: int) -> Iterator[Any]:
    """hmsclient on the metastore at `port`."""
    with hmsclient.HMSClient(host="127.0.0.1", port=port) as client:
        yield client


def iceberg_catalog(port: int, warehouse: Path, **properties: str) -> HiveCatalog:
    """PyIceberg's Hive catalog on the metastore at `port`."""
    uri = f"thrift://127.0.0.1:{port}"
    return HiveCatalog("referee", uri=uri, warehouse=f"file://{warehouse}", **properties)
