#!/usr/bin/env bash
# Install the real systems and run the cases beside them. Arguments go to pytest: run.sh -m trino476,
# or run.sh integration/cases/test_hdfs.py. Without arguments every referee is installed first, so that one
# that is not to be had fails the run at once; kills of our processes, minutes each until leases have
# ended, are left to `make integration-long`; and what does not pass is tried once more
# (integration/second_try.py).
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE  # hundreds of processes would compile all that they import

python=${PYTHON:-.venv/bin/python}
if [ ! -x "$python" ]; then
    echo "integration: $python is not there; make it with: make setup (or set PYTHON)" >&2
    exit 2
fi

if [ $# -eq 0 ]; then
    "$python" -m integration.referees.install
    outcomes=$(mktemp)
    trap 'rm -f "$outcomes"' EXIT
    set -- -c integration/pytest.ini integration/cases --ignore=integration/cases/test_cluster_kills.py \
        --outcomes "$outcomes" --numprocesses 2 --dist loadgroup --no-loadscope-reorder
    status=0
    "$python" -m pytest "$@" || status=$?
    case $status in
        1 | 3) # a case failed, or pytest itself
            echo "integration: what did not pass is tried once more" >&2
            "$python" -m pytest "$@" ;;
        *) exit $status ;;
    esac
    exit
fi
cases=integration/cases
for argument in "$@"; do
    case $argument in
        integration/cases/*) cases= ;;
    esac
done
exec "$python" -m pytest -c integration/pytest.ini ${cases:+"$cases"} "$@"
