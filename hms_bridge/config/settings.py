"""The settings as frozen records, made once at start. Below ``cli/`` nobody reads a string key."""

from __future__ import annotations

import difflib
import getpass
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hms_bridge.config import keys
from hms_bridge.config.durations import parse_duration_ms
from hms_bridge.config.hive_site import substitute
from hms_bridge.config.keys import KEYS, Key, Kind
from hms_bridge.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnSettings:
    """Rules of transactions and locks."""

    timeout_ms: int = 300_000
    repl_timeout_ms: int = 950_400_000
    open_timeout_ms: int = 1_000
    open_batch_max: int = 1_000
    open_txns_max: int = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class EventSettings:
    """Rules of notification events."""

    ttl_ms: int = 864_000_000
    message_format: str = "gzip(json-2.0)"
    hooks: tuple[str, ...] = ()
    is_alter_partitions_one_event: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactorSettings:
    """Rules of initiator, worker and cleaner."""

    is_initiator_on: bool = False
    is_cleaner_on: bool = False
    worker_threads: int = 0
    worker_timeout_ms: int = 86_400_000
    check_interval_ms: int = 300_000
    delta_count_threshold: int = 10
    delta_share_threshold: float = 0.1
    aborted_txn_threshold: int = 1_000
    aborted_txn_time_threshold_ms: int = 43_200_000
    cleaner_interval_ms: int = 5_000
    cleaner_retention_ms: int = 0
    cleaner_attempts_max: int = 5
    cleaner_retry_retention_ms: int = 300_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveSettings:
    """The ChangeManager: whether, where, how long. Paths and URIs as given."""

    is_enabled: bool = True
    root: str = "cmroot"
    retain_ms: int = 864_000_000
    interval_ms: int = 3_600_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplSettings:
    """Replication."""

    root: str = "repl"
    open_txn_timeout_ms: int = 3_600_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """The thrift server."""

    port: int = 9083
    message_size_bytes_max: int = 104_857_600


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All of them."""

    warehouse: str = "warehouse"
    server: ServerSettings = field(default_factory=ServerSettings)
    txn: TxnSettings = field(default_factory=TxnSettings)
    events: EventSettings = field(default_factory=EventSettings)
    compactor: CompactorSettings = field(default_factory=CompactorSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    repl: ReplSettings = field(default_factory=ReplSettings)


class _Values:
    """The given values, by key, checked."""

    def __init__(self, given: Mapping[str, str], source: str) -> None:
        self._given = given
        self._source = source
        self._system = {
            "system:user.name": getpass.getuser(),
            "user.name": getpass.getuser(),
            "user": getpass.getuser(),
            **{f"env:{name}": value for name, value in os.environ.items()},
        }

    def text(self, key: Key) -> str:
        for name in (key.name, *key.aliases):
            if name in self._given:
                return substitute(self._given[name], self._given, self._system)
        return key.default

    def flag(self, key: Key) -> bool:
        text = self.text(key).lower()
        if text not in ("true", "false"):
            raise self._refusal(key, "write true or false")
        return text == "true"

    def number(self, key: Key) -> int:
        try:
            value = int(self.text(key))
        except ValueError:
            raise self._refusal(key, "write a whole number") from None
        return int(self._within(key, value))

    def decimal(self, key: Key) -> float:
        try:
            value = float(self.text(key))
        except ValueError:
            raise self._refusal(key, "write a number") from None
        return self._within(key, value)

    def duration_ms(self, key: Key) -> int:
        try:
            value = parse_duration_ms(self.text(key), key.unit)
        except ConfigError as error:
            raise self._refusal(key, str(error)) from error
        return int(self._within(key, value))

    def _within(self, key: Key, value: float) -> float:
        if key.minimum is not None and value < key.minimum:
            raise self._refusal(key, f"it must be at least {key.minimum:g}{_unit(key)}")
        if key.maximum is not None and value > key.maximum:
            raise self._refusal(key, f"it must be at most {key.maximum:g}{_unit(key)}")
        return value

    def _refusal(self, key: Key, advice: str) -> ConfigError:
        return ConfigError(f"{self._source}: {key.name} is '{self.text(key)}'; {advice}")


def _unit(key: Key) -> str:
    return " ms" if key.kind is Kind.DURATION else ""


def refuse_unknown(names: Iterable[str], source: str) -> None:
    """Raises ConfigError, with the nearest name, for a name that is no setting of ours."""
    known = {name for key in KEYS for name in (key.name, *key.aliases)}
    for name in sorted(set(names) - known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else "see docs/reference/settings.md"
        raise ConfigError(f"{source}: unknown setting {name}; {hint}")


def settings_from(given: Mapping[str, str], source: str = "settings") -> Settings:
    """Settings from names and texts; ``source`` (a file) stands in every refusal.

    Raises ConfigError for a malformed value or an unknown ``hms.bridge.`` name; other unknown
    names are Hive's own, of which a hive-site.xml has many.
    """
    refuse_unknown((name for name in given if name.startswith("hms.bridge.")), source)
    v = _Values(given, source)
    is_archive_enabled = v.flag(keys.CM_ENABLED)
    hooks = tuple(h.strip() for h in v.text(keys.EVENT_HOOKS).split(",") if h.strip())
    return Settings(
        warehouse=v.text(keys.WAREHOUSE),
        server=ServerSettings(
            port=v.number(keys.THRIFT_PORT),
            message_size_bytes_max=v.number(keys.MAX_MESSAGE_SIZE),
        ),
        txn=TxnSettings(
            timeout_ms=v.duration_ms(keys.TXN_TIMEOUT),
            repl_timeout_ms=v.duration_ms(keys.REPL_TXN_TIMEOUT),
            open_timeout_ms=v.duration_ms(keys.OPEN_TXN_TIMEOUT),
            open_batch_max=v.number(keys.MAX_OPEN_BATCH),
            open_txns_max=v.number(keys.MAX_OPEN_TXNS),
        ),
        events=EventSettings(
            ttl_ms=v.duration_ms(keys.REPL_EVENT_TTL if is_archive_enabled else keys.EVENT_TTL),
            message_format=v.text(keys.EVENT_MESSAGE_FORMAT),
            hooks=hooks,
            is_alter_partitions_one_event=v.flag(keys.ALTER_PARTITIONS_ONE_EVENT),
        ),
        compactor=_compactor(v),
        archive=ArchiveSettings(
            is_enabled=is_archive_enabled,
            root=v.text(keys.CM_ROOT),
            retain_ms=v.duration_ms(keys.CM_RETAIN),
            interval_ms=v.duration_ms(keys.CM_INTERVAL),
        ),
        repl=ReplSettings(
            root=v.text(keys.REPL_ROOT),
            open_txn_timeout_ms=v.duration_ms(keys.REPL_OPEN_TXN_TIMEOUT),
        ),
    )


def _compactor(v: _Values) -> CompactorSettings:
    is_delayed = v.flag(keys.DELAYED_CLEANUP)
    return CompactorSettings(
        is_initiator_on=v.flag(keys.INITIATOR_ON),
        is_cleaner_on=v.flag(keys.CLEANER_ON),
        worker_threads=v.number(keys.WORKER_THREADS),
        worker_timeout_ms=v.duration_ms(keys.WORKER_TIMEOUT),
        check_interval_ms=v.duration_ms(keys.CHECK_INTERVAL),
        delta_count_threshold=v.number(keys.DELTA_NUM_THRESHOLD),
        delta_share_threshold=v.decimal(keys.DELTA_PCT_THRESHOLD),
        aborted_txn_threshold=v.number(keys.ABORTED_TXN_THRESHOLD),
        aborted_txn_time_threshold_ms=v.duration_ms(keys.ABORTED_TXN_TIME_THRESHOLD),
        cleaner_interval_ms=v.duration_ms(keys.CLEANER_INTERVAL),
        cleaner_retention_ms=v.duration_ms(keys.CLEANER_RETENTION) if is_delayed else 0,
        cleaner_attempts_max=v.number(keys.CLEANER_MAX_ATTEMPTS),
        cleaner_retry_retention_ms=v.duration_ms(keys.CLEANER_RETRY_RETENTION),
    )
