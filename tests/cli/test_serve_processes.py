"""``hms-bridge serve --processes``: several processes are one server, whichever of them dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import AlreadyExistsError, MetastoreUnavailableError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import OpenTxnsRequest, TxnState
from hms_bridge.wire.convert_catalog import database_to_struct
from tests.conformance.objects import new_table
from tests.support.busy_metastore import copy_golden
from tests.support.openmetrics import scrape
from tests.support.program import Program, Server, serving
from tests.support.raw_thrift import RawClient, call
from tests.support.server_processes import (
    background_of,
    clients_of,
    is_running,
    let_holds_of_hooks_end,
    processes,
    sockets,
    until,
)

pytestmark = pytest.mark.process

TWO = ("--port", "0", "--processes", "2")
RESTARTS = "hms_bridge_process_restarts_total"
CALLS = "hms_bridge_call_duration_seconds_count"
EVEN = range(8, 11)
"""Of twenty: a process that is held up for long is not waited for."""
SLOW = '''
import pathlib, time
class Slow:
    """Holds up a change until somebody says that it may go on."""
    def before_change(self, change):
        pathlib.Path("asked").touch()
        while not pathlib.Path("go-on").exists():
            time.sleep(0.05)
'''


def _port(server: Server) -> int:
    return int(server.wait_until_ready().rpartition(":")[2])


def _scrape_url(server: Server) -> str:
    (line,) = {line for line in server.lines if line.startswith("metrics at ")}
    return line.removeprefix("metrics at ")


def _assert_gone(server: Server, numbers: list[int], port: int) -> None:
    try:
        until(lambda: not any(is_running(number) for number in numbers), 60)
    finally:
        for number in filter(is_running, numbers):  # they hold the pipe that is read here
            os.kill(number, signal.SIGKILL)
    socket.create_server(("127.0.0.1", port)).close()
    assert not [line for line in server.lines if "Traceback" in line]


def test_connections_are_spread_evenly_and_to_who_has_fewest(program: Program) -> None:
    with serving(program, *TWO) as server, ExitStack() as stack:
        port = _port(server)
        first, second = clients_of(server)
        idle = {number: sockets(number) for number in (first, second)}

        def connect(stack: ExitStack, count: int) -> None:
            for _ in range(count):
                client = stack.enter_context(RawClient(port))
                client.send(call("get_database", name="default"))
                client.answer()

        def spread() -> list[int]:
            return sorted(sockets(number) - idle[number] for number in (first, second))

        connect(stack, 20)
        assert spread()[0] in EVEN
        os.kill(second, signal.SIGKILL)
        until(lambda: processes(server)["client process 2"] != second)
        second = processes(server)["client process 2"]
        idle[second] = idle[first]
        left = spread()
        assert left[0] == 0
        connect(stack, 20 - left[1])
        assert spread()[0] in EVEN


def test_who_dies_loses_its_own_clients_and_nothing_that_was_answered(program: Program) -> None:
    """Clients go on with the next call; every change that one was told of is there, none half."""
    made: list[str] = []
    unknown: list[str] = []
    is_over = threading.Event()

    def work(address: str, number: int) -> None:
        with ThriftMetastoreClient(address, CallSettings(attempts=1)) as client:
            count = 0
            while not is_over.is_set():
                name = f"d{number}_{count}"
                count += 1
                try:
                    client.create_database(Database(name=name))
                    made.append(name)
                except (MetastoreUnavailableError, AlreadyExistsError):
                    unknown.append(name)

    def more() -> None:
        count = len(made)
        until(lambda: len(made) > count + 30)

    with serving(program, *TWO, "--metrics-port", "0") as server:
        address = server.wait_until_ready()
        url = _scrape_url(server)
        with ThreadPoolExecutor(6) as pool, ExitStack() as stack:
            workers = [pool.submit(work, address, number) for number in range(6)]
            stack.callback(is_over.set)  # else the pool waits for ever where a test fails
            seen, kills = 0.0, 0
            for kills in (1, 2, 3):
                more()
                victim = clients_of(server)[kills % 2]
                os.kill(victim, signal.SIGKILL)
                until(lambda kills=kills: scrape(url).one(RESTARTS, "clients") == kills)
                until(lambda victim=victim: victim not in clients_of(server))
                told = sum(scrape(url).of(CALLS).values())
                assert told >= seen, "counters went back"
                seen = told
            more()
            is_over.set()
            for worker in workers:
                worker.result(60)
        assert unknown
        with ThriftMetastoreClient(address) as client:
            there = set(client.get_databases()) - {"default"}
            events = client.get_current_event_id()
        counted = {key[1]: n for key, n in scrape(url).of(CALLS).items() if "create" in key[0]}
        assert set(made) <= there <= {*made, *unknown}
        assert events == len(there), "an event without its change, or a change without its event"
        assert counted["ok"] >= len(made)
        assert scrape(url).one(RESTARTS, "background") == 0
        numbers, port = list(processes(server).values()), _port(server)
        assert server.stop(signal.SIGTERM) == 0
        assert server.lines[-1] == "stopping"
        _assert_gone(server, numbers, port)
    assert len([line for line in server.lines if "ended by signal 9; it is started" in line]) == 3


@pytest.mark.parametrize("is_group", [False, True], ids=["the first process", "all processes"])
def test_a_stop_lets_what_began_come_to_its_end(program: Program, is_group: bool) -> None:
    """As a service manager stops a service: by a signal to all of its processes, too."""
    (program.folder / "slow.py").write_text(SLOW)
    words = (*TWO, "--set", "metastore.pre.event.listeners=slow:Slow")
    with serving(program, *words) as server:
        port, numbers = _port(server), list(processes(server).values())
        with RawClient(port) as client:
            begun = database_to_struct(Database(name="begun"))
            client.send(call("create_database", database=begun))
            until((program.folder / "asked").exists)
            members = numbers if is_group else []
            for number in members:
                os.kill(number, signal.SIGTERM)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)  # until each has heard of it: two of a kind that wait are one
            for number in members:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGTERM)
            time.sleep(0.5)
            (program.folder / "go-on").touch()
            assert server.process.wait(60) == 0
        _assert_gone(server, numbers, port)
    with serving(program, "--port", str(port), "--processes", "2") as again:
        with ThriftMetastoreClient(again.wait_until_ready()) as client:
            assert client.get_databases() == ("begun", "default")
            assert client.get_current_event_id() == 1
        assert again.stop(signal.SIGINT) == 0


def test_a_second_signal_ends_all_at_once(program: Program) -> None:
    (program.folder / "slow.py").write_text(SLOW)
    words = (*TWO, "--set", "metastore.pre.event.listeners=slow:Slow")
    with serving(program, *words) as server:
        port, numbers = _port(server), list(processes(server).values())
        with RawClient(port) as client:
            client.send(
                call("create_database", database=database_to_struct(Database(name="begun")))
            )
            until((program.folder / "asked").exists)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(1)
            assert server.stop(signal.SIGTERM) == 1
        _assert_gone(server, numbers, port)


def test_none_lives_on_without_the_first_process(program: Program) -> None:
    with serving(program, *TWO) as server:
        port, numbers = _port(server), list(processes(server).values())
        assert len(numbers) == 3
        server.process.kill()
        server.process.wait()
        _assert_gone(server, numbers, port)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_nobody_waits_at_a_port_behind_which_nobody_answers(
    program: Program, end: signal.Signals
) -> None:
    """While the background process takes its time to end: clients go to another server, and who
    serves anew gets the port."""
    with serving(program, *TWO, "--metrics-port", "0") as server:
        port, background, clients = _port(server), background_of(server), clients_of(server)
        scraped = int(_scrape_url(server).rpartition(":")[2].partition("/")[0])
        os.kill(background, signal.SIGSTOP)
        try:
            server.process.send_signal(end)
            until(lambda: not any(is_running(number) for number in clients))
            assert is_running(background)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 5)
        finally:
            os.kill(background, signal.SIGCONT)
        server.process.wait(90)
        _assert_gone(server, [background, *clients], port)
    socket.create_server(("127.0.0.1", scraped)).close()


HOOK = """
class Remember:
    def on_event(self, event):
        with open("heard", "a") as heard:
            heard.write(f"{event.key} {event.type}\\n")
