"""A metastore whose host dies without a word, and what a client may say of its call."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading

import pytest

from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import MetastoreUnavailableError
from tests.support.golden import CHECKOUT
from tests.support.program import process_environment
from tests.support.simulated_clock import SimulatedClock

ALONE = ("unshare", "--net")
SECONDS_MAX = 60
"""A busy machine; the system's own patience is 900 seconds and more."""


def may_have_own_network() -> bool:
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.process
@pytest.mark.skipif(not may_have_own_network(), reason="no right to a network of its own")
def test_a_host_that_is_gone_without_a_word_ends_its_calls() -> None:
    """One that waits for its answer, and one that is sent then; and the server's threads."""
    run = subprocess.run(
        [*ALONE, sys.executable, "-m", "tests.support.silent_host"],
        cwd=CHECKOUT, env=process_environment(), capture_output=True, text=True, check=False,
        timeout=1.5 * SECONDS_MAX,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    for call in ("waited", "sent", "repeated"):
        assert found[call][0] < SECONDS_MAX, found
    for call in ("waited", "sent"):
        assert "was not sent" not in found[call][1], found
    assert "was not sent" in found["repeated"][1], "as no connection is there any more"
    assert "whether it took effect is unknown" in found["sent"][1]
    assert "confirms no packet" in found["waited"][1]
    assert found["living"] == "answered", "a host that is there is waited for"
    assert found["threads"] == 0, "of connections whose client is gone"


def test_a_call_that_was_sent_once_is_never_said_not_to_be() -> None:
    """Where it cannot be repeated, as nobody is there any more."""
    listener = socket.create_server(("127.0.0.1", 0))

    def die_at_the_first_call() -> None:
        client, _ = listener.accept()
        client.recv(1)
        listener.close()
        client.close()

    threading.Thread(target=die_at_the_first_call, daemon=True).start()
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    with (
        ThriftMetastoreClient(address, CallSettings(), SimulatedClock()) as client,
        pytest.raises(MetastoreUnavailableError) as refused,
    ):
        client.get_current_event_id()
    assert "was not sent" not in str(refused.value)
    assert f"no answer from thrift://{address}" in str(refused.value)


def test_a_metastore_that_stands_still_on_a_living_host_is_named() -> None:
    """It is not asked again: that would only wait for as long once more."""
    with socket.create_server(("127.0.0.1", 0)) as stopped:
        address = f"127.0.0.1:{stopped.getsockname()[1]}"
        settings = CallSettings(call_timeout_seconds=0.2)
        with (
            ThriftMetastoreClient(address, settings, SimulatedClock()) as client,
            pytest.raises(MetastoreUnavailableError) as refused,
        ):
            client.get_current_event_id()
        stopped.setblocking(False)
        stopped.accept()[0].close()
        with pytest.raises(BlockingIOError):
            stopped.accept()
    assert f"its host thrift://{address} is there" in str(refused.value)
