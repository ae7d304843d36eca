"""What HiveServer2 asks before it removes files of a replication source by itself."""

from __future__ import annotations

from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_metastore import ServedRecycling
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive


class RecycleCalls(Calls[ServedRecycling]):
    """The archive of replaced files."""

    @answers("cm_recycle", of="request")
    def recycle(self, request: Struct) -> Struct:
        """``purge`` says whether the files go into the trash: the client sees to that."""
        self._store.recycle_directory(given(request.dataPath, "dataPath"))
        return hive.CmRecycleResponse()
