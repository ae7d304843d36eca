"""The errors of the cleaner.

::

    HmsBridgeError
    └─ CleanerError                 an entry cannot be cleaned now; nothing that is needed was lost
       ├─ CleaningRefusedError      the table says that nobody may clean it
       ├─ TargetChangedError        the table was dropped or replaced while it was being cleaned
       ├─ TargetListedError         a reader may be listing its directories just now
       └─ PartlyCleanedError        something had gone when one of these came (cleaner.entry_work)

Errors of the archive (changemanager.errors) and of the metastore (hms_bridge.errors) pass through.
"""

from __future__ import annotations

from hms_bridge.errors import HmsBridgeError


class CleanerError(HmsBridgeError):
    """An entry cannot be cleaned now."""


class CleaningRefusedError(CleanerError):
    """The table or partition has the property `no_cleanup`."""


class TargetChangedError(CleanerError):
    """The table was dropped, moved or made anew while it was being cleaned."""


class TargetListedError(CleanerError):
    """A reader may be listing its directories: files are gone, the directories go later."""
