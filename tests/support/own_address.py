"""An address of this machine by which it is known to others: no loopback."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest


def own_address() -> str:
    """Nothing is sent for it. Skips the test on a machine without a network."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asked:
        try:
            asked.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address = str(asked.getsockname()[0])
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    return address
