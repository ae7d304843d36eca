"""Settings of Hive and Hadoop that ask for protection which this program does not give.

A hive-site.xml has hundreds of settings that do nothing here. A setting that asks for protection
must not be among them: its administrator would take an open port for a closed one. So each of these
stops what it protects, by name.

Three kinds are left out, because Hive's metastore gives no protection for them either:
``hive.metastore.execute.setugi`` (true by default: files belong to the user that a client names,
and nobody checks the name); ``hive.server2.*`` and ``hive.security.authorization.*`` (HiveServer2
keeps these, whichever metastore it uses); keytabs, principals, trust stores, settings of LDAP and
JWT (without effect unless a setting of this table asks for them).

Names and defaults: MetastoreConf.ConfVars and HiveConf.ConfVars of Hive 4.2.0
(docs/hive/metastore.md §46).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from changemanager.masking import masked_url
from hms_bridge.config.jdbc import asks_for_tls
from hms_bridge.config.metastore_url import names_server
from hms_bridge.config.values import GivenValues
from hms_bridge.errors import ConfigError


class Protected(Enum):
    """What a setting protects; the value is where it stops this program."""

    PORT = "serve"
    CLIENT = "every connection to a metastore server"
    DATABASE = "every connection to a database server"
    ARCHIVE = "every use of the archive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """A setting: its names, the values that ask for nothing (an empty value is another), what any
    other value asks for, and what to do instead. ``asks`` decides where a list of values would not
    do. ``is_overridden``: whether ``--insecure`` says enough."""

    names: tuple[str, ...]
    idle: tuple[str, ...]
    protects: tuple[Protected, ...]
    meaning: str
    instead: str
    asks: Callable[[str], bool] | None = None
    is_overridden: bool = False

    def is_asked_by(self, value: str) -> bool:
        """Whether a value asks for the protection."""
        text = value.strip()
        if self.asks is not None:
            return self.asks(text)
        return bool(text) and text.lower() not in {idle.lower() for idle in self.idle}


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedProtection:
    """One that was asked for: by which name, with which value, in which file."""

    protection: Protection
    name: str
    value: str
    source: str


def _both(name: str, hive_name: str | None = None) -> tuple[str, str]:
    return name, hive_name or f"hive.{name}"


def _names_an_authorizer(value: str) -> bool:
    return any("authoriz" in item.rpartition(".")[2].lower() for item in value.split(","))


_TRUSTED_NETWORK = "let only trusted hosts reach the port, and set it to {idle}"
_INSECURE = "let only trusted hosts reach the port, and add --insecure to the command"
_TLS_IN_URL = (
    "ask for TLS in the URL itself (postgresql://…?sslmode=verify-full&sslrootcert=FILE.pem, "
    "mysql://…?ssl_ca=FILE.pem), or "
)
_IN_CLEAR = "connect to a metastore that takes clear connections, and set it to {idle}"

PROTECTIONS = (
    Protection(
        names=_both("metastore.sasl.enabled"),
        idle=("false",),
        protects=(Protected.PORT, Protected.CLIENT),
        meaning="clients and metastore prove by Kerberos who they are",
        instead=_TRUSTED_NETWORK,
    ),
    Protection(
        names=_both("metastore.use.SSL"),
        idle=("false",),
        protects=(Protected.PORT, Protected.CLIENT),
        meaning="the thrift port speaks TLS",
        instead=_TRUSTED_NETWORK,
    ),
    Protection(
        names=_both("metastore.authentication"),
        idle=("NOSASL", "NONE"),
        protects=(Protected.PORT,),
        meaning="the metastore asks clients for a proof of who they are",
        instead=_TRUSTED_NETWORK,
    ),
    Protection(
        names=_both("metastore.server.thrift.transport.mode"),
        idle=("binary",),
        protects=(Protected.PORT,),
        meaning="the thrift port speaks HTTP, behind a gateway or with JWT",
        instead=_TRUSTED_NETWORK,
    ),
    Protection(
        names=_both("metastore.pre.event.listeners"),
        idle=(),
        asks=_names_an_authorizer,
        protects=(Protected.PORT,),
        meaning="a listener of Hive's authorizes each change",
        instead="leave the authorizer out of the list; a hook in Python can refuse changes "
        "(docs/hooks.md)",
    ),
    Protection(
        names=_both("metastore.rawstore.impl"),
        idle=(),
        asks=_names_an_authorizer,
        protects=(Protected.PORT,),
        meaning="the metastore's store authorizes each read",
        instead="let HiveServer2 authorize, and leave it out",
    ),
    Protection(
        names=("hive.security.metastore.authorization.manager",),
        idle=(
            "org.apache.hadoop.hive.ql.security.authorization."
            "DefaultHiveMetastoreAuthorizationProvider",
        ),
        protects=(Protected.PORT,),
        meaning="the metastore authorizes clients, by the permissions of directories for example",
        instead="let HiveServer2 authorize, and set it to {idle}",
    ),
    Protection(
        names=_both("metastore.authorization.storage.checks"),
        idle=("false",),
        protects=(Protected.PORT,),
        meaning="a client may drop only what it may write to in the file system",
        instead="let HiveServer2 authorize, and set it to {idle}",
    ),
    Protection(
        names=_both("metastore.filter.hook"),
        idle=("org.apache.hadoop.hive.metastore.DefaultMetaStoreFilterHookImpl",),
        protects=(Protected.PORT,),
        meaning="clients are not shown what they may not read",
        instead="let HiveServer2 filter, and set it to {idle}",
    ),
    Protection(
        names=("hadoop.security.authentication",),
        idle=("simple",),
        protects=(Protected.PORT,),
        meaning="services of this cluster prove by Kerberos who they are",
        instead=_INSECURE,
        is_overridden=True,
    ),
    Protection(
        names=("hadoop.security.authorization",),
        idle=("false",),
        protects=(Protected.PORT,),
        meaning="services of this cluster are open to listed users only",
        instead=_INSECURE,
        is_overridden=True,
    ),
    Protection(
        names=_both("metastore.client.auth.mode"),
        idle=("NOSASL",),
        protects=(Protected.CLIENT,),
        meaning="clients prove by a password or a JWT who they are",
        instead=_IN_CLEAR,
    ),
    Protection(
        names=_both("metastore.client.thrift.transport.mode"),
        idle=("binary",),
        protects=(Protected.CLIENT,),
        meaning="clients connect over HTTP, behind a gateway or with JWT",
        instead=_IN_CLEAR,
    ),
    Protection(
        names=_both("metastore.dbaccess.ssl.use.SSL"),
        idle=("false",),
        protects=(Protected.DATABASE,),
        meaning="connections to the metastore's database are encrypted",
        instead=_TLS_IN_URL + "set it to {idle}",
    ),
    Protection(
        names=_both("metastore.dbaccess.ssl.properties"),
        idle=(),
        protects=(Protected.DATABASE,),
        meaning="connections to the metastore's database are encrypted",
        instead=_TLS_IN_URL + "leave it empty",
    ),
    Protection(
        names=_both(
            "metastore.repl.cm.encryptionzone.rootdir", "hive.repl.cm.encryptionzone.rootdir"
        ),
        idle=(".cmroot",),
        protects=(Protected.ARCHIVE,),
        meaning="files of HDFS encryption zones are archived inside of their zone",
        instead="keep replicated databases out of encryption zones, and set it to {idle}",
    ),
    Protection(
        names=_both(
            "metastore.repl.cm.nonencryptionzone.rootdir", "hive.repl.cm.nonencryptionzone.rootdir"
        ),
        idle=(),
        protects=(Protected.ARCHIVE,),
        meaning="the archive lies in an HDFS encryption zone, and only files of that zone go there",
        instead="name an archive outside of encryption zones (hive.repl.cmrootdir), and leave it "
        "empty",
    ),
)  # fmt: skip
"""All of them, in the order of the page."""

PROTECTION_NAMES = frozenset(name for protection in PROTECTIONS for name in protection.names)


def asked_protections(
    given: Mapping[str, str], source: str, hadoop_site: Mapping[str, str]
) -> tuple[AskedProtection, ...]:
    """Those that settings ask for. Every name of a setting counts for itself: where one says no and
    the other yes, protection was asked for. ``hadoop_site``: properties of Hadoop's own files,
    before which ``given`` goes."""
    values = GivenValues(given, source, hadoop_site)
    demands = []
    for protection in PROTECTIONS:
        for name in protection.names:
            where = source if name in given else "core-site.xml or hdfs-site.xml"
            value = values.resolved(name)
            if value is not None and protection.is_asked_by(value):
                demand = AskedProtection(
                    protection=protection, name=name, value=value, source=where
                )
                demands.append(demand)
    return tuple(demands)


def require_none(
    asked: Iterable[AskedProtection], what: Protected, *, is_insecure: bool = False
) -> None:
    """Raises ConfigError, which names setting, value, file and the next step, if a protection of
    ``what`` was asked for; ``is_insecure``: the command line said that the port is open."""
    for demand in asked:
        protection = demand.protection
        if what not in protection.protects or (is_insecure and protection.is_overridden):
            continue
        idle = protection.idle[0] if protection.idle else "nothing"
        raise ConfigError(
            f"{demand.source}: {demand.name} is '{masked_url(demand.value)}', which asks that "
            f"{protection.meaning}, and {_LACK[what]}; "
            f"{protection.instead.format(idle=idle)}{_command(demand, idle)}"
        )


def require_encrypted(url: str, asked: Iterable[AskedProtection]) -> None:
    """Raises ConfigError where Hive's settings ask for TLS to the metastore's database, and the URL
    of its server does not."""
    if not (url.startswith("sqlite:") or names_server(url) or asks_for_tls(url)):
        require_none(asked, Protected.DATABASE)


_LACK = {
    Protected.PORT: "this server cannot do so yet: it would be open to whoever reaches it",
    Protected.CLIENT: "this program cannot do so yet: it would talk to the metastore in clear",
    Protected.DATABASE: "this program does not read it: it might talk to the database in clear",
    Protected.ARCHIVE: "this program does not heed it: files would leave their zone",
}


def _command(demand: AskedProtection, idle: str) -> str:
    """How to take the demand back for one command, and leave the file to others who read it."""
    if demand.protection.is_overridden or demand.protection.asks is not None:
        return ""
    value = idle if demand.protection.idle else ""
    return f" (for this command only: --set {demand.name}={value})"
