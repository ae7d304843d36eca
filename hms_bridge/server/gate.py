"""The gate of the server: which callers a call is answered to.

Hive guards the notification log so, and nothing else before authentication
(``HMSHandler.authorizeProxyPrivilege``, docs/hive/metastore.md §45). Here calls of the class
``TRUSTED`` have the same gate.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network

from hms_bridge.config.access import PROXY_USER, AccessSettings
from hms_bridge.errors import ConfigError, MetaError
from hms_bridge.model.shortened import shortened
from hms_bridge.server.identity import CallerIdentity, plain_address
from hms_bridge.server.verb_classes import VerbClass

_log = logging.getLogger(__name__)

_NAME = re.compile(r"[\w.-]{1,64}")
_SHOWN_MAX = 64
_OF_TRUSTED = "tokens, keys, roles, privileges, scheduled queries, seeds and cm_recycle are"
_OF_LOG = "the event log is"


class ProxyHosts:
    """From where a user may act for others. As in Hadoop names are resolved once, a name without an
    address is left out, and ``*`` counts only where it stands alone (``MachineList``)."""

    def __init__(
        self, user: str, hosts: tuple[str, ...], resolve: Callable[[str], Iterable[str]]
    ) -> None:
        """Raises ConfigError for what is neither an address, a block of addresses nor a name."""
        self.is_any = hosts == ("*",)
        self._networks: list[IPv4Network | IPv6Network] = []
        for host in () if self.is_any else hosts:
            try:
                self._networks += _networks(host, resolve)
            except ValueError as error:
                raise ConfigError(
                    f"{PROXY_USER}{user}.hosts: '{host}' is no address, block or name: {error}; "
                    "write 10.0.0.7, 10.0.0.0/24, a host name, or * alone"
                ) from error
            except OSError as error:
                _log.warning(
                    "%s%s.hosts: %s has no address (%s); nobody comes from there",
                    PROXY_USER, user, host, error,
                )  # fmt: skip

    def has(self, address: str) -> bool:
        """Whether a host is among them."""
        if self.is_any:
            return True
        if not address:
            return False
        host = plain_address(address)
        return any(host in network for network in self._networks)


class Gate:
    """Lets calls pass, or refuses them. A caller of this machine may do anything; a proxy user may
    from its hosts. ``own_user``: who runs the server."""

    def __init__(
        self,
        access: AccessSettings,
        own_user: str,
        resolve: Callable[[str], Iterable[str]] | None = None,
    ) -> None:
        """Raises ConfigError for hosts of a proxy user that mean nothing."""
        self._is_log_guarded = access.is_log_guarded
        self._own_user = own_user
        self._hosts = {
            user: ProxyHosts(user, hosts, resolve or addresses_of)
            for user, hosts in access.proxy_hosts.items()
        }

    def require(self, identity: CallerIdentity, method: str, verb_class: VerbClass) -> None:
        """Raises MetaError, which says what to add to hive-site.xml, for a call that is refused."""
        if verb_class is VerbClass.OPEN or identity.is_of_this_machine:
            return
        if verb_class is VerbClass.LOG and self._may_read_log(identity):
            return
        if self._is_proxy(identity):
            return
        _log.warning(
            "refused %s of user %r at %s",
            method, shortened(identity.user, _SHOWN_MAX), identity.address,
        )  # fmt: skip
        raise MetaError(self._refusal(identity, method, verb_class))

    @property
    def open_to(self) -> str:
        """What is guarded, and who passes besides this machine; for people."""
        users = ", ".join(
            f"{user} from any host" if hosts.is_any else f"{user} from its hosts"
            for user, hosts in sorted(self._hosts.items())
        )
        proxies = f"proxy users ({users})" if users else "nobody else"
        log = f"this machine, user {self._own_user} and {proxies}"
        return (
            f"{_OF_LOG} for {log if self._is_log_guarded else 'everybody'}; "
            f"{_OF_TRUSTED} for this machine and {proxies}"
        )

    def _may_read_log(self, identity: CallerIdentity) -> bool:
        """The server's own user by its name alone, which nobody has proved: not enough for what is
        trusted."""
        if not self._is_log_guarded:
            return True
        return bool(identity.user) and identity.user == self._own_user

    def _is_proxy(self, identity: CallerIdentity) -> bool:
        """A caller without a name counts as the server's own user, as in Hive."""
        hosts = self._hosts.get(identity.user or self._own_user)
        return hosts is not None and hosts.has(identity.address)

    def _refusal(self, identity: CallerIdentity, method: str, verb_class: VerbClass) -> str:
        user = identity.user or self._own_user
        name = user if _NAME.fullmatch(user) else "USER"
        line = _property(f"{PROXY_USER}{name}.hosts", identity.address)
        what, instead = _OF_TRUSTED, ""
        if verb_class is VerbClass.LOG:
            what = _OF_LOG
            instead = ", or, for everybody who reaches the port, " + _property(
                "hive.metastore.event.db.notification.api.auth", "false"
            )
        return (
            f"User {shortened(user, _SHOWN_MAX)} is not allowed to perform this API call: {what} "
            f"for this machine and for proxy users, and {method} came from {identity.address}; if "
            f"that host is trusted, add to the server's hive-site.xml {line}{instead}, and start "
            "the server again"
        )


def addresses_of(host: str) -> Iterable[str]:
    """Of a host name. Raises OSError for a name without an address."""
    return {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}


def _networks(
    host: str, resolve: Callable[[str], Iterable[str]]
) -> list[IPv4Network | IPv6Network]:
    if "/" in host:
        return [ip_network(host, strict=False)]
    try:
        addresses: Iterable[str] = [str(plain_address(host))]
    except ValueError:
        addresses = resolve(host)
    return [ip_network(str(plain_address(address))) for address in addresses]


def _property(name: str, value: str) -> str:
    return f"<property><name>{name}</name><value>{value}</value></property>"
