"""Which Spark goes with the PySpark that is installed; hms_bridge.spark.java has the Java."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyspark

from hms_bridge.errors import ConfigError

_CORE = re.compile(r"spark-core_[\d.]+-(\d+\.\d+)[\w.\-]*\.jar")


def minor_version(version: str) -> str:
    """``4.3`` of ``4.3.0``."""
    return ".".join(version.split(".")[:2])


def spark_home(environment: Mapping[str, str]) -> Path:
    """The folder of Spark: the user's SPARK_HOME, else what came with PySpark."""
    return Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def require_matching_home(home: Path) -> None:
    """Raises ConfigError if Spark's folder is of another version than the installed PySpark."""
    here = minor_version(pyspark.__version__)
    versions = {match[1] for path in home.glob("jars/spark-core_*.jar")
             if (match := _CORE.fullmatch(path.name))}  # fmt: skip
    if versions and here not in versions:
        raise ConfigError(
            f"SPARK_HOME={home} is Spark {min(versions)}, but the installed PySpark is "
            f"{pyspark.__version__}; install pyspark~={min(versions)}.0, or unset SPARK_HOME"
        )
