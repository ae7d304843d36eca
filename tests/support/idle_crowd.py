"""Run as a process: connections to a port of this machine that send a few bytes, or none, and
nothing more; those that are closed come again at once.

Arguments: port, how many, how many bytes. Says ``ready`` once all are open for the first time, and
goes on until it is killed.
"""

from __future__ import annotations

import errno
import selectors
import socket
import sys
from contextlib import suppress

_BYTES = b"\x80\x01\x00\x01"


def main() -> None:
    """Open them, then keep them open."""
    port, count, size = (int(text) for text in sys.argv[1:])
    selector = selectors.DefaultSelector()
    for _ in range(count):
        _open(selector, port, size)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for key, _ in selector.select():
            client = key.fileobj
            assert isinstance(client, socket.socket)
            with suppress(OSError):
                if client.recv(4096):
                    continue
            selector.unregister(client)
            client.close()
            with suppress(OSError):
                _open(selector, port, size)


def _open(selector: selectors.BaseSelector, port: int, size: int) -> None:
    client = socket.socket()
    client.setblocking(False)
    if client.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS):
        client.close()
        return
    if size:
        client.setblocking(True)
        client.sendall(_BYTES[:size])
        client.setblocking(False)
    selector.register(client, selectors.EVENT_READ)


if __name__ == "__main__":
    main()
