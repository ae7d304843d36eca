"""Long texts as keys of fixed length."""

from __future__ import annotations

import hashlib


def digest(*texts: object) -> str:
    """SHA-256 of texts, in hex; None and "" differ, and so do ("ab", "c") and ("a", "bc")."""
    joined = "\0".join("\1" if text is None else f"\2{text}" for text in texts)
    return hashlib.sha256(joined.encode()).hexdigest()
