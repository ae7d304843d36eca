"""The disk under the metastore's database runs full and is emptied again, under load: clients get a
clear error meanwhile, the server lives, and nothing of a call that failed is half there. A database
server may end itself meanwhile (MariaDB does where taking back a transaction would need room): it
is started again once there is room, as a service manager does, and what was answered is there."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hive_metastore import ttypes
from sqlalchemy import select
from thrift.Thrift import TApplicationException

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.catalog_tables import SDS, TBLS
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.backend.schema.txn_tables import TXNS
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurServer
from integration.referees.outside import thrift_client
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace

CLIENTS = 4
DISK = "256m"
LOST = "connection lost"  # while it committed: whether it did, nobody knows
GONE = "it was gone for"
DEADLINE_SECONDS = 120
_PIECE = b"\0" * (1 << 20)


class SmallDisk:
    """A file system of its own in memory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._filler = place / "filler"

    def fill(self) -> None:
        """Until not a byte is free."""
        with self._filler.open("wb", buffering=0) as filler:
            piece = _PIECE
            while piece:
                try:
                    filler.write(piece)
                except OSError as error:
                    assert error.errno == errno.ENOSPC
                    piece = piece[: len(piece) // 2]

    def empty(self) -> None:
        """Give the room back."""
        self._filler.unlink()


@pytest.fixture
def small_workplace(tmp_path: Path) -> Iterator[tuple[Workplace, SmallDisk]]:
    """Whose data lie on a small disk."""
    place = Workplace(tmp_path / "logs")
    folder = str(place.data_folder)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "x", folder]
    if os.getuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        place.close()
        pytest.skip("a file system can only be mounted by root, and not in every container")
    try:
        yield place, SmallDisk(place.data_folder)
    finally:
        place.close()
        subprocess.run(["umount", "--lazy", folder], check=True)


class Load:
    """What clients were told."""

    def __init__(self, port: int, folder: Path) -> None:
        self._port = port
        self._folder = folder
        self.is_over = threading.Event()
        self.opened: list[int] = []
        self.made: list[str] = []
        self.wrong: list[Exception] = []
        self.refused: list[str] = []
        self.done: Counter[int] = Counter()
        self.failed: Counter[int] = Counter()

    def work(self, number: int) -> None:
        with thrift_client(self._port) as client:
            turn = 0
            while not self.is_over.is_set():
                turn += 1
                try:
                    self._step(client, f"t_{number}_{turn}")
                    self.done[number] += 1
                except (ttypes.MetaException, TApplicationException) as error:
                    self.refused.append(error.message)
                    self.failed[number] += 1
                except Exception as error:
                    self.wrong.append(error)
                    return

    def _step(self, client: Any, name: str) -> None:
        request = ttypes.OpenTxnRequest(num_txns=1, user="u", hostname="h")
        self.opened += client.open_txns(request).txn_ids
        storage = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema(name="id", type="int", comment="c" * 200)],
            location=f"file:{self._folder}/{name}",
            inputFormat="x",
            outputFormat="x",
            serdeInfo=ttypes.SerDeInfo(serializationLib="x", parameters={}),
            parameters={},
        )
        table = ttypes.Table(
            dbName="default", tableName=name, sd=storage, partitionKeys=[],
            parameters={"EXTERNAL": "TRUE", "note": "n" * 3000}, tableType="EXTERNAL_TABLE",
        )  # fmt: skip
        client.create_table(table)
        self.made.append(name)

    def wait_for(self, count: Counter[int], has_ended: Callable[[], bool] = lambda: False) -> None:
        """Until every client has had more of them than now, or the database server `has_ended`."""
        before = dict(count)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not all(count[number] > before.get(number, 0) + 2 for number in range(CLIENTS)):
            if has_ended():
                return
            assert time.monotonic() < deadline, (self.done, self.failed, self.refused[-3:])
            assert self.wrong == []
            time.sleep(0.05)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_what_fails_on_a_full_disk_leaves_nothing(
    small_workplace: tuple[Workplace, SmallDisk], workplace: Workplace, tmp_path: Path, kind: str
) -> None:
    place, disk = small_workplace
    server: MariaDb | PostgreSql | None = None
    if kind == "sqlite":
        url = f"sqlite:///{disk.place}/metastore.db"
    else:
        server = (MariaDb if kind == "mariadb" else PostgreSql)(place, is_durable=True)
        url = server.database("full").sqlalchemy_url
    ours = OurServer(workplace, url, warehouse=tmp_path / "warehouse")
    load = Load(ours.port, tmp_path / "warehouse")

    def has_ended() -> bool:
        return server is not None and not server.is_running

    with ThreadPoolExecutor(CLIENTS) as clients:
        running = [clients.submit(load.work, number) for number in range(CLIENTS)]
        try:
            load.wait_for(load.done)
            disk.fill()
            load.wait_for(load.failed, has_ended)
            if not has_ended():
                _is_read(ours, has_ended)
            disk.empty()
            load.wait_for(load.done, has_ended)
            is_started_again = has_ended()  # by then, or by its last try to take something back
            if server is not None and is_started_again:
                server.start_again()
                load.wait_for(load.done)
        finally:
            load.is_over.set()
        for client in running:
            client.result()
    ours.stop()
    assert load.wrong == []
    clear = ("make room", *((LOST, GONE) if is_started_again else ()))
    assert [text for text in load.refused if not any(part in text for part in clear)] == []
    _is_whole(url, load)


def _is_read(ours: OurServer, has_ended: Callable[[], bool]) -> None:
    """By another client; or the database server ended under it."""
    with thrift_client(ours.port) as reader:
        try:
            names = reader.get_all_databases()
        except ttypes.MetaException as error:
            refusal = error.message
        else:
            assert "default" in names
            return
    assert has_ended(), refusal


def _is_whole(url: str, load: Load) -> None:
    database = open_database(url)
    with database.transaction(write=False) as connection:
        txns = set(connection.scalars(select(TXNS.c.TXN_ID).where(TXNS.c.TXN_ID > 0)))
        names = list(connection.scalars(select(TBLS.c.TBL_NAME)))
        places = list(connection.scalars(select(SDS.c.LOCATION)))
        log = connection.execute(
            select(
                NOTIFICATION_LOG.c.EVENT_ID,
                NOTIFICATION_LOG.c.EVENT_TYPE,
                NOTIFICATION_LOG.c.TBL_NAME,
            ).order_by(NOTIFICATION_LOG.c.EVENT_ID)
        ).all()
    database.close()
    assert len(set(load.opened)) == len(load.opened), "an id was given twice"
    assert set(load.opened) <= txns, "what was answered is there"
    assert len(set(names)) == len(names)
    assert set(load.made) <= set(names)
    unanswered = len(txns) - len(load.opened) + len(names) - len(load.made)
    in_doubt = sum(LOST in text for text in load.refused)
    assert unanswered <= in_doubt, "what failed was not done, as it was told"
    assert sorted(place.rpartition("/")[2] for place in places) == sorted(names)
    assert [row.EVENT_ID for row in log] == list(range(1, len(log) + 1))
    assert sum(row.EVENT_TYPE == "OPEN_TXN" for row in log) == len(txns)
    made = sorted(row.TBL_NAME for row in log if row.EVENT_TYPE == "CREATE_TABLE")
    assert made == sorted(names)
