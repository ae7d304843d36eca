"""Schedules as Quartz writes them, and when they are due next. Pure.

Six fields, or seven with the year: seconds, minutes, hours, day of the month, month, day of the
week (1 is Sunday). Each is a list of values, ranges (``2-5``) and steps (``0/15``); ``*`` and ``?``
are all. Of the month also ``L`` (the last day), ``L-2``, ``LW`` and ``15W`` (the working day next
to it); of the week ``6L`` (the month's last Friday) and ``6#3`` (its third). Hive parses them with
cron-utils (docs/hive/metastore.md §35).
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from hms_bridge.errors import InvalidObjectError

_YEAR_MAX = 2099
_EPOCH_MAX = 2**31 - 1
"""What Hive's column for the next execution holds."""
_SUNDAY, _SATURDAY = 1, 7

DayRule = Callable[[date], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    words: Mapping[str, int]

    def values(self, text: str) -> frozenset[int]:
        """The values of a list. Raises ValueError."""
        return frozenset(value for term in text.split(",") for value in self._of_term(term))

    def number(self, text: str) -> int:
        """One value, as a number or a word. Raises ValueError."""
        value = self.words.get(text.upper())
        if value is None:
            if not re.fullmatch(r"[0-9]{1,4}", text):
                raise ValueError(f"{self.name} '{text}'")
            value = int(text)
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.name} {value}")
        return value

    def _of_term(self, term: str) -> Iterator[int]:
        span, slash, step_text = term.partition("/")
        step = 1
        if slash:
            step = int(step_text) if re.fullmatch(r"[0-9]{1,4}", step_text) else 0
            if step < 1:
                raise ValueError(f"step of {self.name} '{step_text}'")
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            low, high = self.low, self.high
        else:
            low = self.number(first)
            high = self.number(last) if dash else (self.high if slash else low)
        if low <= high:
            yield from range(low, high + 1, step)
        else:  # over the end, as FRI-MON
            size = self.high - self.low + 1
            for value in range(low, high + size + 1, step):
                yield (value - self.low) % size + self.low


def _words(text: str) -> dict[str, int]:
    return {word: place for place, word in enumerate(text.split(), start=1)}


_SECONDS = _Field(name="second", low=0, high=59, words={})
_MINUTES = _Field(name="minute", low=0, high=59, words={})
_HOURS = _Field(name="hour", low=0, high=23, words={})
_DAYS = _Field(name="day of the month", low=1, high=31, words={})
_MONTHS = _Field(
    name="month", low=1, high=12, words=_words("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
)
_WEEKDAYS = _Field(
    name="day of the week", low=1, high=7, words=_words("SUN MON TUE WED THU FRI SAT")
)
_YEARS = _Field(name="year", low=1970, high=_YEAR_MAX, words={})


@dataclass(frozen=True, kw_only=True, slots=True)
class Cron:
    """A schedule that was read."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    years: frozenset[int]
    is_day: DayRule

    def following(self, moment: datetime) -> datetime | None:
        """The first time after a moment; None if there is none any more."""
        start = moment.replace(microsecond=0) + timedelta(seconds=1)
        for day in self._days_from(start.date()):
            at = self._time_from(start.time() if day == start.date() else time.min)
            if at is not None:
                return datetime.combine(day, at)
        return None

    def _days_from(self, start: date) -> Iterator[date]:
        for year in range(start.year, _YEAR_MAX + 1):
            for month in sorted(self.months) if year in self.years else ():
                for number in range(1, calendar.monthrange(year, month)[1] + 1):
                    day = date(year, month, number)
                    if day >= start and self.is_day(day):
                        yield day

    def _time_from(self, floor: time) -> time | None:
        for hour in self.hours:
            for minute in self.minutes if hour >= floor.hour else ():
                if (hour, minute) < (floor.hour, floor.minute):
                    continue
                for second in self.seconds:
                    at = time(hour, minute, second)
                    if at >= floor:
                        return at
        return None


def parse_cron(text: str) -> Cron:
    """Raises InvalidObjectError."""
    fields = text.split()
    try:
        if len(fields) not in (6, 7):
            raise ValueError(f"{len(fields)} fields, but six or seven are due")
        seconds, minutes, hours, days, months, weekdays, *years = fields
        return Cron(
            seconds=tuple(sorted(_SECONDS.values(seconds))),
            minutes=tuple(sorted(_MINUTES.values(minutes))),
            hours=tuple(sorted(_HOURS.values(hours))),
            months=_MONTHS.values(months),
            years=_YEARS.values(years[0] if years else "*"),
            is_day=_day_rule(days, weekdays),
        )
    except ValueError as error:
        raise InvalidObjectError(f"Invalid schedule: {text[:256]} ({error})") from error


def next_execution(schedule: str, after_seconds: int) -> int | None:
    """Seconds of the first time that is due after another, in this machine's time zone, as a JVM's;
    None if there is none. Raises InvalidObjectError."""
    cron = parse_cron(schedule)
    moment: datetime | None = datetime.fromtimestamp(after_seconds)
    while moment is not None and (moment := cron.following(moment)) is not None:
        at = int(moment.timestamp())
        if at > after_seconds:  # a clock that is set back shows an hour twice
            return at if at <= _EPOCH_MAX else None
    return None


def _day_rule(days: str, weekdays: str) -> DayRule:
    """Quartz takes one of both only; the other is ``?``."""
    if weekdays in ("?", "*"):
        rules = [_month_day_rule(term) for term in days.split(",")]
    elif days in ("?", "*"):
        rules = [_weekday_rule(term) for term in weekdays.split(",")]
    else:
        raise ValueError("a day of the week and a day of the month; write ? for one of them")
    return lambda day: any(rule(day) for rule in rules)


def _month_day_rule(term: str) -> DayRule:
    upper = term.upper()
    if upper == "LW":
        return lambda day: day.day == _nearest_weekday(day, _length(day))
    if upper == "L" or upper.startswith("L-"):
        before = _DAYS.number(upper[2:]) if upper != "L" else 0
        return lambda day: day.day == _length(day) - before
    if upper.endswith("W"):
        number = _DAYS.number(upper[:-1])
        return lambda day: number <= _length(day) and day.day == _nearest_weekday(day, number)
    numbers = _DAYS.values(term)
    return lambda day: day.day in numbers


def _weekday_rule(term: str) -> DayRule:
    upper = term.upper()
    if upper == "L":
        return lambda day: _weekday(day) == _SATURDAY
    if upper.endswith("L") and upper[:-1]:
        last = _WEEKDAYS.number(upper[:-1])
        return lambda day: _weekday(day) == last and day.day + 7 > _length(day)
    name, sign, place = upper.partition("#")
    if sign:
        if place not in ("1", "2", "3", "4", "5"):
            raise ValueError(f"week {place} of a month")
        wanted = _WEEKDAYS.number(name)
        return lambda day: _weekday(day) == wanted and (day.day - 1) // 7 + 1 == int(place)
    numbers = _WEEKDAYS.values(term)
    return lambda day: _weekday(day) in numbers


def _weekday(day: date) -> int:
    return day.isoweekday() % 7 + 1


def _length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _nearest_weekday(day: date, number: int) -> int:
    """The working day next to one of that month, in the month."""
    wanted = day.replace(day=number)
    if _weekday(wanted) == _SATURDAY:
        return number - 1 if number > 1 else number + 2
    if _weekday(wanted) == _SUNDAY:
        return number + 1 if number < _length(day) else number - 2
    return number
