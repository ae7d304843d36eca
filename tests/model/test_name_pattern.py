"""Patterns of table names: what Java's expressions mean, in bounded time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import ConfigError
from hms_bridge.model.name_pattern import name_pattern
from hms_bridge.model.repl_scope import ReplScope

_ATOMS = st.sampled_from(
    ["a", "b", "_", "1", ".", "[ab]", "[^a]", "[a-c1]", r"\d", r"\w", r"\D", "(a|b)", "(?:ab)"]
)
_PIECES = st.builds(
    "".join,
    st.tuples(_ATOMS, st.sampled_from(["", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?"])),
)
_SEQUENCES = st.lists(_PIECES, max_size=5).map("".join)
_PATTERNS = st.lists(_SEQUENCES, min_size=1, max_size=3).map("|".join).filter(bool)
_NAMES = st.text("abc1_", max_size=8)


@given(_PATTERNS, _NAMES)
def test_a_pattern_fits_what_an_expression_fits(text, name):
    wanted = re.fullmatch(text, name, re.IGNORECASE | re.ASCII) is not None
    assert name_pattern(text).matches(name) is wanted


@given(_PATTERNS, _PATTERNS, _NAMES)
def test_groups_and_repeats_of_them(first, second, name):
    text = f"(({first})+|{second}){{0,3}}"
    wanted = re.fullmatch(text, name, re.IGNORECASE | re.ASCII) is not None
    assert name_pattern(text).matches(name) is wanted


@pytest.mark.parametrize(
    ("text", "name", "is_fitting"),
    [
        ("t[0-9]+", "t12", True),
        ("t[0-9]+", "t12x", False),
        ("T.*", "t1", True),
        ("[A-C]", "b", True),
        ("[^A-C]", "b", False),
        ("^t$", "t", True),
        ("^a$|^b$", "b", True),
        ("a|", "", True),
        (r"a\.b", "axb", False),
        (r"[\w&&]".replace("&&", "&"), "&", True),
        ("[a-]", "-", True),
        ("()", "", True),
        ("a^b", "ab", False),
        ("(^a)", "a", True),
        ("a+?", "aa", True),
        (r"[\d\-]+", "1-2", True),
        ("(" * 60 + "a" + ")" * 60, "a", True),
    ],
)
def test_what_fits(text, name, is_fitting):
    assert name_pattern(text).matches(name) is is_fitting


@pytest.mark.parametrize("text", ["(a+)+b", "(a|a)*b", "(.*)*x", "(a?){40}a{40}b", "((a*)*)*b"])
def test_a_pattern_that_backtracks_for_ever_elsewhere(text):
    began = time.monotonic()
    assert not name_pattern(text).matches("a" * 255)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty pattern"),
        ("(a", r"missing \)"),
        ("a)", r"unexpected \)"),
        ("[a", "missing ]"),
        ("[]", "missing ]"),
        ("*a", "no argument for repetition operator"),
        ("a**", "bad repetition operator"),
        ("a++", "bad repetition operator"),
        ("a{3,2}", "invalid repetition size"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
        ("[b-a]", "invalid character class range"),
        ("a\\", r"trailing \\"),
        ("a{x}", r"\{x\} may mean another thing"),
        ("a{,2}", r"\{,2\} may mean another thing"),
        (r"\Qa\E", "may mean another thing"),
        (r"\pN", "may mean another thing"),
        ("(?i)a", "may mean another thing"),
        ("[a[b]]", "may mean another thing"),
        ("[[:alpha:]]", "may mean another thing"),
        ("[]a]", "may mean another thing"),
        ("[a&&b]", "may mean another thing"),
        ("a\tb", "characters that no name"),
        ("a" * 1001, "1001 characters"),
        ("((a{60}){60}){60}", "invalid repetition size"),
        ("(((){9999}){9999}){9999}", "invalid repetition size"),
        ("((.{30}|.{31}){30}|(.{30}|.{32}){30}){1,30}", "invalid repetition size|too large"),
    ],
)
def test_what_is_no_pattern_is_refused_by_name(text, why):
    with pytest.raises(ConfigError, match=why):
        name_pattern(text)


@pytest.mark.parametrize(
    ("text", "database", "included", "excluded"),
    [
        ("sales", "sales", None, None),
        ("Sales.'t[0-9]+'", "sales", "t[0-9]+", None),
        ("sales.'t.*'.'t2|t\\.3'", "sales", "t.*", "t2|t\\.3"),
    ],
)
def test_the_form_of_hive(text, database, included, excluded):
    scope = ReplScope.parse(text)
    assert scope == ReplScope(
        database_name=database, included_pattern=included, excluded_pattern=excluded
    )
    assert ReplScope.parse(scope.text) == scope
    assert scope.is_whole_database is (included is None)


@pytest.mark.parametrize(
    "text", ["", "sales.", "sales.t", "sales.'a", "sales.''", "sales.'a'.''", "sales.'a'.'b'.'c'",
             "sales.'a'b'", "a.b.'c'", "'a'", "sales.'('"]
)  # fmt: skip
def test_what_is_no_scope_is_refused(text):
    with pytest.raises(ConfigError):
        ReplScope.parse(text)


def test_a_table_is_covered_if_the_first_fits_and_the_second_does_not():
    scope = ReplScope.parse("db.'t[0-9]+'.'T2'")
    assert [name for name in ("t1", "t2", "t22", "x") if scope.contains(name)] == ["t1", "t22"]
    assert ReplScope(database_name="db", excluded_pattern="a").text == "db.'.*'.'a'"
