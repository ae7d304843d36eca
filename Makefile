# Everything a person or CI does here, one line each: `make help`.
PY := .venv/bin/python

# Some machines forbid Python to keep what it compiled: each process that tests start, and each of the
# test files' asserts that pytest rewrites, would be compiled anew every time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo quick test spark coverage simulate histories mutants lint types docs bench bench-cluster bench-metastore bench-metastore-mariadb bench-repl bench-scan bench-write integration integration-long lock clean

help:            ## list these
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 16

setup:           ## make .venv with the program hms-bridge; find or install Java
	@bash scripts/setup.sh

demo: setup      ## the main job, end to end, on tables that a real Hive wrote
	@.venv/bin/hms-bridge demo

JOBS ?= 2
# More than the cores of a small machine: many a test waits for a process, a lock or a disk.
TEST_JOBS ?= 3
quick: setup lint types  ## style, types of what changed, and most tests: none with Spark, processes, or that take long
	$(PY) -m pytest -n $(JOBS) --dist loadgroup -q --quick -m "not spark and not process" --durations 10

test: setup lint types  ## all tests of this project alone that need no Spark
	$(PY) -m pytest -n $(TEST_JOBS) --dist loadgroup -m "not spark"

spark: setup     ## those that start Spark
	$(PY) -m pytest -n $(JOBS) --dist loadgroup -m spark

coverage: setup  ## the tests of both, and which lines none of them runs; takes two thirds longer
	$(PY) -m pytest -n 2 --dist loadgroup --cov --cov-report=term-missing:skip-covered

SEEDS ?= 1000
simulate: setup  ## whole clusters under SEEDS=1000 schedules, from seed FIRST=1 on
	PYTHONPATH=. $(PY) -m tests.simulation.run --seeds $(SEEDS) --first $(or $(FIRST),1) \
		--processes $(or $(PROCESSES),2) $(if $(HANDOVER),--handover) $(if $(SCOPE),--scope)

OPERATIONS ?= 100000
histories: setup ## OPERATIONS=100000 calls of many clients at once, on SQLite, PostgreSQL and MariaDB
	HMS_BRIDGE_HISTORY_OPERATIONS=$(OPERATIONS) bash integration/run.sh integration/cases/test_long_histories.py -s

mutants: setup   ## each protective line broken once: a named test must see it
	PYTHONPATH=. $(PY) -m tests.simulation.mutants

lint: setup      ## style
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: setup     ## mypy --strict
	$(PY) -m mypy

docs: setup      ## write the generated pages again
	$(PY) -m hms_bridge.cli.reference

bench: setup     ## ratios: ours beside a real Hive 4.2, Spark or a limit, in one run
	$(PY) -m benchmarks

bench-cluster: setup  ## a dump to HDFS, ours against Hive's, on the real systems
	$(PY) -m benchmarks.cluster

bench-metastore: setup  ## transactions, locks and reads beside a real Hive 4.0.1, on one PostgreSQL
	$(PY) -m benchmarks.metastore

bench-metastore-mariadb: setup  ## the same program, on one MariaDB
	$(PY) -m benchmarks.metastore_mariadb

bench-repl: setup  ## dumps and loads beside a real Hive 4.2, and a load against cp -r
	$(PY) -m benchmarks.replication

bench-scan: setup  ## tables in Spark beside Spark's own ORC, and a real Hive 4.2
	$(PY) -m benchmarks.spark_scans

bench-write: setup  ## what Spark appends beside its own ORC
	$(PY) -m benchmarks.spark_writes

integration: setup  ## the real systems judge: Hive, HDFS, Trino, PostgreSQL, MariaDB, S3
	bash integration/run.sh

integration-long: setup  ## ten kills of each process of ours, ten minutes of storm, and of load beside a Hive 4.0.1, half an hour of readers
	HMS_BRIDGE_KILLS=10 HMS_BRIDGE_STORM_SECONDS=600 HMS_BRIDGE_MIXED_SECONDS=600 HMS_BRIDGE_READER_SECONDS=1800 \
		bash integration/run.sh integration/cases/test_cluster_kills.py integration/cases/test_storm_beside_hive.py \
		integration/cases/test_mixed_load.py integration/cases/test_slow_readers.py

lock: setup      ## write requirements.lock again from pyproject.toml
	$(PY) -m pip install --quiet uv
	.venv/bin/uv pip compile pyproject.toml --all-extras --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links -o requirements.lock

clean:           ## forget what was built
	rm -rf .venv .cache demo-work .mypy_cache .ruff_cache .pytest_cache
