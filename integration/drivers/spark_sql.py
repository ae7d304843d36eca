"""A Spark driver that stays up: SQL and calls on its session, one JSON object a line in and out.

Started as `python -m integration.drivers.spark_sql CONF.json`. Requests: {"sql": text} gives the
rows; {"call": "module:function", "arguments": {…}} gives what function(spark, **arguments) returns,
as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def main(conf_path: str) -> None:
    """Answer requests until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Spark and its Java print must not mix with replies
    conf = json.loads(Path(conf_path).read_text())
    spark = _ours(conf) if conf["is_ours"] else _plain(conf)
    replies.write(json.dumps({"ready": spark.version}) + "\n")
    for line in sys.stdin:
        replies.write(json.dumps(_answer(spark, json.loads(line)), default=str) + "\n")
    spark.stop()


def _plain(conf: dict[str, Any]) -> SparkSession:
    builder = SparkSession.builder.appName("referee")
    for name, value in conf["settings"].items():
        builder = builder.config(name, value)
    if conf["is_hive"]:
        builder = builder.enableHiveSupport()
    if conf["catalog"]:
        from hms_bridge.spark.catalog import configure

        builder = configure(builder, **conf["catalog"])
    return builder.getOrCreate()


def _ours(conf: dict[str, Any]) -> SparkSession:
    """As the verbs of hms-bridge open it."""
    from hms_bridge.spark.session import open_session

    settings = dict(conf["settings"])
    return open_session("referee", master=settings.pop("spark.master"), settings=settings)


def _answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "sql" in request:
            return {"result": [list(row) for row in spark.sql(request["sql"]).collect()]}
        module, _, function = request["call"].partition(":")
        return {
            "result": getattr(importlib.import_module(module), function)(
                spark, **request["arguments"]
            )
        }
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(sys.argv[1])
