"""What other services write down in a metastore: figures of replications, and what queries met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicationMetric:
    """How one execution of a policy of Hive's goes; ``metadata`` and ``progress`` are texts of
    HiveServer2's, in ``message_format``."""

    execution_id: int
    policy: str
    dump_execution_id: int = 0
    metadata: str | None = None
    progress: str | None = None
    message_format: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeStatistics:
    """What operators of queries met, as HiveServer2 packs it; ``weight`` is how many there are."""

    weight: int
    payload: bytes
    create_time: int = 0
