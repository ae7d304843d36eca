"""Data connectors: databases of other systems, and who may use them."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, String, UniqueConstraint

from hms_bridge.backend.schema.metadata import key, table
from hms_bridge.backend.schema.privilege_tables import grant_columns

_NAME = String(128)
_LONG_NAME = String(256)

DATACONNECTORS = table(
    "DATACONNECTORS",
    Column("NAME", _NAME, primary_key=True),
    Column("TYPE", String(32), nullable=False),
    Column("URL", String(4000), nullable=False),
    Column("COMMENT", _LONG_NAME),
    Column("OWNER_NAME", _LONG_NAME),
    Column("OWNER_TYPE", String(10)),
    Column("CREATE_TIME", Integer, nullable=False),
)
DATACONNECTOR_PARAMS = table(
    "DATACONNECTOR_PARAMS",
    Column("NAME", _NAME, ForeignKey(DATACONNECTORS.c.NAME, ondelete="CASCADE"), primary_key=True),
    Column("PARAM_KEY", String(180), primary_key=True),
    Column("PARAM_VALUE", String(4000)),
)
DC_PRIVS = table(
    "DC_PRIVS",
    key("DC_GRANT_ID"),
    *grant_columns(),
    Column("NAME", _NAME, ForeignKey(DATACONNECTORS.c.NAME)),
    Column("DC_PRIV", _NAME),
    Column("AUTHORIZER", _NAME),
    Index("DC_PRIVS_N49", "NAME"),
    UniqueConstraint(
        "AUTHORIZER", "NAME", "PRINCIPAL_NAME", "PRINCIPAL_TYPE", "DC_PRIV", "GRANTOR",
        "GRANTOR_TYPE", name="DCPRIVILEGEINDEX",
    ),
)  # fmt: skip
