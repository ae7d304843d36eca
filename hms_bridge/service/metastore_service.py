"""The metastore over its own database: every verb of the port, from families of verbs."""

from __future__ import annotations

from hms_bridge.service.alter_tables import AlterTableVerbs
from hms_bridge.service.archive_manifest import SqlArchiveManifest
from hms_bridge.service.catalogs import CatalogVerbs
from hms_bridge.service.cleaning import CleaningVerbs
from hms_bridge.service.compactions import CompactionVerbs
from hms_bridge.service.connectors import ConnectorVerbs
from hms_bridge.service.constraints import ConstraintVerbs
from hms_bridge.service.databases import DatabaseVerbs
from hms_bridge.service.exchange_partitions import ExchangePartitionVerbs
from hms_bridge.service.figures import FigureVerbs
from hms_bridge.service.foundation import Foundation
from hms_bridge.service.functions import FunctionVerbs
from hms_bridge.service.hook_positions import StoredPositions
from hms_bridge.service.locks import LockVerbs
from hms_bridge.service.materialized_views import MaterializedViewVerbs
from hms_bridge.service.notifications import NotificationVerbs
from hms_bridge.service.partition_conditions import PartitionConditionVerbs
from hms_bridge.service.partition_marks import PartitionMarkVerbs
from hms_bridge.service.partition_queries import PartitionQueryVerbs
from hms_bridge.service.partitions import PartitionVerbs
from hms_bridge.service.policies import SqlPolicyStore
from hms_bridge.service.privileges import PrivilegeVerbs
from hms_bridge.service.procedures import ProcedureVerbs
from hms_bridge.service.recycling import RecycleVerbs
from hms_bridge.service.rename_partitions import RenamePartitionVerbs
from hms_bridge.service.reports import ReportVerbs
from hms_bridge.service.resource_plans import ResourcePlanVerbs
from hms_bridge.service.roles import RoleVerbs
from hms_bridge.service.schedules import ScheduleVerbs
from hms_bridge.service.statistics import StatisticsVerbs
from hms_bridge.service.tables import TableVerbs
from hms_bridge.service.tokens import TokenVerbs
from hms_bridge.service.transactions import TransactionVerbs
from hms_bridge.service.truncations import TruncationVerbs


class MetastoreService(
    CatalogVerbs,
    DatabaseVerbs,
    TableVerbs,
    AlterTableVerbs,
    PartitionQueryVerbs,
    PartitionVerbs,
    PartitionConditionVerbs,
    RenamePartitionVerbs,
    ExchangePartitionVerbs,
    TruncationVerbs,
    TransactionVerbs,
    CleaningVerbs,
    FigureVerbs,
    LockVerbs,
    CompactionVerbs,
    NotificationVerbs,
    StatisticsVerbs,
    FunctionVerbs,
    ConstraintVerbs,
    MaterializedViewVerbs,
    RoleVerbs,
    PrivilegeVerbs,
    TokenVerbs,
    ScheduleVerbs,
    ReportVerbs,
    RecycleVerbs,
    ConnectorVerbs,
    ProcedureVerbs,
    ResourcePlanVerbs,
    PartitionMarkVerbs,
):
    """Implements ``LocalMetastore``: the sum of its families, as the port is of its protocols."""

    def __init__(self, foundation: Foundation, manifest: SqlArchiveManifest) -> None:
        super().__init__(foundation)
        self._manifest = manifest

    @property
    def manifest(self) -> SqlArchiveManifest:
        """What is archived and who needs it, in the same database."""
        return self._manifest

    @property
    def policies(self) -> SqlPolicyStore:
        """What is replicated from where to where, in the same database."""
        return SqlPolicyStore(self._transactions)

    @property
    def is_heard(self) -> bool:
        """Whether event hooks are registered, as far as this process knows."""
        return self._transactions.is_heard

    @property
    def hook_positions(self) -> StoredPositions:
        """How far event hooks have heard, in the same database."""
        return StoredPositions(self._transactions)

    def close(self) -> None:
        """After event hooks have come to their end."""
        self._transactions.close()
