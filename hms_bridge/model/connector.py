"""Data connectors: databases of other systems, as HiveServer2 names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_bridge.model.catalog import PrincipalType


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConnector:
    """Its name is in lower case; ``parameters`` may hold secrets."""

    name: str
    type: str
    url: str
    description: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    owner_name: str | None = None
    owner_type: PrincipalType | None = None
    create_time: int = 0
