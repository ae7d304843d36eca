"""What became of the tables that a materialized view was made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class MaterializationChanges:
    """Since the view was made or rebuilt."""

    has_updates_or_deletes: bool = False
    has_compactions: bool = False
