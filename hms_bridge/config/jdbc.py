"""From ``javax.jdo.option.Connection…`` of a hive-site.xml to a database URL of ours.

Parameters of a JDBC URL are taken over by their meaning, left out where they mean nothing here, and
refused by name else: one that is dropped in silence could be the one that asks for encryption.
Sources: the connection parameters of pgJDBC, MySQL Connector/J and MariaDB Connector/J; of libpq
and PyMySQL.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from changemanager.masking import masked_url
from hms_bridge.config.declare import setting
from hms_bridge.config.values import GivenValues as Given
from hms_bridge.errors import ConfigError

_URL = re.compile(r"jdbc:(?P<kind>[a-z0-9]+):(?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_PLACE = re.compile(r"//(?P<hosts>[^/?]*)(?:/(?P<name>[^?]*))?(?:\?(?P<query>.*))?", re.DOTALL)
_HOST = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?")
_DRIVERS = {
    "org.postgresql.Driver": {"postgresql"},
    "com.mysql.jdbc.Driver": {"mysql"},
    "com.mysql.cj.jdbc.Driver": {"mysql"},
    "org.mariadb.jdbc.Driver": {"mariadb", "mysql"},
}
_OURS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
Query = dict[str, str]
Taker = Callable[[str, Query], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class JdbcConnection:
    """What a hive-site.xml says of the metastore's database; empty texts are not given."""

    # fmt: off
    url: str = setting(Given.text, "javax.jdo.option.ConnectionURL", "",
        "The metastore's database if nothing else names one: a JDBC URL of PostgreSQL, MySQL or "
        "MariaDB. Parameters that have no meaning here are left out, unknown ones refused.")
    driver: str = setting(Given.text, "javax.jdo.option.ConnectionDriverName", "",
        "Java's driver; it must fit the database of the URL.")
    user: str = setting(Given.text, "javax.jdo.option.ConnectionUserName", "",
        "User of the database.")
    password: str = setting(Given.text, "javax.jdo.option.ConnectionPassword", "",
        "Password of the database; never shown.", is_secret=True)
    # fmt: on


def database_url(connection: JdbcConnection) -> str:
    """The same database for SQLAlchemy. Raises ConfigError for one that cannot be opened so."""
    match = _URL.fullmatch(connection.url.strip())
    shown = masked_url(connection.url)
    if match is None:
        raise ConfigError(
            f"javax.jdo.option.ConnectionURL is '{shown}', which is no JDBC URL; "
            "write jdbc:postgresql://HOST/NAME or jdbc:mysql://HOST/NAME, or give --database"
        )
    kind = match["kind"].lower()
    _require_kind(kind)
    _require_driver(kind, connection.driver)
    place = _PLACE.fullmatch(match["rest"])
    if place is None or not _HOST.fullmatch(place["hosts"] or "localhost") or not place["name"]:
        raise ConfigError(
            f"javax.jdo.option.ConnectionURL is '{shown}'; write it as "
            f"jdbc:{kind}://HOST:PORT/NAME (one host), or give --database"
        )
    given = dict(parse_qsl(place["query"] or "", keep_blank_values=True))
    user = connection.user or given.get("user", "")
    password = connection.password or given.get("password", "")
    who = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    at = f"{who}@" if user else ""
    name = quote(unquote(place["name"]), safe="")
    query = _query_of(kind, given)
    parameters = f"?{urlencode(query)}" if query else ""
    return f"{_OURS[kind]}://{at}{place['hosts'] or 'localhost'}/{name}{parameters}"


def _query_of(kind: str, given: Mapping[str, str]) -> Query:
    """The parameters of a JDBC URL as those of ours. Raises ConfigError for an unknown one."""
    query: Query = {}
    takers = _POSTGRESQL if kind == "postgresql" else _MYSQL
    for name, value in given.items():
        if name in ("user", "password") or name in _WITHOUT_MEANING:
            continue
        if name not in takers:
            raise ConfigError(
                f"javax.jdo.option.ConnectionURL: the parameter {name} cannot be taken over; leave "
                "it out, or give --database with what it stands for"
            )
        takers[name](value, query)
    return query