"""


def test_the_background_process_is_followed_by_another(program: Program) -> None:
    """Hooks hear what client processes did before and after; what times out is still aborted."""
    (program.folder / "remember.py").write_text(HOOK)
    hooks = ("--set", "hms.bridge.event.hooks=remember:Remember")
    times = ("--set", "metastore.txn.timeout=6s", "--metrics-port", "0")
    file = program.folder / "heard"

    def heard() -> list[tuple[str, str]]:
        lines = file.read_text().splitlines() if file.exists() else []
        return [(key, kind) for key, _, kind in (line.partition(" ") for line in lines)]

    def heard_until(key: int) -> None:
        until(lambda: str(key) in dict(heard()))

    with serving(program, *TWO, *hooks, *times) as server:
        with ThriftMetastoreClient(server.wait_until_ready()) as client:
            client.create_database(Database(name="before"))
            heard_until(1)
            (txn,) = client.open_txns(OpenTxnsRequest(user="u", host="h"))
            first = background_of(server)
            os.kill(first, signal.SIGKILL)
            until(lambda: not is_running(first))
            let_holds_of_hooks_end(program)
            client.create_database(Database(name="meanwhile"))
            until(lambda: background_of(server) != first)
            last = client.get_current_event_id()
            heard_until(last)
            new_table(client, "before")
            target = Target("before", "t")
            client.compact(CompactionRequest(target=target, type=CompactionType.MAJOR))
            assert client.find_next_compaction("w", "4.2") is not None
            until(lambda: "START_COMPACTION" in dict(heard()).values())
            until(lambda: txn not in open_now(client))
        ids = {int(key) for key, _ in heard() if "." not in key}
        assert sorted(ids) == list(range(1, max(ids) + 1))
        url = _scrape_url(server)
        assert scrape(url).of(RESTARTS) == {("background",): 1, ("clients",): 0}
        assert scrape(url).one("hms_bridge_hook_told", "remember:Remember") == 1
        assert server.stop() == 0


def open_now(client: ThriftMetastoreClient) -> set[TxnId]:
    return {txn.id for txn in client.get_open_txns().txns if txn.state is TxnState.OPEN}


def test_what_cannot_start_says_why_once(program: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        taken = program.start("serve", "--port", port, "--processes", "2")
        figures = program.start("serve", *TWO, "--metrics-port", port)
    assert taken.exit_code == figures.exit_code == 1
    assert f"port {port} on 127.0.0.1 is in use by another program" in taken.err
    assert f"metrics cannot be served on 127.0.0.1 port {port}" in figures.err
    nowhere = (
        "--database", "postgresql://ann:secret@127.0.0.1:1/m",
        "--set", "hms.bridge.database.start.wait=0s",
    )  # fmt: skip
    unreachable = program.start("serve", *TWO, *nowhere)
    missing = program.start("serve", *TWO, "--set", "hms.bridge.event.hooks=nowhere:Nobody")
    inner = program.start("serve", *TWO, "--set", "metastore.pre.event.listeners=nowhere:Nobody")
    for answer, text in ((unreachable, "127.0.0.1:1"), (missing, "nowhere"), (inner, "nowhere")):
        assert answer.exit_code == 1
        errors = [line for line in answer.err.splitlines() if line.startswith("error:")]
        assert len(errors) == 1, answer.err
        assert text in errors[0]
        assert "secret" not in answer.err
        assert "Traceback" not in answer.err
    as_json = program.start("serve", *TWO, *nowhere, "--log-format", "json")
    assert [line["level"] for line in as_json_lines(as_json.err)][-1] == "error"


def as_json_lines(text: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&cache=shared&uri=true"]
)
def test_a_database_in_memory_has_one_process(program: Program, url: str) -> None:
    answer = program.start("serve", *TWO, "--database", url, seconds=30)
    assert answer.exit_code == 1
    assert "in the memory of one process" in answer.err


def test_the_setting_says_so_too(program: Program) -> None:
    with serving(program, "--port", "0", "--set", "hms.bridge.server.processes=3") as server:
        server.wait_until_ready()
        assert len(clients_of(server)) == 3
        assert server.stop() == 0
    answer = program.run("serve", "--port", "0", "--set", "hms.bridge.server.processes=0")
    assert (answer.exit_code, "hms.bridge.server.processes" in answer.err) == (1, True)


@pytest.mark.golden
def test_compactions_run_beside_the_client_processes(program: Program) -> None:
    directory = copy_golden("g02_iud/01-before-minor", program.warehouse / "sales.db" / "orders")
    with serving(program, *TWO, "--worker") as server:
        remote = ("--metastore", server.wait_until_ready())
        program.ok("table", "adopt", str(directory), "--name", "sales.orders", *remote)
        done = program.start(
            "compact", "sales.orders", "major", "--wait", *remote, "--format", "json"
        )
        assert (done.exit_code, done.json["state"]) == (0, "ready for cleaning"), done.err
        assert server.stop() == 0
    assert len(list(directory.glob("base_*"))) == 1
