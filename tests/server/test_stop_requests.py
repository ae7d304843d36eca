"""A request to stop is heard, whichever thread the system gives it to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

ANOTHER_THREAD = """
import signal, sys, threading
from hms_bridge.server.stop_requests import StopRequests

requests = StopRequests(lambda: None)
requests.listen()

def take():
    # The system gives a signal to a thread that does not block it; the main thread sleeps.
    for line in sys.stdin:
        signal.pthread_kill(threading.get_ident(), int(line))

threading.Thread(target=take, daemon=True).start()
print("ready", flush=True)
print(requests.wait(), flush=True)
"""
OF_OTHERS = """
import os, signal
from hms_bridge.server.stop_requests import StopRequests

requests = StopRequests(lambda: None)
requests.listen()
signal.signal(signal.SIGUSR1, lambda *_: None)
os.kill(os.getpid(), signal.SIGUSR1)
print(requests.wait(0.2), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
print(requests.wait(), requests.wait(), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_that_another_thread_was_interrupted_with_wakes_the_one_that_waits(
    number: signal.Signals,
) -> None:
    words = [sys.executable, "-c", ANOTHER_THREAD]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write(f"{int(number)}\n")
        process.stdin.flush()
        try:
            process.wait(30)
        finally:
            process.kill()
        assert process.stdout.read() == "True\n"


def test_a_signal_that_asks_for_nothing_is_no_request() -> None:
    words = [sys.executable, "-c", OF_OTHERS]
    ended = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=True, env=dict(os.environ)
    )
    assert ended.stdout == "False\nTrue True\n"
