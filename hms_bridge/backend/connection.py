"""What every SQL room is given, and what it fails with: for those who pass both on without speaking
SQL."""

from __future__ import annotations

from sqlalchemy import Connection as Connection  # noqa: PLC0414
from sqlalchemy.exc import SQLAlchemyError

DatabaseFailure = SQLAlchemyError
"""What a statement raises; :mod:`hms_bridge.backend.failures` makes an error of ours of it."""
