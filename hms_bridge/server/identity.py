"""Who makes a call, as far as it is known.

An identity belongs to a call and travels with it as an argument. It never belongs to a thread: one
thread serves many connections (:mod:`hms_bridge.server.crowd`), and would lend the rights of one to
another.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address


@dataclass(frozen=True, kw_only=True, slots=True)
class CallerIdentity:
    """``address``: of the host that the connection comes from; empty for a socket of this machine's
    file system, and where the client is gone. ``user``: the name that the client gave by set_ugi,
    empty where it gave none. Nobody has proved that name."""

    address: str = ""
    is_of_this_machine: bool = False
    user: str = ""


def identity_of(client: socket.socket) -> CallerIdentity:
    """Of a new connection, whose client has named no user yet."""
    if client.family == socket.AF_UNIX:
        return CallerIdentity(is_of_this_machine=True)
    try:
        peer, own = client.getpeername()[0], client.getsockname()[0]
    except OSError:  # the client is gone already
        return CallerIdentity()
    address = plain_address(peer)
    is_own = address.is_loopback or address == plain_address(own)
    return CallerIdentity(address=str(address), is_of_this_machine=is_own)


def plain_address(text: str) -> IPv4Address | IPv6Address:
    """An address; IPv4 where IPv6 only wraps it (``::ffff:127.0.0.1``), without the name of an
    interface. Raises ValueError."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
