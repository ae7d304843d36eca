"""Settings of the archive, and Hive's unit rules for durations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from changemanager.errors import ChangeManagerConfigError

NAME_LENGTH_MAX = 255
"""Default of `dfs.namenode.fs-limits.max-component-length`."""

NAME_LENGTH_MIN = 64


class DurationUnit(Enum):
    """A unit that Hive's time validator knows: its short name and its length in nanoseconds."""

    DAYS = ("d", 86_400_000_000_000)
    HOURS = ("h", 3_600_000_000_000)
    MINUTES = ("m", 60_000_000_000)
    SECONDS = ("s", 1_000_000_000)
    MILLISECONDS = ("ms", 1_000_000)
    MICROSECONDS = ("us", 1_000)
    NANOSECONDS = ("ns", 1)

    @property
    def suffix(self) -> str:
        """The shortest suffix, such as `ms`."""
        return self.value[0]

    @property
    def nanoseconds(self) -> int:
        """How many nanoseconds one unit has."""
        return self.value[1]


_WORD_BEGINNINGS = (
    ("day", DurationUnit.DAYS),
    ("hour", DurationUnit.HOURS),
    ("min", DurationUnit.MINUTES),
    ("sec", DurationUnit.SECONDS),
    ("msec", DurationUnit.MILLISECONDS),
    ("usec", DurationUnit.MICROSECONDS),
    ("nsec", DurationUnit.NANOSECONDS),
)


def _unit_of(suffix: str, bare: DurationUnit) -> DurationUnit | None:
    if suffix in {"", "l"}:
        return bare
    for unit in DurationUnit:
        if suffix == unit.suffix:
            return unit
    return next((unit for word, unit in _WORD_BEGINNINGS if suffix.startswith(word)), None)


def parse_duration_ms(text: str, bare: DurationUnit) -> int:
    """Milliseconds of a duration such as `10d`, `24 hours`, `500ms`, `-1`; rounded down.

    `bare` is the unit of a number without suffix (MetastoreConf.convertTimeStr, unitFor).
    """
    stripped = text.strip()
    split = next(
        (i for i, c in enumerate(stripped) if not (c in "0123456789" or c == "-")), len(stripped)
    )
    unit = _unit_of(stripped[split:].strip().lower(), bare)
    try:
        count = int(stripped[:split])
    except ValueError:
        count = None
    if count is None or unit is None:
        raise ChangeManagerConfigError(
            f"{text!r} is no duration; write a whole number and one of d, h, m, s, ms, us, ns"
        )
    return count * unit.nanoseconds // DurationUnit.MILLISECONDS.nanoseconds


@dataclass(frozen=True, kw_only=True, slots=True)
class PinBudget:
    """What a dump or a policy may keep in the archive beyond its retention.

    `keep_ms`: after so long a file is held no more; counted from when it was archived, or from when
    its holder began to need it, if that was later. `size_bytes`: so much of what is older than the
    retention is held, the newest of it; None: any amount.
    """

    keep_ms: int = 30 * 86_400_000
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeManagerConfig:
    """Where replaced files go, and for how long.

    `trash` is the directory for purged files that a DROP without PURGE put into the archive
    (tag `user.remain-in-trash`); without it such files stay in the cmroot. In both they are kept
    `trash_retain_ms` longer than others.
    `is_elsewhere_allowed`: files of other file systems than the cmroot's are archived too.
    `budget` is that of each dump and each policy that pins files.
    """

    cmroot: str
    retain_ms: int
    interval_seconds: float = 3600.0
    name_length_max: int = NAME_LENGTH_MAX
    trash: str | None = None
    trash_retain_ms: int = 30 * 86_400_000
    is_elsewhere_allowed: bool = False
    budget: PinBudget = PinBudget()

    def __post_init__(self) -> None:
        if not self.cmroot.strip():
            raise ChangeManagerConfigError("hive.repl.cmrootdir is empty; name a directory")
        if "#" in self.cmroot:
            raise ChangeManagerConfigError(
                f"hive.repl.cmrootdir {self.cmroot!r} contains '#', which separates the parts "
                "of a file reference; choose another directory"
            )
        if self.retain_ms <= 0:
            raise ChangeManagerConfigError(
                "hive.repl.cm.retain must be longer than 0: nothing archived would outlive "
                "the next purge; write a duration with its unit, such as 10d"
            )
        if self.interval_seconds <= 0:
            raise ChangeManagerConfigError("hive.repl.cm.interval must be longer than 0")
        if self.name_length_max < NAME_LENGTH_MIN:
            raise ChangeManagerConfigError(
                f"dfs.namenode.fs-limits.max-component-length {self.name_length_max} is below "
                f"{NAME_LENGTH_MIN}: archived names would lose their checksum"
            )
