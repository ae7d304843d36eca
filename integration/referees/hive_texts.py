"""Hive's own writers and readers of texts, of one release: id lists, names of partitions, of
directories and of files.

`drivers/TextsOfHive.java` calls them, thousands at a time; it is compiled when it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from integration.referees import install
from integration.referees.java_client import JavaProcess
from integration.referees.java_metastore import Flavour, flavour_42, flavour_401
from integration.referees.processes import Workplace

DRIVER = Path(__file__).parents[1] / "drivers" / "TextsOfHive.java"


class HiveTexts(JavaProcess):
    """A Java process with the classes of a release."""

    def __init__(self, workplace: Workplace, version: str) -> None:
        flavour = _FLAVOURS[version]()
        self.version = version
        name = f"texts-of-hive-{version}"
        super().__init__(
            workplace, name, flavour.java, [str(_compiled(workplace)), *flavour.class_path]
        )

    def ask(self, requests: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What Hive writes or reads, or the class of what it throws: `{"refused": class}`."""
        lines = "\n".join(json.dumps(request) for request in requests)
        answers = self.gateway.jvm.TextsOfHive.answer(lines).split("\n")
        return [json.loads(answer) for answer in answers if answer]


def _engine_401() -> Flavour:
    """Hive 4.0.1's metastore has no reader of directories and files; its engine has."""
    metastore = flavour_401()
    engine = f"{install.ensure(install.HIVE_401_ENGINE)}/*"
    return replace(metastore, class_path=(*metastore.class_path, engine))


_FLAVOURS = {"4.0.1": _engine_401, "4.2.0": flavour_42}
VERSIONS = tuple(_FLAVOURS)


def _compiled(workplace: Workplace) -> Path:
    """Against the older release, whose classes any compiler reads; both have what it calls."""
    folder = workplace.folder("texts-of-hive")
    flavour = _engine_401()
    javac = flavour.java.resolve().with_name("javac")
    class_path = ":".join(flavour.class_path)
    workplace.run("javac", [javac, "-proc:none", "-cp", class_path, "-d", folder, DRIVER])
    return folder
