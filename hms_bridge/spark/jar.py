"""The jar by which Spark reads ACID tables: made of jvm/src by scripts/build_jar.py."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hms_bridge.errors import ConfigError

JAR = Path(__file__).with_name("jars") / "hms-bridge-spark.jar"
_VERSION = "hmsbridge/version.properties"


def jar_version() -> str:
    """What the jar beside this code says of itself: the plan service refuses every other one.

    Raises ConfigError where there is none.
    """
    try:
        with zipfile.ZipFile(JAR) as jar:
            text = jar.read(_VERSION).decode()
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"Spark's jar is not there ({JAR}): {error}; run make setup in a checkout, or install "
            "a wheel that was built after it"
        ) from error
    return text.strip().partition("=")[2]
