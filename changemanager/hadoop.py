"""What Hadoop's own configuration says about file systems: the keys that Hive's clients obey.

Plain texts, no files: who starts the program reads core-site.xml and hdfs-site.xml. A value of this
class can be pickled, so that a process without Hadoop's configuration opens the same file systems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from changemanager.errors import ChangeManagerConfigError

DEFAULT_FS = "fs.defaultFS"
UMASK = "fs.permissions.umask-mode"
AUTHENTICATION = "hadoop.security.authentication"
PREFIXES = ("fs.", "dfs.", "hadoop.")
"""Settings with such names are Hadoop's own."""

_RPC = "dfs.namenode.rpc-address"
_HTTP = "dfs.namenode.http-address"
RPC_PORT = "8020"
"""Where a NameNode listens that is named without a port."""
_OCTAL = re.compile(r"[0-7]{3,4}")


@dataclass(frozen=True, kw_only=True)
class HadoopConfig:
    """Hadoop's settings by name.

    `user` is who HDFS takes us for where there is no Kerberos; None leaves it to the environment.
    `is_native_allowed` false: HDFS is spoken to over HTTP only. `web_addresses` maps the authority
    of `hdfs:` URIs to the `host:port` of a NameNode's (or an HttpFS gateway's) HTTP service.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str | None = None
    is_native_allowed: bool = True
    web_addresses: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str, default: str = "") -> str:
        """A setting's text; empty counts as not set."""
        return self.values.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool) -> bool:
        """A setting that is true or false."""
        return self.get(name, str(default)).lower() == "true"

    @property
    def default_fs(self) -> str:
        """The file system of bare paths, `file:///` if nothing is said."""
        return self.get(DEFAULT_FS) or self.get("fs.default.name", "file:///")

    @property
    def default_prefix(self) -> str:
        """What stands before a bare path to make a URI of it: `file:`, `hdfs://host:8020`."""
        return "file:" if self.is_default_local else self.default_fs.rstrip("/")

    @property
    def is_default_local(self) -> bool:
        """Whether bare paths are files of this machine."""
        return self.default_fs.startswith("file:")

    @property
    def umask(self) -> int:
        """Permissions that new files and directories do not have.

        Raises ChangeManagerConfigError for what is not octal.
        """
        text = self.get(UMASK, "022")
        if not _OCTAL.fullmatch(text):
            raise ChangeManagerConfigError(
                f"{UMASK} is '{text}'; write it in octal digits, such as 022"
            )
        return int(text, 8)

    @property
    def is_kerberos(self) -> bool:
        """Whether the cluster asks for Kerberos."""
        return self.get(AUTHENTICATION, "simple").lower() != "simple"

    def rpc_addresses(self, authority: str) -> tuple[str, ...]:
        """`host:port` of every NameNode behind an authority: a name service's, or itself."""
        return self._addresses(_RPC, authority) or (_with_port(authority),)

    def one_authority(self, authority: str) -> str:
        """The same for all names of one HDFS: a name service, else `host:port` in small letters.

        A name with an HTTP address of its own (`hms.bridge.webhdfs.addresses`) stays as it is.
        """
        if not authority or self.is_name_service(authority) or authority in self.web_addresses:
            return authority
        return _with_port(authority).lower()

    def is_name_service(self, authority: str) -> bool:
        """Whether an authority is no host but a name that the configuration explains."""
        return bool(self._addresses(_RPC, authority))

    def http_addresses(self, authority: str) -> tuple[str, ...]:
        """`host:port` of every NameNode's HTTP service; empty if none is known.

        A setting without a name service counts for the one NameNode that the configuration names.
        """
        given = self.web_addresses.get(authority) or self.web_addresses.get(
            authority.removesuffix(f":{RPC_PORT}")
        )
        if given:
            return (given,)
        if self.get("dfs.http.policy", "HTTP_ONLY").upper() == "HTTPS_ONLY":
            return ()
        addresses = self._addresses(_HTTP, authority)
        if not addresses and self._is_the_name_node(authority) and self.get(_HTTP):
            addresses = (self.get(_HTTP),)
        host = self.rpc_addresses(authority)[0].rpartition(":")[0]
        return tuple(re.sub(r"^0\.0\.0\.0:", f"{host}:", address) for address in addresses)

    def require_consistent(self) -> None:
        """Raises ChangeManagerConfigError for an HTTP address of another cluster's NameNode."""
        owners = {
            address: service
            for service in self._name_services()
            for address in self._addresses(_HTTP, service)
        }
        self.umask  # noqa: B018 - it is checked when it is read
        for authority, address in self.web_addresses.items():
            owner = owners.get(address)
            if owner is not None and owner != authority and self.is_name_service(authority):
                raise ChangeManagerConfigError(
                    f"hms.bridge.webhdfs.addresses gives {address} to hdfs://{authority}, but "
                    f"{_HTTP}.{owner} says that it belongs to hdfs://{owner}; mend one of them"
                )

    def _is_the_name_node(self, authority: str) -> bool:
        default = self.default_fs
        named = default.partition("://")[2].rstrip("/") if default.startswith("hdfs://") else ""
        own = {_with_port(name) for name in (named, self.get(_RPC)) if name}
        return _with_port(authority) in own

    def _name_services(self) -> tuple[str, ...]:
        return _items(self.get("dfs.nameservices"))

    def _addresses(self, key: str, authority: str) -> tuple[str, ...]:
        nodes = _items(self.get(f"dfs.ha.namenodes.{authority}"))
        named = [self.get(f"{key}.{authority}.{node}") for node in nodes]
        single = [self.get(f"{key}.{authority}")] if authority in self._name_services() else []
        return tuple(address for address in (*named, *single) if address)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _with_port(authority: str) -> str:
    return authority if ":" in authority else f"{authority}:{RPC_PORT}"
