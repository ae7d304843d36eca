"""The plan service of a metastore, and the settings by which Spark finds it. Needs no PySpark."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from hms_bridge.clock import SystemClock
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected
from hms_bridge.plans.endpoint import PlanEndpoint
from hms_bridge.plans.service import PlanService
from hms_bridge.session.transaction import Client
from hms_bridge.spark.jar import jar_version

LOOPBACK = "127.0.0.1"
SESSION_CATALOG = "spark_catalog"
_CLASS = "hmsbridge.spark.AcidCatalog"
SESSION_CLASS = "hmsbridge.spark.AcidSessionCatalog"


@contextmanager
def serving_plans(
    metastore_url: str,
    settings: Settings,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    token: str | None = None,
) -> Iterator[PlanEndpoint]:
    """It answers for the length of a block, whose end ends all leases. ``token`` None: a new one.

    Raises ConfigError, and what the metastore raises.
    """
    version = jar_version()
    with connected(metastore_url, settings, is_created=False) as metastore:
        service = PlanService(
            metastore,
            file_systems(settings),
            Client(user=getpass.getuser(), host=socket.gethostname()),
            SystemClock(),
            jar_version=version,
        )
        endpoint = PlanEndpoint(service, host, port, token)
        endpoint.start()
        try:
            yield endpoint
        finally:
            endpoint.stop()


def spark_settings(
    name: str, options: dict[str, str], *, has_session_catalog: bool
) -> dict[str, str]:
    """Spark's settings for the catalog ``name``, and for its own in ours; ``options``: where plans
    are made, and the token."""
    classes = {name: _CLASS} | ({SESSION_CATALOG: SESSION_CLASS} if has_session_catalog else {})
    settings: dict[str, str] = {}
    for catalog, java in classes.items():
        key = f"spark.sql.catalog.{catalog}"
        settings |= {key: java} | {f"{key}.{option}": text for option, text in options.items()}
    return settings
