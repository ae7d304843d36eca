"""From names and texts to :class:`Settings`: every value checked, what is unknown refused."""

from __future__ import annotations

import difflib
import getpass
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from changemanager.errors import ChangeManagerConfigError
from changemanager.hadoop import DEFAULT_FS, HadoopConfig
from hms_bridge.config.access import AccessSettings, proxy_hosts
from hms_bridge.config.declare import read
from hms_bridge.config.hive_site import (
    hive_sites,
    read_hadoop_site,
    read_hive_site,
    require_resolved,
    site_of_environment,
)
from hms_bridge.config.jdbc import JdbcConnection
from hms_bridge.config.protection import PROTECTION_NAMES, asked_protections
from hms_bridge.config.repl import ReplSettings
from hms_bridge.config.settings import (
    KEYS,
    ArchiveSettings,
    CompactorSettings,
    EventSettings,
    HdfsSettings,
    HookSettings,
    MetastorePlace,
    MetricsSettings,
    ReportSettings,
    ServerSettings,
    Settings,
    TxnSettings,
)
from hms_bridge.config.values import GivenValues
from hms_bridge.errors import ConfigError

_OF_HIVE = ("hive.", "metastore.")
_HIVES_ALONE = frozenset({"metastore.repl.rootdir"})
"""Which are like one of ours and mean something else."""
_WORD_RATIO_MIN = 0.6
_WORDS_MAX = 2


def refuse_unknown(names: Iterable[str], source: str) -> None:
    """Raises ConfigError, with the nearest name, for a name that is no setting of ours."""
    known = {name for key in KEYS for name in key.names} | PROTECTION_NAMES
    for name in sorted(set(names) - known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else "see docs/reference/settings.md"
        raise ConfigError(f"{source}: unknown setting {name}; {hint}")


def misspelt(names: Iterable[str]) -> dict[str, str]:
    """Of names that are no settings of ours, those that are likely to be meant as one, and which
    that is. A hive-site.xml has hundreds that are Hive's alone, so what differs by a word is none.
    """
    known = {name for key in KEYS for name in key.names if name.startswith(_OF_HIVE)}
    unknown = {name for name in names if name.startswith(_OF_HIVE)} - known - _HIVES_ALONE
    near = {name: _nearest(name, known) for name in sorted(unknown)}
    return {name: meant for name, meant in near.items() if meant is not None}


def _nearest(name: str, known: Iterable[str]) -> str | None:
    alike = [other for other in known if _has_words_like(name, other)]
    return next(iter(difflib.get_close_matches(name, alike, n=1, cutoff=0.9)), None)


def _has_words_like(name: str, other: str) -> bool:
    if name.replace(".", "") == other.replace(".", ""):
        return True
    words, others = name.split("."), other.split(".")
    if len(words) != len(others):
        return False
    differing = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return len(differing) <= _WORDS_MAX and all(
        difflib.SequenceMatcher(None, *pair).ratio() >= _WORD_RATIO_MIN for pair in differing
    )


def settings_from(
    given: Mapping[str, str], source: str = "settings", hadoop_site: Mapping[str, str] | None = None
) -> Settings:
    """Settings from names and texts; ``source`` (a file) stands in every refusal.

    ``hadoop_site`` are the properties of Hadoop's own configuration, before which those of the same
    names in ``given`` go.

    Raises ConfigError for a malformed value or an unknown ``hms.bridge.`` name; other unknown
    names are Hive's own, of which a hive-site.xml has many.
    """
    refuse_unknown((name for name in given if name.startswith("hms.bridge.")), source)
    values = GivenValues(given, source, hadoop_site or {})
    hdfs = read(HdfsSettings, values)
    values.user = hdfs.user or os.environ.get("HADOOP_USER_NAME", "").strip() or getpass.getuser()
    hadoop = _hadoop(hdfs, values, hadoop_site or {})
    values.default_fs = hadoop.default_fs
    connection = read(JdbcConnection, values)
    return read(
        Settings,
        values,
        hadoop=hadoop,
        server=read(ServerSettings, values),
        access=read(
            AccessSettings,
            values,
            proxy_hosts=proxy_hosts(hadoop.values),
            asked=asked_protections(given, source, hadoop_site or {}),
        ),
        metrics=read(MetricsSettings, values),
        txn=read(TxnSettings, values),
        events=read(EventSettings, values),
        hooks=read(HookSettings, values),
        compactor=read(CompactorSettings, values),
        archive=read(ArchiveSettings, values),
        repl=read(ReplSettings, values),
        reports=read(ReportSettings, values),
        metastore=read(
            MetastorePlace, values, connection=connection if connection.url.strip() else None
        ),
    )


def settings_of_environment(environment: Mapping[str, str]) -> Settings:
    """Those of the files that the environment names, for who is given no options. Raises
    ConfigError as :func:`settings_from`."""
    named = environment.get("HMS_BRIDGE_CONFIG")
    path = Path(named) if named else site_of_environment(environment)
    given = read_hive_site(path) if path else {}
    source = " and ".join(map(str, hive_sites(path))) if path else "settings"
    return settings_from(given, source, read_hadoop_site(environment))


def _hadoop(hdfs: HdfsSettings, values: GivenValues, site: Mapping[str, str]) -> HadoopConfig:
    own = values.hadoop()
    elsewhere = site.get(DEFAULT_FS, "").rstrip("/")
    if elsewhere and own.get(DEFAULT_FS, elsewhere).rstrip("/") != elsewhere:
        raise ConfigError(
            f"{DEFAULT_FS} is {own[DEFAULT_FS]} in our settings and {elsewhere} in core-site.xml; "
            "bare paths would mean two places: make them equal, or leave one out"
        )
    config = HadoopConfig(
        values={**site, **own},
        user=hdfs.user,
        is_native_allowed=hdfs.client == "auto",
        web_addresses=hdfs.web_addresses,
    )
    require_resolved(config.default_fs, DEFAULT_FS)
    if not (config.is_kerberos or config.is_default_local):
        # Said outright: another process, an executor of Spark, is to be the same user.
        config = replace(config, user=values.user)
    try:
        config.require_consistent()
    except ChangeManagerConfigError as error:
        raise ConfigError(str(error)) from error
    return config
