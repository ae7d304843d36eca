"""Calls about the service itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from changemanager.masking import is_secret_name
from hms_bridge.errors import MetaError
from hms_bridge.server.answers import answers
from hms_bridge.wire.structs import Struct

INTERFACE_VERSION = "4.1.0"
"""The version of Hive whose interface is served, as getVersion answers it."""

_ALIVE = 2
_READABLE_KEY = re.compile(r"(hive|metastore|hdfs|mapred)\.")


_EXPRESSION_PROXY = "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore"
"""What Hive calls the form in which conditions are sent."""

_EXPRESSION_PROXIES = frozenset(
    {_EXPRESSION_PROXY, "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy"}
)
"""MSCK says that it will send texts of filters; both forms are known when they come."""

_SESSION_SETTINGS = {
    "metastore.client.capability.check": "true",
    "metastore.disallow.incompatible.col.type.changes": "true",
    "metastore.expression.proxy": _EXPRESSION_PROXY,
    "metastore.partition.name.whitelist.pattern": "",
    "metastore.try.direct.sql": "true",
    "metastore.try.direct.sql.ddl": "true",
}
"""Hive's MetastoreConf.metaConfs, with its defaults."""

_WITHOUT_EFFECT = frozenset({"metastore.try.direct.sql", "metastore.try.direct.sql.ddl"})


class ServiceCalls:
    """fb303's calls, settings, identities."""

    def __init__(
        self, config: Mapping[str, str], database_uuid: str | None, since_seconds: int
    ) -> None:
        self._config = config
        self._database_uuid = database_uuid
        self._started_seconds = since_seconds

    @answers("getName")
    def name(self, _: Struct) -> str:
        """Who is there."""
        return "hms-bridge"

    @answers("getVersion")
    def version(self, _: Struct) -> str:
        return INTERFACE_VERSION

    @answers("getStatus")
    def status(self, _: Struct) -> int:
        """Alive."""
        return _ALIVE

    @answers("aliveSince")
    def alive_since(self, _: Struct) -> int:
        """Seconds since the epoch."""
        return self._started_seconds

    @answers("getStatusDetails", "getCpuProfile", "getOption")
    def no_text(self, _: Struct) -> str:
        """Details that fb303 knows and Hive does not fill either."""
        return ""

    @answers("getCounters", "getOptions")
    def no_counters(self, _: Struct) -> dict[str, int]:
        """Empty, for a client that asks: nothing is counted, and there are no options to read."""
        return {}

    @answers("getCounter")
    def no_counter(self, _: Struct) -> int:
        """As getCounters."""
        return 0

    @answers("reinitialize")
    def reinitialize(self, _: Struct) -> bool:
        """Nothing to do; the connection goes on."""
        return True

    @answers("shutdown")
    def shutdown(self, _: Struct) -> bool:
        """Ends this connection only: Java clients send it when they close (docs/hive/metastore.md
        §6)."""
        return False

    @answers("flushCache")
    def flush_cache(self, _: Struct) -> None:
        """There is no cache."""

    @answers("set_ugi")
    def set_ugi(self, args: Struct) -> list[str]:
        """The user and its groups, as Hive echoes them."""
        return [*(args.group_names or ()), args.user_name or ""]

    @answers("get_metastore_db_uuid")
    def database_uuid(self, _: Struct) -> str:
        if self._database_uuid is None:
            raise MetaError("this metastore has no database id; start it on a Hive schema")
        return self._database_uuid

    @answers("get_config_value")
    def config_value(self, args: Struct) -> str:
        """A setting, or the client's default. Secrets are nobody's business."""
        name = args.name or ""
        if not _READABLE_KEY.match(name) or is_secret_name(name):
            raise MetaError(f"For security reasons, the config key {name} cannot be accessed")
        return self._config.get(name, args.defaultValue or "")

    @answers("getMetaConf")
    def meta_conf(self, args: Struct) -> str:
        """One of the settings that Hive lets clients ask for, under either of its names."""
        name = (args.key or "").removeprefix("hive.")
        if name not in _SESSION_SETTINGS:
            raise MetaError(f"Invalid configuration key {args.key}")
        default = _SESSION_SETTINGS[name]
        return self._config.get(name, self._config.get(f"hive.{name}", default))

    @answers("setMetaConf")
    def set_meta_conf(self, args: Struct) -> None:
        """Such a setting for the session: only what it is already, or what has no effect here."""
        name = (args.key or "").removeprefix("hive.")
        if name == "metastore.expression.proxy" and args.value in _EXPRESSION_PROXIES:
            return
        if args.value != self.meta_conf(args) and name not in _WITHOUT_EFFECT:
            raise MetaError(f"{args.key} cannot be changed by a client; set it on the server")
