"""Numbers of bytes, as people write them."""

from __future__ import annotations

import pytest

from hms_bridge.config.sizes import parse_size
from hms_bridge.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1), ("1000", 1000), ("1000 B", 1000), ("2k", 2048), ("2 KiB", 2048), ("2kB", 2000),
        ("50MiB", 50 << 20), ("50M", 50 << 20), ("1.5GB", 1_500_000_000), ("1 tib", 1 << 40),
    ],
)  # fmt: skip
def test_a_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "0.0001", "-1", "M", "5 XB", "1iB", "5Mi", "1,5GB", "∞"])
def test_no_size(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_size(text)
