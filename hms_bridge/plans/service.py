"""The verbs of the plan service (docs/format/plan-service.md), as functions of a question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from changemanager.errors import ChangeManagerError
from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.errors import HmsBridgeError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.periodic import PeriodicTask
from hms_bridge.plans.formats import TEXT, format_of, text_settings
from hms_bridge.plans.leases import Leases, Planned
from hms_bridge.plans.requests import (
    PlanError,
    PlanRequest,
    Question,
    Refusal,
    WriteRequest,
    WrittenFile,
    malformed,
)
from hms_bridge.plans.scan_plan import plan_scan_files
from hms_bridge.plans.table_reader import TableReader
from hms_bridge.plans.tables import TIMESTAMPS, kind_of, loaded, row_text
from hms_bridge.plans.writes import Writes
from hms_bridge.session.transaction import Client
from hms_bridge.versions import own_version

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 5.0

Answer = dict[str, Any]


class PlanService:
    """Answers the Java in one driver's Spark. Any number of threads may ask.

    ``client``: who reads, and how long locks are awaited; its agent is what the question says.
    ``jar_version``: the only one that is answered, this program's own if None.
    """

    def __init__(
        self,
        metastore: Metastore,
        resolver: Resolver,
        client: Client,
        clock: Clock,
        *,
        jar_version: str | None = None,
    ) -> None:
        self._metastore = metastore
        self._version = jar_version or own_version()
        self._reader = TableReader(metastore, resolver)
        self._leases = Leases(metastore, self._reader, client, clock)
        self._writes = Writes(metastore, resolver, self._reader, client, clock)
        self._look = PeriodicTask("plan leases", self._end_silent, _LOOK_SECONDS)
        self._verbs: Mapping[str, Callable[[Question], Answer]] = {
            "hello": self._hello,
            "namespace/list": self._list_namespaces,
            "namespace/get": self._get_namespace,
            "table/list": self._list_tables,
            "table/load": self._load_table,
            "read/plan": self._plan,
            "read/use": self._use,
            "read/keep": self._keep,
            "read/end": self._end,
            "write/begin": self._begin_write,
            "write/keep": self._keep_write,
            "write/commit": self._commit_write,
            "write/abort": self._abort_write,
        }

    def start(self) -> None:
        """End leases and writes of which nothing is heard, from now on."""
        self._look.start()

    def stop(self) -> None:
        """End all leases and writes, and take no new ones."""
        self._look.stop()
        self._writes.stop()
        self._leases.stop()

    def _end_silent(self) -> None:
        self._leases.end_silent()
        self._writes.end_silent()

    def end_all(self) -> None:
        """End all leases: what Spark was given is read."""
        self._leases.end_all()

    def answer(self, verb: str, fields: object) -> Answer:
        """Raises PlanError, with the kind that the answer names."""
        function = self._verbs.get(verb)
        if function is None:
            raise PlanError(Refusal.NO_SUCH_VERB, f"there is no verb {verb}")
        question = Question(fields)
        self._require_version(question.text("jar"))
        try:
            return function(question)
        except PlanError:
            raise
        except NoSuchObjectError as error:
            raise PlanError(Refusal.TABLE_CHANGED, f"{error}; run the statement again") from error
        except (HmsBridgeError, ChangeManagerError, OSError) as error:
            _LOG.warning("%s: %s", verb, error)
            raise PlanError(Refusal.REFUSED, str(error) or type(error).__name__) from error

    def _require_version(self, jar: str) -> None:
        if jar != self._version:
            raise PlanError(
                Refusal.VERSION,
                f"the jar in this Spark session is of version {jar}, and hms-bridge is of "
                f"{self._version}; start Spark anew with the jar that hms-bridge brings",
            )

    def _hello(self, _: Question) -> Answer:
        return {"server": self._version}

    def _list_namespaces(self, _: Question) -> Answer:
        return {"names": list(self._metastore.get_databases())}

    def _get_namespace(self, question: Question) -> Answer:
        name = question.text("namespace").lower()
        self._reader.require_namespace(name)
        database = self._metastore.get_database(name)
        properties = {
            "comment": database.description,
            "location": database.location,
            "owner": database.owner_name,
        }
        return {"properties": {key: value for key, value in properties.items() if value}}

    def _list_tables(self, question: Question) -> Answer:
        namespace = question.text("namespace").lower()
        names = self._metastore.get_tables(namespace)
        if not names:
            self._reader.require_namespace(namespace)
        tables = self._metastore.get_tables_by_names(namespace, names)
        return {"tables": [{"name": table.name, "kind": kind_of(table)} for table in tables]}

    def _load_table(self, question: Question) -> Answer:
        namespace, name = question.text("namespace").lower(), question.text("name").lower()
        timestamps = question.text("timestamps")
        if timestamps not in TIMESTAMPS:
            raise malformed(f"'timestamps' must be {' or '.join(TIMESTAMPS)}")
        return loaded(self._metastore, self._reader.table(namespace, name), timestamps)

    def _plan(self, question: Question) -> Answer:
        request = PlanRequest.of(question)
        planned = self._leases.plan(request)
        try:
            return _answer(planned, request)
        except BaseException:
            self._leases.end([planned.lease])
            raise

    def _use(self, question: Question) -> Answer:
        lease = question.text("lease")
        self._leases.use(lease)
        return {"lease": lease}

    def _keep(self, question: Question) -> Answer:
        return {"lost": self._leases.keep(question.texts("leases"))}

    def _end(self, question: Question) -> Answer:
        self._leases.end(question.texts("leases"))
        return {}

    def _begin_write(self, question: Question) -> Answer:
        writing = self._writes.begin(WriteRequest.of(question))
        table = writing.table
        return {
            "write": writing.id,
            "row": row_text(table.storage.columns),
            "staging": writing.publication.staging,
            "write_id": writing.write_id,
            "compression": writing.compression,
            "required": writing.required,
        }

    def _keep_write(self, question: Question) -> Answer:
        self._writes.keep(question.text("write"))
        return {}

    def _commit_write(self, question: Question) -> Answer:
        self._writes.commit(question.text("write"), WrittenFile.all_of(question))
        return {}

    def _abort_write(self, question: Question) -> Answer:
        self._writes.abort(question.text("write"))
        return {}


def _answer(planned: Planned, request: PlanRequest) -> Answer:
    table, write_ids = planned.table, planned.write_ids
    scan = plan_scan_files(
        planned.roots,
        is_insert_only=table.is_insert_only,
        parallelism=request.parallelism,
        split_bytes=request.split_bytes,
    )
    highest, stored_as = write_ids.high_watermark, format_of(table)
    invalid = {*write_ids.open_ids, *write_ids.aborted_ids}
    return {
        "lease": planned.lease,
        "format": stored_as,
        "text": text_settings(table) if stored_as == TEXT else {},
        "row": row_text(table.storage.columns),
        "columns": [column.name for column in table.storage.columns],
        "high_watermark": highest,
        "invalid": sorted(write_id for write_id in invalid if write_id <= highest),
        "deletes": scan.deletes,
        "partitions": scan.partitions,
        "files": scan.files,
        "splits": scan.splits,
    }
