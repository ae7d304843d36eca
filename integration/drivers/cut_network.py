"""Run in a network of its own (``unshare --net``): what the metastore does when packets to its
database are no longer answered, as after a loss of power or behind a firewall that drops them.

Prints one line of JSON for each database.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from hms_bridge.backend.engine import open_database
from hms_bridge.errors import HmsBridgeError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.txn import OpenTxnsRequest
from hms_bridge.service.open import open_local_metastore
from integration.referees.mariadb import MariaDb
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import temporary_workplace

_ASLEEP_SECONDS = 1.0
"""After which a statement that sleeps has been sent, and was confirmed."""


def main() -> None:
    """Start both databases, cut the network, look how long everybody waits, mend it again."""
    _network("up")
    with temporary_workplace() as workplace:
        servers = [("postgresql", PostgreSql(workplace)), ("mariadb", MariaDb(workplace))]
        _look(servers, workplace.folder("warehouses"))


def _look(servers: Sequence[tuple[str, PostgreSql | MariaDb]], folder: Path) -> None:
    urls = {name: server.database("cut").sqlalchemy_url for name, server in servers}
    metastores = {
        name: open_local_metastore(url, warehouse=f"file:{folder}/{name}", create_schema=True)
        for name, url in urls.items()
    }
    before = {name: _open_txn(metastore) for name, metastore in metastores.items()}
    with ThreadPoolExecutor(4) as threads:
        sleeping = {
            name: threads.submit(_timed, partial(_sleep, url)) for name, url in urls.items()
        }
        time.sleep(_ASLEEP_SECONDS)
        _network("down")
        asking = {
            name: threads.submit(_timed, partial(_open_txn, metastore))
            for name, metastore in metastores.items()
        }
        cut = {name: (asking[name].result(), sleeping[name].result()) for name in urls}
    _network("up")
    for name, metastore in metastores.items():
        found = {
            "database": name,
            "before": before[name],
            "asked": cut[name][0],
            "asleep": cut[name][1],
            "after": _open_txn(metastore),
        }
        print(json.dumps(found), flush=True)
        metastore.close()


def _network(state: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


def _open_txn(metastore: LocalMetastore) -> int:
    (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="u", host="h"))
    return txn_id


def _sleep(url: str) -> None:
    database = open_database(url)
    name = database.engine.dialect.name
    statement = "SELECT pg_sleep(900)" if name == "postgresql" else "SELECT SLEEP(900)"
    with database.transaction(write=True) as connection:
        connection.exec_driver_sql(statement)


def _timed(work: Callable[[], Any]) -> tuple[float, str]:
    """Seconds, and what was raised."""
    started = time.monotonic()
    try:
        work()
    except HmsBridgeError as error:
        return time.monotonic() - started, f"{type(error).__name__}: {error}"
    return time.monotonic() - started, ""


if __name__ == "__main__":
    sys.exit(main())
