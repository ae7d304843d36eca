"""docs/howto/beside-hive.md, typed as it stands beside a real Hive: there and back."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.comparison.cases import ACID
from integration.referees.hive42 import Hive42, table_folder
from integration.referees.hive_schema import HiveSchemas
from integration.referees.ours import CHECKOUT, PROGRAM, environment_of_ours
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Server, Workplace, free_port, is_listening
from tests.support.documents import Block, blocks

PAGE = CHECKOUT / "docs" / "howto" / "beside-hive.md"
PORT_OF_PAGE = "9183"


class Administrator:
    """Types the page's blocks; only the values of its first block are this run's."""

    def __init__(self, workplace: Workplace, hive: Hive42) -> None:
        self._workplace = workplace
        self.folder = workplace.folder("administrator")
        program = self.folder / "bin" / "hms-bridge"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
        program.chmod(0o755)
        self.port = free_port()
        self._environment = {
            **environment_of_ours(),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "DB": hive.database.sqlalchemy_url,
            "WAREHOUSE": f"file://{hive.warehouse}",
            "EXTERNAL": f"file://{hive.external_warehouse}",
            "CMROOT": f"file://{hive.change_manager_root}",
        }

    def types(self, block: Block, code: int = 0) -> str:
        """What a block prints; it must succeed to its last line, unless another code is told."""
        done = subprocess.run(
            ["sh", "-e", "-c", self._text(block)],
            env=dict(os.environ) | self._environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (block.text, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def serves(self, block: Block) -> Server:
        """A block that starts a server, in its own process."""
        server = self._workplace.start(
            "administrator", ["sh", "-c", f"exec {self._text(block).strip()}"],
            env=self._environment, cwd=self.folder,
        )  # fmt: skip
        server.wait_until(lambda: is_listening(self.port))
        return server

    def _text(self, block: Block) -> str:
        return block.text.replace(PORT_OF_PAGE, str(self.port))


@pytest.fixture
def hive(workplace: Workplace, hive_schemas: HiveSchemas) -> Iterator[Hive42]:
    """A Hive that knows nothing of us yet."""
    started = Hive42(workplace, hive_schemas.database("4.2.0", "page"), name="hive-of-page")
    yield started
    started.stop()


def _blocks(info: str) -> list[Block]:
    return [block for block in blocks(PAGE) if block.info == info]


def _statements(block: Block, database: str) -> list[str]:
    texts = block.text.replace("{db}", database).split(";")
    return [text.strip() for text in texts if text.strip()]


def test_there_and_back(hive: Hive42, postgresql: PostgreSql, workplace: Workplace) -> None:
    assert hive.database.port == postgresql.port
    own, admin = hive.main, Administrator(workplace, hive)
    own.sql("create database page")
    own.sql(f"create table page.t (id int, v string) {ACID}")
    own.sql(f"create table page.made_by_hive (id int primary key disable novalidate) {ACID}")
    own.sql("insert into page.t values (1, 'a'), (2, 'b')")
    (where,) = _blocks("sh where")
    assert {line.split("=")[0] for line in where.text.splitlines()} == {
        "export DB", "export WAREHOUSE", "export EXTERNAL", "export CMROOT",
    }  # fmt: skip
    looks, compares, plans, cleans = _blocks("sh")
    (first,) = _blocks("sh first")
    assert "run 'hms-bridge schema init --database " in admin.types(first, code=1)
    told = admin.types(looks)
    assert re.search(r"next step +none", told)
    server = admin.serves(*_blocks("sh server"))
    own.sql("alter table page.t compact 'major'")
    for statement in _statements(*_blocks("sql"), "page"):
        assert len(own.sql(statement)) >= 1
    assert "page.t" in admin.types(compares)
    moved = hive.session_at(f"thrift://127.0.0.1:{admin.port}")
    for statement in _statements(*_blocks("sql moved"), "page"):
        moved.sql(statement)
    rows = [("1", "through ours"), ("2", "b"), ("3", "new")]
    assert sorted(own.sql("select * from page.t")) == rows
    assert own.sql("show tables in page") == [("t",)]
    moved.close()
    server.stop()
    worker = admin.serves(*_blocks("sh worker"))
    folder = table_folder(hive.warehouse, "page.t")
    _wait_until_compacted(folder)
    worker.stop()
    assert "page.t" in admin.types(plans)
    admin.types(cleans)
    assert [path.name[:5] for path in folder.iterdir()] == ["base_"]
    own.sql("insert into page.t values (4, 'back')")
    assert sorted(own.sql("select * from page.t")) == [*rows, ("4", "back")]


def _wait_until_compacted(folder: Path, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not any(path.name.startswith("base_") for path in folder.iterdir()):
        assert time.monotonic() < deadline, sorted(folder.iterdir())
        time.sleep(0.5)
