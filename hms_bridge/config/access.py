"""Who may ask the server for what: settings of Hive and Hadoop that answer it."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.config.protection import AskedProtection


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessSettings:
    """``asked``: protections that were asked for and are not given."""

    asked: tuple[AskedProtection, ...] = ()
