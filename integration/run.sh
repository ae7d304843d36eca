#!/usr/bin/env bash
# Install the real systems and run the cases beside them. Arguments go to pytest: run.sh -m trino476
# Without arguments every referee is installed first, so that one that is not to be had fails the run at once.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
if [ ! -x "$python" ]; then
    echo "integration: $python is not there; make it with: make setup (or set PYTHON)" >&2
    exit 2
fi

if [ $# -eq 0 ]; then
    "$python" -m integration.referees.install
fi
exec "$python" -m pytest -c integration/pytest.ini integration/cases "$@"
