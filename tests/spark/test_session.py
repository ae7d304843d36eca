"""Sessions in processes of their own: the user's settings win, and what Spark says is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import process_environment

pytestmark = [pytest.mark.spark, pytest.mark.process]

OF_SPARK = {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
"""PySpark sets them itself."""

OPEN = """
import json, os, sys
from hms_bridge.spark.session import open_session
asked = json.loads(sys.argv[1])
before = dict(os.environ)
spark = open_session("test", **asked)
conf = dict(spark.sparkContext.getConf().getAll())
changed = sorted(n for n in {*before, *os.environ} if before.get(n) != os.environ.get(n))
print(json.dumps({"conf": conf, "ansi": spark.conf.get("spark.sql.ansi.enabled"), "set": changed}))
spark.stop()
"""


def opened(asked: dict[str, Any], environment: dict[str, str] | None = None) -> dict[str, Any]:
    own = process_environment()
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYSPARK_SUBMIT_ARGS", "SPARK_MASTER"):
        own.pop(name, None)
    run = subprocess.run(
        [sys.executable, "-c", OPEN, json.dumps(asked)], env=own | (environment or {}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode:
        return {"error": run.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return found


def test_ours_where_nobody_says_anything() -> None:
    found = opened({"master": "local[1]"})
    conf = found["conf"]
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.sql.shuffle.partitions"] == "4"
    assert found["ansi"] == "true"
    ours = {name for name in found["set"] if name not in OF_SPARK}
    assert ours <= {"JAVA_HOME", "PYSPARK_PYTHON"}


def test_the_users_settings_win(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.master local[1]\nspark.sql.shuffle.partitions 7\nspark.sql.ansi.enabled false\n"
        "spark.driver.host localhost\nspark.test.order defaults\n"
        "spark.sql.session.timeZone Europe/Berlin\n"
    )
    submit = "--conf spark.test.order=arguments --conf spark.test.arguments=1 pyspark-shell"
    environment = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": submit}
    found = opened({"settings": {"spark.test.asked": "1"}}, environment)
    conf = found["conf"]
    assert conf["spark.master"] == "local[1]"
    assert conf["spark.sql.shuffle.partitions"] == "7"
    assert conf["spark.driver.host"] == "localhost"
    assert conf["spark.sql.session.timeZone"] == "Europe/Berlin"
    assert (conf["spark.test.order"], conf["spark.test.asked"]) == ("arguments", "1")
    assert found["ansi"] == "true"
    asked = {"settings": {"spark.test.order": "asked"}}
    assert opened(asked, environment)["conf"]["spark.test.order"] == "asked"


def test_what_spark_says_of_a_start_that_fails() -> None:
    error = opened({"master": "local[1]", "settings": {"spark.executor.heartbeatInterval": "9h"}})
    assert "ConfigError: Spark did not start: " in error["error"]
    assert "spark.executor.heartbeatInterval" in error["error"]


def test_a_spark_home_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.4.1.jar").touch()
    found = opened({"master": "local[1]"}, {"SPARK_HOME": str(tmp_path)})
    assert "is Spark 3.4, but the installed PySpark is" in found["error"]


def test_a_foreign_session_that_makes_null_of_bad_values(run: Any, spark: Any) -> None:
    from hms_bridge.errors import ConfigError
    from hms_bridge.spark.session import require_exact_casts

    lenient = spark.newSession()
    lenient.conf.set("spark.sql.ansi.enabled", "false")
    with pytest.raises(ConfigError, match="would be written as NULL"):
        require_exact_casts(lenient)
    assert os.environ.get("SPARK_LOCAL_IP") in (None, "127.0.0.1")
