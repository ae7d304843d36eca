"""Between which names the texts of a key lie that a condition bounds: ``ds >= '2024-01-01'``.

Names have some characters written otherwise ("%3A"), so they are not quite in the order of their
values. Where a value first differs from a bound, its character stands in the name as it is, and
the order is that of the values, or as a "%": what begins so is read besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hms_bridge.catalog.name_ranges import NameRange
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE
from hms_bridge.model.partition_name import escape

LETTERS_MAX = 100
"""So much of a bound is looked at: each letter may take two ranges, and a client may send a text of
a million."""


@dataclass(frozen=True, slots=True)
class TextBounds:
    """The least and the greatest text, both included; None without one. ``default_value`` is
    written for no value, of which a comparison is not false, but unknown."""

    least: str | None = None
    most: str | None = None
    default_value: str = DEFAULT_PARTITION_VALUE

    def __and__(self, other: TextBounds) -> TextBounds:
        least = [text for text in (self.least, other.least) if text is not None]
        most = [text for text in (self.most, other.most) if text is not None]
        return TextBounds(max(least, default=None), min(most, default=None), self.default_value)


Bounds = Mapping[int, TextBounds]
"""By the place of a value: outside of these nothing is selected, but what has no value."""


def bounds_of_comparison(operator: str, *texts: str) -> TextBounds | None:
    """Of what a text is compared with; None for another comparison."""
    if operator == "between":
        return TextBounds(*texts)
    if operator in (">", ">="):
        return TextBounds(least=texts[0])
    return TextBounds(most=texts[0]) if operator in ("<", "<=") else None


def names_between(key: str, bounds: TextBounds) -> Sequence[NameRange]:
    """Ranges of names that begin with ``key`` (``a=1/ds=``), in their order, among which are all
    whose next value lies between these bounds."""
    least, most = _plain(bounds.least or ""), _plain(bounds.most or "")
    default = key + _plain(bounds.default_value)
    ranges = [NameRange(key + least, _behind(key + most)), NameRange(default, _behind(default))]
    for beginning in {text[:end] for text in (least, most) for end in range(len(text))}:
        ranges.append(NameRange(f"{key}{beginning}%", f"{key}{beginning}&"))
    # A value that ends sooner than the greatest one is less, but perhaps not the slash behind it.
    ranges += [
        NameRange(f"{key}{most[:end]}/", f"{key}{most[:end]}0")
        for end, letter in enumerate(most)
        if letter < "/"
    ]
    return _joined(ranges)


def _plain(text: str) -> str:
    """Its beginning up to what may be written otherwise, or as far as it is looked at."""
    text = text[:LETTERS_MAX]
    end = next((i for i, c in enumerate(text) if not " " <= c < "~" or escape(c) != c), len(text))
    return text[:end]


def _behind(text: str) -> str:
    """Before which all stand that begin with a text."""
    return text[:-1] + chr(ord(text[-1]) + 1)


def _joined(ranges: Sequence[NameRange]) -> Sequence[NameRange]:
    joined: list[NameRange] = []
    for names in sorted(ranges, key=lambda given: (given.first, str(given.behind))):
        if names.first >= str(names.behind):
            continue
        if joined and names.first <= str(joined[-1].behind):
            behind = max(str(joined[-1].behind), str(names.behind))
            joined[-1] = NameRange(joined[-1].first, behind)
        else:
            joined.append(names)
    return joined
