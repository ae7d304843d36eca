"""Who may ask the server for what: settings of Hive and Hadoop that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_bridge.config.declare import setting
from hms_bridge.config.protection import AskedProtection
from hms_bridge.config.values import GivenValues as Given

PROXY_USER = "hadoop.proxyuser."
_HOSTS = ".hosts"


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessSettings:
    """``proxy_hosts``: from which hosts a user may act for others, by its name, as
    ``hadoop.proxyuser.NAME.hosts`` says: addresses, CIDR blocks, host names, or ``*``.
    ``asked``: protections that were asked for and are not given."""

    # fmt: off
    is_log_guarded: bool = setting(Given.flag, "metastore.event.db.notification.api.auth", "true",
        "Whether the notification log is read by this machine, by the server's own user and by "
        "proxy users (hadoop.proxyuser.NAME.hosts) only, and by nobody else who reaches the port.",
        "hive.metastore.event.db.notification.api.auth")
    # fmt: on
    proxy_hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: tuple[AskedProtection, ...] = ()


def proxy_hosts(hadoop: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """By user, of Hadoop's settings (DefaultImpersonationProvider.setConf, getProxyHosts). Users
    and groups for whom it may act mean nothing here: nobody is impersonated."""
    return {
        name.removeprefix(PROXY_USER).removesuffix(_HOSTS): tuple(
            host.strip() for host in hosts.split(",") if host.strip()
        )
        for name, hosts in hadoop.items()
        if name.startswith(PROXY_USER) and name.endswith(_HOSTS)
    }
