"""The metastore port over thrift."""

from __future__ import annotations

from types import TracebackType

from hms_bridge.client.addresses import parse_addresses
from hms_bridge.client.caller import Caller, CallSettings
from hms_bridge.client.constraint_client import ConstraintClient
from hms_bridge.client.object_client import FunctionClient, MaterializedViewClient
from hms_bridge.client.partition_client import PartitionClient
from hms_bridge.client.place_client import PlaceClient
from hms_bridge.client.queue_client import CompactionClient, NotificationClient
from hms_bridge.client.statistics_client import StatisticsClient
from hms_bridge.client.txn_client import LockClient, TransactionClient
from hms_bridge.clock import Clock, SystemClock


class ThriftMetastoreClient(
    PlaceClient,
    PartitionClient,
    TransactionClient,
    LockClient,
    CompactionClient,
    NotificationClient,
    StatisticsClient,
    FunctionClient,
    ConstraintClient,
    MaterializedViewClient,
):
    """A remote metastore: ours, or a real Hive's of 2.3 or later.

    Any number of threads may use it; each has a connection of its own. ``address`` is
    ``thrift://host:port``, or several of them, tried in turn. Nothing is sent before the first
    call. Raises ConfigError for a malformed address.
    """

    def __init__(
        self, address: str, settings: CallSettings | None = None, clock: Clock | None = None
    ) -> None:
        super().__init__(
            Caller(parse_addresses(address), settings or CallSettings(), clock or SystemClock())
        )

    def close(self) -> None:
        """Close the connections of all threads."""
        self._caller.close()

    def __enter__(self) -> ThriftMetastoreClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
