"""One behaviour suite of the port, for every implementation.

    @pytest.fixture(scope="module")
    def metastore(): ...

    class TestMyMetastore(MetastoreBehaviour):
        pass

Each test makes databases with names of its own, so all of them can share one metastore. They
count events, so nobody else may write to it meanwhile. A metastore over its own database also
inherits LocalBehaviour; one that is ours also inherits OwnEventBehaviour.
"""

from __future__ import annotations

from tests.conformance.catalog_behaviour import DatabaseBehaviour, TableBehaviour
from tests.conformance.compaction_behaviour import CompactionBehaviour
from tests.conformance.constraint_behaviour import ConstraintBehaviour
from tests.conformance.notification_behaviour import NotificationBehaviour
from tests.conformance.partition_behaviour import PartitionBehaviour
from tests.conformance.statistics_behaviour import (
    FunctionBehaviour,
    StatisticsBehaviour,
    TransactionalStatisticsBehaviour,
)
from tests.conformance.transaction_behaviour import LockBehaviour, TransactionBehaviour


class MetastoreBehaviour(
    DatabaseBehaviour,
    TableBehaviour,
    PartitionBehaviour,
    TransactionBehaviour,
    LockBehaviour,
    CompactionBehaviour,
    NotificationBehaviour,
    StatisticsBehaviour,
    TransactionalStatisticsBehaviour,
    ConstraintBehaviour,
    FunctionBehaviour,
):
    """What Metastore promises. Inherit, and give the fixture `metastore`."""