def url_with_password(url: str, connection: JdbcConnection | None) -> str:
    """A database URL with the settings' password, if it has none and names the very user, server
    and database of the settings: nobody should have to write the password into a command line.
    """
    if connection is None or not connection.password:
        return url
    try:
        known, asked = urlsplit(database_url(connection)), urlsplit(url)
        is_same = asked.password is None and _account(asked) == _account(known)
    except (ConfigError, ValueError):
        return url
    return url.replace("@", f":{known.password}@", 1) if is_same else url


def _account(url: SplitResult) -> tuple[str | None, ...]:
    kind = _OURS.get(url.scheme.partition("+")[0])
    port = url.port or (5432 if kind == _OURS["postgresql"] else 3306)
    return kind, url.username, url.hostname, str(port), url.path


def asks_for_tls(url: str) -> bool:
    """Whether a database URL of ours says by a parameter that the connection is encrypted, whatever
    its server offers."""
    query = dict(parse_qsl(url.partition("?")[2]))
    if query.get("sslmode", "") in ("require", "verify-ca", "verify-full"):
        return True
    return bool(query.keys() & {"ssl_ca", "ssl_capath", "ssl_verify_cert", "ssl_check_hostname"})


def _require_kind(kind: str) -> None:
    if kind == "derby":
        raise ConfigError(
            "javax.jdo.option.ConnectionURL names a Derby database, which one Java process alone "
            "can open; connect to the metastore that has it: --metastore thrift://HOST:9083"
        )
    if kind not in _OURS:
        raise ConfigError(
            f"javax.jdo.option.ConnectionURL names a {kind} database; PostgreSQL, MySQL and "
            "MariaDB can be opened. Connect to its metastore: --metastore thrift://HOST:9083"
        )


def _require_driver(kind: str, driver: str) -> None:
    kinds = _DRIVERS.get(driver)
    if kinds is not None and kind not in kinds:
        raise ConfigError(
            f"javax.jdo.option.ConnectionDriverName is {driver}, but ConnectionURL names a {kind} "
            "database; mend one of them"
        )


def _named(name: str) -> Taker:
    def take(value: str, query: Query) -> None:
        query[name] = value

    return take


