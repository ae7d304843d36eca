"""The type that every SQL room is given: for those who pass it on without speaking SQL."""

from __future__ import annotations

from sqlalchemy import Connection as Connection  # noqa: PLC0414
