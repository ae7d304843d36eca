"""Patterns mean what the regular expression that they stand for means."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.model.like_pattern import (
    escaped_pattern,
    filter_pattern,
    java_pattern,
    sql_pattern,
)

TEXTS = st.text("ab%._\\", max_size=8)


@given(TEXTS, TEXTS)
def test_sql_patterns(pattern: str, text: str) -> None:
    tokens = re.findall(r"\\[%_]|%|_|.", pattern)
    meanings = {"%": ".*", "_": "."}
    expression = "".join(meanings.get(token, re.escape(token[-1])) for token in tokens)
    expected = re.fullmatch(expression, text, re.DOTALL) is not None
    assert sql_pattern(pattern).matches(text) is expected


@given(TEXTS, TEXTS)
def test_escaped_patterns(pattern: str, text: str) -> None:
    tokens = re.findall(r"\\.|%|_|.", pattern)
    meanings = {"%": ".*", "_": "."}
    expression = "".join(meanings.get(token, re.escape(token[-1])) for token in tokens)
    like = escaped_pattern(pattern)
    assert (like is None) is (tokens[-1:] == ["\\"])
    if like is not None:
        assert like.matches(text) is (re.fullmatch(expression, text, re.DOTALL) is not None)


@given(TEXTS, TEXTS)
def test_filter_patterns(pattern: str, text: str) -> None:
    tokens = re.findall(r"\.\*|%|_|.", pattern)
    meanings = {"%": ".*", ".*": ".*", "_": "."}
    expression = "".join(meanings.get(token, re.escape(token)) for token in tokens)
    expected = re.fullmatch(expression, text, re.DOTALL) is not None
    assert filter_pattern(pattern).matches(text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "is_matched"),
    [
        ("a.*", "abc", True), ("a.c", "abc", True), ("a\\.c", "abc", False),
        ("a\\.c", "a.c", True), ("A.*", "abc", False), (".*", "", True), ("", "", True),
        ("", "a", False), ("a%c", "abbc", True), ("[ab]", "a", False), ("a\\*", "a*", True),
        (".", "\n", True), ("a.*b.*c", "a1b2c", True), ("a.*b.*c", "a1c2b", False),
    ],
)  # fmt: skip
def test_java_patterns(pattern: str, text: str, is_matched: bool) -> None:
    assert java_pattern(pattern).matches(text) is is_matched


def test_case_can_be_ignored() -> None:
    assert java_pattern("Ab.*", is_case_ignored=True).matches("aBC")