def _milliseconds(*names: str) -> Taker:
    def take(value: str, query: Query) -> None:
        if not value.isdecimal():
            raise ConfigError(f"javax.jdo.option.ConnectionURL: '{value}' is no time in ms")
        if int(value):
            query.update(dict.fromkeys(names, str(max(1, int(value) // 1000))))

    return take


def _switch(name: str) -> Taker:
    def take(value: str, query: Query) -> None:
        query[name] = "1" if _is_true(value) else "0"

    return take


def _is_true(value: str) -> bool:
    """A parameter without a value is set."""
    return value.lower() in ("", "true", "1", "yes")


def _postgresql_ssl(value: str, query: Query) -> None:
    """pgJDBC: ``ssl`` alone asks for verify-full."""
    if _is_true(value):
        query.setdefault("sslmode", "verify-full")


def _search_path(value: str, query: Query) -> None:
    query["options"] = f"-csearch_path={value}"


def _sslkey(value: str, query: Query) -> None:
    """pgJDBC reads PKCS-8 in DER and PKCS-12, libpq PEM."""
    if not value.endswith((".pem", ".key")):
        raise ConfigError(
            f"javax.jdo.option.ConnectionURL: sslkey {value} is a key for Java; convert it to PEM "
            "and give --database …?sslkey=FILE.pem"
        )
    query["sslkey"] = value


def _primary(value: str, query: Query) -> None:
    if value not in ("any", "primary", "master"):
        raise ConfigError(
            f"javax.jdo.option.ConnectionURL: targetServerType={value}; a metastore needs primary"
        )
    if value != "any":
        query["target_session_attrs"] = "read-write"


_POSTGRESQL: Mapping[str, Taker] = {
    "ssl": _postgresql_ssl,
    "sslmode": _named("sslmode"),
    "sslrootcert": _named("sslrootcert"),
    "sslcert": _named("sslcert"),
    "sslkey": _sslkey,
    "gssEncMode": _named("gssencmode"),
    "channelBinding": _named("channel_binding"),
    "currentSchema": _search_path,
    "ApplicationName": _named("application_name"),
    "connectTimeout": _named("connect_timeout"),
    "loginTimeout": _named("connect_timeout"),
    "tcpKeepAlive": _switch("keepalives"),
    "targetServerType": _primary,
}


_MYSQL_MODES = {
    "disabled": None, "disable": None, "preferred": None, "false": None,
    "required": "encrypted", "trust": "encrypted",
    "verify_ca": "ca", "verify-ca": "ca",
    "verify_identity": "identity", "verify-full": "identity", "true": "identity",
}  # fmt: skip


def _mysql_mode(value: str, query: Query) -> None:
    if value.lower() not in _MYSQL_MODES:
        raise ConfigError(f"javax.jdo.option.ConnectionURL: sslMode={value} is not known")
    mode = _MYSQL_MODES[value.lower()]
    if mode is not None:
        query["ssl_check_hostname"] = str(mode == "identity").lower()
    if mode in ("ca", "identity"):
        _trust_system(query)


def _mysql_ssl(value: str, query: Query) -> None:
    """``useSSL=true`` encrypts; it checks nobody."""
    if _is_true(value):
        query.setdefault("ssl_check_hostname", "false")


def _no_key_store(name: str) -> Taker:
    def take(value: str, query: Query) -> None:  # noqa: ARG001
        raise ConfigError(
            f"javax.jdo.option.ConnectionURL: {name} is a key store for Java; export its "
            "certificate as PEM and give --database …?ssl_ca=FILE.pem"
        )

    return take


def _verified(value: str, query: Query) -> None:
    if _is_true(value):
        _mysql_mode("verify_ca", query)


def _trust_system(query: Query) -> None:
    """Without a certificate PyMySQL checks nothing; Java trusts those of its installation."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        query.setdefault("ssl_ca", paths.cafile)
    elif paths.capath:
        query.setdefault("ssl_capath", paths.capath)
    else:
        raise ConfigError(
            "javax.jdo.option.ConnectionURL asks to check the server's certificate, but this "
            "machine has no trusted ones; give --database …?ssl_ca=FILE.pem"
        )


_MYSQL: Mapping[str, Taker] = {
    "sslMode": _mysql_mode,
    "useSSL": _mysql_ssl,
    "useSsl": _mysql_ssl,
    "requireSSL": _mysql_ssl,
    "verifyServerCertificate": _verified,
    "serverSslCert": _named("ssl_ca"),
    "connectTimeout": _milliseconds("connect_timeout"),
    "socketTimeout": _milliseconds("read_timeout", "write_timeout"),
    **{
        name: _no_key_store(name)
        for name in (
            "trustCertificateKeyStoreUrl",
            "clientCertificateKeyStoreUrl",
            "trustStore",
            "keyStore",
        )
    },
}

_WITHOUT_MEANING = frozenset(
    {
        "createDatabaseIfNotExist", "useUnicode", "characterEncoding", "connectionCollation",
        "autoReconnect", "allowPublicKeyRetrieval", "serverTimezone", "zeroDateTimeBehavior",
        "useLegacyDatetimeCode", "nullCatalogMeansCurrent", "rewriteBatchedStatements",
        "reWriteBatchedInserts", "useServerPrepStmts", "cachePrepStmts", "prepStmtCacheSize",
        "prepStmtCacheSqlLimit", "prepareThreshold", "preparedStatementCacheQueries",
        "defaultRowFetchSize", "binaryTransfer", "stringtype", "useCursorFetch", "maxReconnects",
        "tcpNoDelay", "logger", "loggerLevel", "autosave", "databaseTerm", "permitMysqlScheme",
    }
)  # fmt: skip
"""What makes Java's driver do the same; here the database is there, or it is not."""
