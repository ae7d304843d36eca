"""Delegation tokens, and the keys that they are signed with, which other services keep here."""

from __future__ import annotations

from sqlalchemy import Column, Integer, String

from hms_bridge.backend.schema.metadata import table

_TOKEN = String(767)

MASTER_KEYS = table(
    "MASTER_KEYS",
    Column("KEY_ID", Integer, primary_key=True, autoincrement=True),
    Column("MASTER_KEY", _TOKEN),
)
DELEGATION_TOKENS = table(
    "DELEGATION_TOKENS",
    Column("TOKEN_IDENT", _TOKEN, primary_key=True),
    Column("TOKEN", _TOKEN),
)
