"""A world whose plan service is asked over HTTP, as the Java in Spark asks it."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.model.txn import TxnInfo, TxnState
from hms_bridge.plans.endpoint import PlanEndpoint
from hms_bridge.plans.service import PlanService
from hms_bridge.session.transaction import Client
from tests.support.world import World


class Driver(World):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        client = Client(user="ann", host="driver", lock_wait_seconds=1)
        service = PlanService(self.metastore, self.resolve, client, self.clock, jar_version="1")
        self.end_silent = service._end_silent
        self.endpoint = PlanEndpoint(service)
        self.endpoint.start()
        self.http = http.client.HTTPConnection(self.endpoint.url.removeprefix("http://"))

    def post(self, verb: str, body: bytes, **head: str) -> tuple[int, Any]:
        heads = {"Authorization": f"Bearer {self.endpoint.token}", **head}
        self.http.request("POST", f"/v1/{verb}", body, heads)
        response = self.http.getresponse()
        return response.status, json.loads(response.read())

    def ask(self, verb: str, **fields: Any) -> Any:
        """The answer; of a refusal its kind."""
        _, answer = self.post(verb, json.dumps({"jar": "1", **fields}).encode())
        return answer.get("error", answer)

    def load(self, name: str = "t", namespace: str = "db") -> Any:
        return self.ask("table/load", namespace=namespace, name=name, timestamps="timestamp_ntz")

    def plan(self, name: str = "t", **given: Any) -> Any:
        texts = {"namespace": "db", "name": name, "statement": "s", "execution": "1"}
        numbers = {"parallelism": 2, "split_bytes": 1 << 27}
        definition = self.load(name)["definition"]
        return self.ask("read/plan", **{"definition": definition, **texts, **numbers, **given})

    def readers(self) -> list[TxnInfo]:
        listed = self.metastore.get_open_txns_info()
        return [txn for txn in listed if (txn.user, txn.state) == ("ann", TxnState.OPEN)]


def deltas(plan: Any) -> list[str]:
    """The first write ids of a plan's files."""
    return sorted({entry[0].split("/")[-2][6:13].lstrip("0") for entry in plan["files"]})


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    made = Driver(tmp_path)
    yield made
    made.http.close()
    made.endpoint.stop()
    assert made.readers() == []
