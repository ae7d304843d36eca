"""The quick start and the README's example, typed as they stand, with the real program."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.connect import connected
from hms_bridge.model.lock import LockFilter
from tests.support.documents import Block, blocks
from tests.support.golden import CHECKOUT
from tests.support.program import Program, process_environment, serving

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(1800)]

QUICKSTART, README = CHECKOUT / "docs" / "quickstart.md", CHECKOUT / "README.md"
REPLICATION = CHECKOUT / "docs" / "replication.md"


class Typist:
    """Types blocks into a shell, in one folder, with `hms-bridge` on the path."""

    def __init__(self, folder: Path, typed_program: Path) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        self.bin = typed_program
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = str(probe.getsockname()[1])

    def types(self, block: Block) -> str:
        """What the block prints; it must succeed to its last line."""
        path = f"{self.bin}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-e", "-c", self.with_port(block.text)], cwd=self.folder, text=True,
            env=process_environment({"PATH": path}), stdin=subprocess.DEVNULL,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (block.text, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def with_port(self, text: str) -> str:
        """9083 may be somebody's."""
        return text.replace("9083", self.port)

    def words(self, block: Block) -> list[str]:
        """The words behind ``hms-bridge serve`` of a block that starts a server."""
        (line,) = self.with_port(block.text).strip().splitlines()
        assert line.startswith("hms-bridge serve ")
        return line.split()[2:]


def _blocks(page: Path, *kinds: str) -> list[Block]:
    return [block for block in blocks(page) if block.info in kinds]


def _rows(printed: str) -> list[str]:
    return [re.sub(r" +", " ", line.strip()) for line in printed.splitlines()]


def test_the_quick_start_and_then_the_readme(
    tmp_path: Path, typed_program: Path, spark: Any
) -> None:
    """All in one folder, as somebody does who reads them."""
    typist = Typist(tmp_path, typed_program)
    _quick_start(typist)
    _readme(typist, spark)
    _compactions_between_dump_and_load(typist)
    assert not [path.name for path in typist.folder.iterdir() if not _is_ignored(path)]


def _quick_start(typist: Typist) -> None:
    first, replica, compaction, late = (typist.types(block) for block in _blocks(QUICKSTART, "sh"))
    assert "[2, 536870913, 0] 1 green tea" in _rows(first) or '"rowid": 0' in first
    assert {"delta_0000001_0000001_0000", "delete_delta_0000003_0000003_0000"} <= set(_rows(first))
    assert "1 green tea" in _rows(replica)
    assert [row for row in _rows(compaction) if row.startswith("base_")]
    assert not [row for row in _rows(compaction) if row.startswith("delta_")]
    assert {"1 green tea", "3 soap"} <= set(_rows(late))
    # The compaction after the dump is nothing that a reader of the replica misses.
    assert "behind up to date" in _rows(late)
    assert "missing files 0" in _rows(late)


def _readme(typist: Typist, spark: Any) -> None:
    """And the quick start's Python, which needs such a server, too."""
    (server,) = _blocks(README, "sh server")
    (client,) = _blocks(README, "sh client")
    with serving(Program(typist.folder), *typist.words(server), is_plain=True) as running:
        assert running.wait_until_ready(600) == f"thrift://127.0.0.1:{typist.port}"
        *compacted, look = client.text.strip().splitlines(keepends=True)
        printed = _rows(typist.types(replace(client, text="".join(compacted))))
        time.sleep(1.1)  # as long as a person needs at least: the cleaner waits for late readers
        printed += _rows(typist.types(replace(client, text=look)))
        (code,) = _blocks(QUICKSTART, "python")
        names: dict[str, Any] = {"spark": spark}
        spark.conf.set("spark.sql.catalog.acid.idle", "1")
        exec(compile(typist.with_port(code.text), str(QUICKSTART), "exec"), names)
        assert sorted(map(tuple, names["rows"])) == [(1, "green tea"), (3, "soap")]
        _wait_for_the_last_reader(f"thrift://127.0.0.1:{typist.port}")
        assert running.stop(signal.SIGINT) == 0, running.lines
    assert [row for row in printed if row.endswith("1 green tea")]
    assert "state ready for cleaning" in printed
    assert [row for row in printed if "delete delta_0000001_0000001_0000" in row]


def _wait_for_the_last_reader(url: str) -> None:
    """As cleaners do: a snapshot in Spark is held a little longer than it is read."""
    with connected(url) as metastore:
        until = time.monotonic() + 60
        while metastore.show_locks(LockFilter()):
            assert time.monotonic() < until
            time.sleep(0.2)


def _compactions_between_dump_and_load(typist: Typist) -> None:
    nothing_more, more, none = (typist.types(block) for block in _blocks(REPLICATION, "sh"))
    assert [row for row in _rows(nothing_more) if row == "files from the archive 1"]
    orders = [row for row in _rows(more) if re.fullmatch(r"\d [a-z ]+", row)]
    assert sorted(orders[:4]) == ["1 green tea", "3 soap", "4 rice", "5 oats"]
    assert sorted(orders[4:]) == ["3 soap", "4 brown rice", "5 oats"]
    assert "behind up to date" in _rows(none)


def _is_ignored(path: Path) -> bool:
    """A clone stays clean: what the examples make is none of git's."""
    patterns = (CHECKOUT / ".gitignore").read_text().splitlines()
    name = f"/{path.name}/" if path.is_dir() else f"/{path.name}"
    return any(fnmatch(name, one) or fnmatch(name, f"/{one}") for one in patterns)


def test_the_page_about_hooks(tmp_path: Path) -> None:
    """Its Python is a module; the server loads it."""
    page = CHECKOUT / "docs" / "hooks.md"
    (code,) = _blocks(page, "python")
    (tmp_path / "my_hooks.py").write_text(code.text)
    done = subprocess.run(
        [sys.executable, "-c", "from hms_bridge.config.settings import Settings; "
         "from hms_bridge.hooks.loading import HookKind, load_hook; "
         "print(type(load_hook('my_hooks.Guard', HookKind.EVENT, Settings())).__name__)"],
        cwd=tmp_path, env=process_environment() | {"PYTHONPATH": f"{tmp_path}:{CHECKOUT}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "Guard", done.stderr


def test_the_page_about_the_metastore(tmp_path: Path, typed_program: Path) -> None:
    """What it says to type makes a database without a fault, and a server that answers."""
    typist = Typist(tmp_path, typed_program)
    page = CHECKOUT / "docs" / "metastore.md"
    (database,) = _blocks(page, "sh")
    (server,) = _blocks(page, "sh server")
    typist.types(database)
    with serving(Program(typist.folder), *typist.words(server), is_plain=True) as running:
        assert running.wait_until_ready(600) == f"thrift://127.0.0.1:{typist.port}"
        look = f"hms-bridge txns --metastore thrift://127.0.0.1:{typist.port}\n"
        typist.types(replace(database, text=look))
        assert running.stop(signal.SIGINT) == 0, running.lines
