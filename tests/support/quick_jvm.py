"""A JVM for sessions of a few seconds: they are over before a better compiler has paid, and load
Spark's classes as an earlier one left them in memory's own form (Java calls it class data sharing).

Tests start Spark a hundred times, and most of each start is the loading of classes. The file, 150
MB below `.cache`, is made by the first that needs it, in the time of two starts.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import MutableMapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hms_bridge.errors import ConfigError
from hms_bridge.spark.java import find_java_home

CHECKOUT = Path(__file__).parents[2]
_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_VARIABLE = "SPARK_SUBMIT_OPTS"
_SECONDS_MAX = 300
_SESSION = """
from hms_bridge.spark.session import open_session
spark = open_session("classes", master="local[2]")
frame = spark.createDataFrame([(n, str(n)) for n in range(9)], "a int, b string")
frame = frame.mapInArrow(lambda batches: batches, "a int, b string")
frame.createOrReplaceTempView("t")
query = "select b, count(*), sum(a) from t where a > 1 group by b order by b"
assert len(list(spark.sql(query).toLocalIterator())) == 7
assert frame.repartition(2).sortWithinPartitions("a").count() == 9
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""
"""What a session of ours does; Java writes the file as it ends."""


def shell_environment() -> dict[str, str]:
    """The shell's own, without what is set for this program there."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HMS_BRIDGE_")}


def prefer_quick_start(environment: MutableMapping[str, str]) -> None:
    """Spark's launcher reads this variable; what is set already stays."""
    if _VARIABLE not in environment:
        environment[_VARIABLE] = f"{_OPTIONS} {_sharing()}".strip()


@cache
def _sharing() -> str:
    """The options that share classes; none where there is no Java, or it cannot."""
    try:
        home = find_java_home()
    except ConfigError:
        return ""
    name = hashlib.sha256(f"{home} {_release(home)} {version('pyspark')} {sys.prefix}".encode())
    classes = CHECKOUT / ".cache" / "java" / f"spark-{name.hexdigest()[:16]}.jsa"
    classes.parent.mkdir(parents=True, exist_ok=True)
    with classes.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes one makes it
        if not classes.exists() and not _made(classes):
            return ""
    # Where another Spark reads the variable, Java goes on without the file, and is not to say so.
    return f"-XX:SharedArchiveFile={classes} -Xshare:auto -Xlog:disable -Xlog:all=off"


def _release(home: Path) -> str:
    file = home / "release"
    return file.read_text() if file.exists() else ""


def _made(classes: Path) -> bool:
    unfinished = classes.with_suffix(f".{os.getpid()}")
    options = f"{_OPTIONS} -XX:ArchiveClassesAtExit={unfinished} -Xlog:disable -Xlog:all=off"
    environment = shell_environment() | {"PYTHONPATH": str(CHECKOUT), _VARIABLE: options}
    try:
        subprocess.run(
            [sys.executable, "-c", _SESSION], env=environment, capture_output=True,
            check=True, timeout=_SECONDS_MAX,
        )  # fmt: skip
        unfinished.rename(classes)
    except (subprocess.SubprocessError, OSError):
        return False
    return True
