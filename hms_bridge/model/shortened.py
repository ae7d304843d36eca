"""What a client sent, in a sentence for people: it may be of any length."""

from __future__ import annotations


def shortened(text: str, length_max: int) -> str:
    """The text, or as many characters of it and a sign that more came."""
    return text if len(text) <= length_max else f"{text[:length_max]}…"
