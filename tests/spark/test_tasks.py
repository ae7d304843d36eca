"""What an executor must have for our tasks: measured, so that it stays little."""

from __future__ import annotations

import json
import subprocess
import sys

from hms_bridge.spark.needs import MODULES, OPTIONAL_DISTRIBUTIONS, PACKAGES
from tests.support.program import process_environment

LOOK = """
import json, sys
before = set(sys.modules)  # what some systems bring into each Python: sitecustomize
import hms_bridge.spark.tasks, hms_bridge.compaction.kernel, hms_bridge.compaction.executor
tops = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(json.dumps(sorted(top for top in tops if not top.startswith("_"))))
"""
BROUGHT_ALONG = {"google", "cython_runtime", "certifi", "charset_normalizer", "idna", "urllib3"}
"""By protobuf, compiled modules, requests."""


def test_tasks_import_only_what_is_declared() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOOK], env=process_environment(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    imported = set(json.loads(run.stdout))
    declared = {name.partition(".")[0] for name in MODULES}
    assert imported - BROUGHT_ALONG <= declared | set(OPTIONAL_DISTRIBUTIONS) | set(PACKAGES)
    assert not imported & {"sqlalchemy", "thrift", "sqlglot", "pyspark", "pandas", "click"}
