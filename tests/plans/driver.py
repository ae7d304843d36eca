"""A world whose plan service is asked over HTTP, as the Java in Spark asks it."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from hms_bridge.model.txn import TxnInfo, TxnState
from hms_bridge.plans.endpoint import PlanEndpoint
from hms_bridge.plans.service import PlanService
from hms_bridge.session.transaction import Client
from tests.support.world import World

CLIENT = Client(user="ann", host="driver", lock_wait_seconds=1)


class Driver(World):
    """``end_silent`` is what the service's thread does now and then."""

    def __init__(self, folder: Path, **given: Any) -> None:
        super().__init__(folder, **given)
        self.service = PlanService(
            self.metastore, self.resolve, CLIENT, self.clock, jar_version="1"
        )
        self.end_silent = self.service._leases.end_silent
        self.endpoint = PlanEndpoint(self.service, request_seconds_max=2)
        self.endpoint.start()
        self.http = http.client.HTTPConnection(self.endpoint.url.removeprefix("http://"))

    def post(self, verb: str, body: bytes, token: str | None = None) -> tuple[int, dict[str, Any]]:
        head = {"Authorization": f"Bearer {token or self.endpoint.token}"}
        self.http.request("POST", f"/v1/{verb}", body, head)
        response = self.http.getresponse()
        return response.status, json.loads(response.read())

    def ask(self, verb: str, **fields: Any) -> Any:
        """The answer; of a refusal its kind."""
        status, answer = self.post(verb, json.dumps({"jar": "1", **fields}).encode())
        return answer if status == 200 else answer["error"]

    def plan(self, name: str = "t", statement: str = "s", **given: Any) -> Any:
        loaded = self.ask("table/load", namespace="db", name=name, timestamps="timestamp")
        question = {
            "namespace": "db", "name": name, "definition": loaded["definition"],
            "statement": statement, "execution": 1, "application": "app", "description": "count",
            "filter": None, "parallelism": 2, "split_bytes": 1 << 27, **given,
        }  # fmt: skip
        return self.ask("read/plan", **question)

    def readers(self) -> list[TxnInfo]:
        listed = self.metastore.get_open_txns_info()
        return [txn for txn in listed if (txn.user, txn.state) == ("ann", TxnState.OPEN)]

    def end(self) -> None:
        self.http.close()
        self.endpoint.stop()


def deltas(plan: Any) -> list[str]:
    """The directories of a plan's files."""
    return sorted({entry[0].split("/")[-2] for entry in plan["files"]})
