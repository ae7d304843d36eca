"""Which Spark is asked for: order of precedence, and what is no setting."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hms_bridge.errors import ConfigError
from hms_bridge.spark.request import (
    SparkRequest,
    expected_master,
    is_local,
    spark_request,
    submit_arguments,
)


def test_assignments_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spark.properties"
    path.write_text("# of the package\nspark.a=1\nspark.b  two words\n\nspark.c: 3\n")
    request = spark_request(None, path, ["spark.a=x=y"])
    assert request.settings == {"spark.a": "x=y", "spark.b": "two words", "spark.c": "3"}


def test_a_master_among_the_settings_is_the_master() -> None:
    assert spark_request(None, None, ["spark.master=yarn"]) == SparkRequest(master="yarn")
    assert spark_request("local[1]", None, ["spark.master=yarn"]).master == "local[1]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("executor.memory=1g", "--spark takes spark.KEY=VALUE, not 'executor.memory=1g'"),
        ("spark.x", "--spark takes spark.KEY=VALUE"),
        ("spark.sql.ansi.enabled=false", "written as NULL"),
    ],
)
def test_what_is_no_setting(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spark_request(None, None, [text])


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_text("spark.a=1\n<property>\n")
    with pytest.raises(ConfigError, match="line 2: '<property>' is no setting of Spark"):
        spark_request(None, path, [])
    with pytest.raises(ConfigError, match="cannot read"):
        spark_request(None, tmp_path / "nowhere", [])


def test_the_launcher_hears_the_request_last(tmp_path: Path) -> None:
    request = SparkRequest(master="yarn", settings={"spark.a": "1 2"})
    environment = {"PYSPARK_SUBMIT_ARGS": "--conf spark.a=0 pyspark-shell"}
    assert shlex.split(submit_arguments(request, environment, tmp_path)) == [
        "--master", "yarn", "--conf", "spark.ui.showConsoleProgress=false", "--conf", "spark.a=0",
        "--master", "yarn", "--conf", "spark.a=1 2", "pyspark-shell",
    ]  # fmt: skip
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.ui.showConsoleProgress true\n")
    assert shlex.split(submit_arguments(SparkRequest(), {}, tmp_path)) == [
        "--master", "local[*]", "pyspark-shell",
    ]  # fmt: skip


def test_no_secret_stands_in_the_launchers_command_line(tmp_path: Path) -> None:
    """Everybody on the machine sees it; the session gets what it does not have there."""
    settings = {"spark.hadoop.fs.s3a.secret.key": "k", "spark.authenticate.secret": "s"}
    words = shlex.split(submit_arguments(SparkRequest(settings=settings), {}, tmp_path))
    assert words[-2:] == ["spark.ui.showConsoleProgress=false", "pyspark-shell"]


@pytest.mark.parametrize(
    ("environment", "master"),
    [
        ({}, "spark://defaults:7077"),
        ({"SPARK_MASTER": "local[3]"}, "local[3]"),
        ({"PYSPARK_SUBMIT_ARGS": "--master k8s://x pyspark-shell"}, "k8s://x"),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn pyspark-shell"}, "yarn"),
        ({"PYSPARK_SUBMIT_ARGS": "--conf=spark.master=yarn pyspark-shell"}, "yarn"),
        ({"SPARK_CONF_DIR": "/nowhere"}, "local[*]"),
    ],
)
def test_the_master_that_is_to_be_expected(
    environment: dict[str, str], master: str, tmp_path: Path
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.master  spark://defaults:7077\n")
    assert expected_master(SparkRequest(), environment, tmp_path) == master
    assert expected_master(SparkRequest(master="x"), environment, tmp_path) == "x"


def test_which_masters_are_local() -> None:
    assert is_local("local")
    assert is_local("local[*, 3]")
    assert not is_local("local-cluster[2,1,1024]")
    assert not is_local("spark://localhost:7077")
