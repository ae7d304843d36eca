"""Hadoop's configuration as a text, for a driver that is given plain JSON. It may hold secrets."""

from __future__ import annotations

import json
from dataclasses import asdict

from changemanager.hadoop import HadoopConfig


def hadoop_to_text(config: HadoopConfig) -> str:
    """All of it as JSON."""
    return json.dumps(asdict(config))


def hadoop_from_text(text: str) -> HadoopConfig:
    """What `hadoop_to_text` gave."""
    return HadoopConfig(**json.loads(text))
