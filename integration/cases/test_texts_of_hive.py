"""Texts of Hive mean to hms-bridge what they mean to Hive's own readers.

Hive's classes, of each release, write texts of random numbers. Those, and what damage makes of
them, go to Hive's readers and to ours. What both do not read alike stands in EXCEPTIONS.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from hms_bridge.errors import AcidFormatError, MetaError
from hms_bridge.model.ids import MAX_ID
from integration.comparison.hive_texts import KINDS, Fields, question, takes_too_long
from integration.referees.hive_texts import HiveTexts

SEED, WRITTEN, DAMAGED, SHOWN = 4, 400, 4000, 9


# What is not read alike, and why


@dataclass(frozen=True, slots=True)
class Departure:
    """`fields` may differ, or one of both refuses, where `when` holds, as for `example`."""

    kind: str
    example: str
    when: Callable[[str], object]
    fields: set[str]
    reason: str


def _has(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern).search


def _lists(text: str) -> Iterator[tuple[int, int, list[int], list[int]]]:
    """High watermark, lowest open, open and aborted ids of each list in a text. A table may have a
    number for a name, so both the first and the second part may be where a list begins."""
    for part in text.split("$"):
        fields = [*part.split(":"), "", "", "", ""]
        for high, lowest, opened, aborted in (fields[:4], fields[1:5]):
            if re.fullmatch(r"[+-]?\d+:[+-]?\d+", f"{high}:{lowest}"):
                yield int(high), int(lowest), _numbers(opened), _numbers(aborted)


def _numbers(ids: str) -> list[int]:
    ends = re.findall(r"([+-]?\d+)(?:-(\+?\d+))?", ids)
    return [one for first, last in ends for one in range(int(first), int(last or first) + 1)]


def _is_disorderly(text: str) -> bool:
    return any(
        any(one >= other for ids in (opened, aborted) for one, other in pairwise(ids))
        or {*opened} & {*aborted}
        for _, _, opened, aborted in _lists(text)
    )


def _is_lowest_wrong(text: str) -> bool:
    return any(min(opened, default=lowest) < lowest for _, lowest, opened, _ in _lists(text))


def _is_beyond(text: str) -> bool:
    return any(max([*opened, *aborted, 0]) > high for high, _, opened, aborted in _lists(text))


def _is_backwards(text: str) -> bool:
    ends = re.match(r"[a-z_]+_(\d+)_(\d+)", text)
    return bool(ends and int(ends[1]) > int(ends[2]))


WE_REFUSE, HIVE_REFUSES = {"ours refuses"}, {"hive refuses"}
_LOWEST = "the lowest open id is higher than one that the text calls open: the lower one counts"
_ZERO = "0 and less are no ids"
_TWICE = "an id twice, or open and aborted: it counts once, and is open"
_PERCENT = "a % that no writer left: Java's parseInt takes signs and digits of any script"
EXCEPTIONS = (
    Departure("txns", "9:3:5,3:8", _is_disorderly, {"valid", "aborted"},
              "ids out of order: Hive looks for them by halves, and takes some for committed"),
    Departure("txns", "9:8:3:", _is_lowest_wrong, {"min"}, _LOWEST),
    Departure("txns", "9:3:0,3:", _has(r"[:,-][+-]?0+(,|:|-|$)"), {"invalid"}, _ZERO),
    Departure("txns", "9:3:-1,0,3:", _has(r"[:,]-\d"), HIVE_REFUSES,
              "Hive's writer makes -1,0 of a stray 0 in its array, and its reader fails on it"),
    Departure("txns", "9:3:3-5-7:", _has(r"\d-[^,:]*-"), WE_REFUSE,
              "a range of three ends: Hive forgets the last"),
    Departure("txns", f"9:1:1-{MAX_ID}:", _has(rf"-{MAX_ID}"), HIVE_REFUSES,
              "Hive lists each id of a range, until there is no memory left"),
    Departure("ids", "d.t:9:8:3:", _is_lowest_wrong, {"min", "base"}, _LOWEST),
    Departure("ids", "d.t:9:3", _has("^([^:]*:){2}[^:]*(:,*){0,2}(:.*)?$"),
              {"min", "base"},
              "nothing is listed as open: Hive's cleaner forgets which id is the lowest"),
    Departure("ids", "d.t:9:3:0,3:", _has(r"[:,][+-]?0+(,|:|$)"), {"invalid"}, _ZERO),
    Departure("ids", "d.t:60:3:3,7,7:3", _is_disorderly,
              {"aborted", "ranges valid", "ranges aborted"}, _TWICE),
    Departure("ids", "d.t:2:3:3:4,30,50", _is_beyond, {"ranges valid", "ranges aborted"},
              "above the high watermark Hive counts open ids twice, and no aborted ones"),
    Departure("ids", ":9:3:3:", _has("^:"), {"table"}, "an empty name is no table's"),
    Departure("tables", "3$d.t:9:8:3:", _is_lowest_wrong, {"min"}, _LOWEST),
    Departure("tables", "3$d.t:9:3:0,3:", _has(r"[:,][+-]?0+(,|:|\$|$)"), {"invalid"}, _ZERO),
    *(Departure(kind, f"{name}{-MAX_ID - 1}:3:3:", _has(f"{-MAX_ID - 1}"), WE_REFUSE,
                "Java's lowest number is nobody's id")
      for kind, name in (("txns", ""), ("ids", "d.t:"), ("tables", "3$d.t:"))),
    Departure("partition", "a=b=c", _has("=[^/]*="), HIVE_REFUSES,
              "a second =: of Hive's two readers one goes by the first, the other by the last"),
    Departure("partition", "/a=1", _has("^/"), HIVE_REFUSES,
              "a slash before the name: one of Hive's two readers passes it over, as ours"),
    Departure("partition", "a=1/a=2", _has(r"(^|/)([^/]+)=.*/\2="), HIVE_REFUSES,
              "a key twice: one of Hive's two readers forgets the first value"),
    Departure("partition", "a=b:c", _has("^[^/]*:"), HIVE_REFUSES,
              "a colon that is not escaped is the end of a scheme to Hadoop"),
    Departure("partition", "/", _has("^/+$"), WE_REFUSE, "no key and no value"),
    Departure("partition", "a=%+f", _has(r"%([+-]|.?[^\x00-\x7f])"), {"spec", "values"}, _PERCENT),
    Departure("value", "%+f", _has(r"%([+-]|.?[^\x00-\x7f])"), {"plain"}, _PERCENT),
    Departure("directory", "base_+5", _has(r"_v?[+-]|[^\x00-\x7f]"), WE_REFUSE,
              "signs and digits that no writer writes"),
    Departure("directory", "delta_5_3", _is_backwards, WE_REFUSE, "it ends before it begins"),
    Departure("file", "delete_delta_1_1_1/0_0", _has(r"^delete.*/\d+_\d+"), {"property"},
              "no originals are read in a delete delta"),
    Departure("file", "delta_1_1/bucket_0_2147483648", _has(r"\d{10}"), HIVE_REFUSES,
              "a number too high for Java: Hive fails, we read no row of such a file"),
)  # fmt: skip


# Hive and ours, side by side


def _differences(hive: Fields, ours: Fields) -> set[str]:
    if "refused" in hive or "refused" in ours:
        both = {"hive refuses": "refused" in hive, "ours refuses": "refused" in ours}
        return set() if all(both.values()) else {who for who, refuses in both.items() if refuses}
    found = set()
    for field in hive.keys() | ours.keys():
        one, other = hive.get(field), ours.get(field)
        if isinstance(one, dict) and isinstance(other, dict):
            found |= _differences(one, other)
        elif one != other:
            found.add(field)
    return found


def _by_hive(kind: str, answer: Fields) -> Fields:
    """Its answer, or that it is none."""
    if kind == "directory" and not answer:
        return {"refused": "no directory"}
    if kind == "partition" and "refused" not in answer:
        pairs = answer.get("spec", [])
        if [value for _, value in pairs] != answer.get("values", []):
            return {"refused": "its readers of keys and of values differ"}
        return {"spec": [[key.lower(), value] for key, value in pairs], "values": answer["values"]}
    return answer


def _by_us(kind: str, request: Fields) -> Fields:
    try:
        return KINDS[kind].read(request["text"], request)
    except (MetaError, AcidFormatError) as error:
        return {"refused": str(error)}


def _departures(kind: str, text: str, found: set[str]) -> list[Departure]:
    """What allows some of the differences."""
    allowed = [row for row in EXCEPTIONS if row.kind == kind and row.fields & found]
    return [row for row in allowed if row.when(text)]


@pytest.mark.parametrize("kind", KINDS)
def test_texts_mean_to_us_what_they_mean_to_hive(hive_texts: HiveTexts, kind: str) -> None:
    numbers = random.Random(SEED)
    written = [
        KINDS[kind].part(answer["text"])
        for answer in hive_texts.ask(KINDS[kind].write(numbers) for _ in range(WRITTEN))
    ]
    broken = (KINDS[kind].damage(numbers.choice(written), numbers) for _ in range(DAMAGED))
    texts = dict.fromkeys([*written, *(text for text in broken if not takes_too_long(text))])
    examples = [row.example for row in EXCEPTIONS if row.kind == kind]
    often = 8 if kind == "ids" else 1  # which view and ranges are asked for is drawn
    asked = [question(kind, text, numbers) for text in [*texts, *examples * often]]
    wrong, read, met = [], 0, set()
    for request, answer in zip(asked, hive_texts.ask(asked), strict=True):
        hive, ours = _by_hive(kind, answer), _by_us(kind, request)
        found = _differences(hive, ours)
        rows = [] if request["text"] in written else _departures(kind, request["text"], found)
        if left := found.difference(*(row.fields for row in rows)):
            wrong.append(f"{request['text']!r}: {sorted(left)}\n  Hive: {hive}\n  ours: {ours}")
        met.update(row.example for row in rows)
        read += "refused" not in hive
    assert not wrong, f"{len(wrong)} texts are not read alike, as\n" + "\n".join(wrong[:SHOWN])
    assert met == set(examples), "a departure that is none any more"
    assert len(asked) * 0.2 < read


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].again])
def test_what_is_read_of_hive_is_written_as_hive_wrote_it(hive_texts: HiveTexts, kind: str) -> None:
    numbers = random.Random(SEED)
    again = KINDS[kind].again
    assert again
    for answer in hive_texts.ask(KINDS[kind].write(numbers) for _ in range(WRITTEN)):
        text = KINDS[kind].part(answer["text"])
        assert again(text) == text
