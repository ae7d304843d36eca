#!/usr/bin/env bash
# Makes .venv with everything that is locked, and finds a Java for Spark (installs one when root).
set -euo pipefail
cd "$(dirname "$0")/.."

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "hms-bridge needs Python 3.11 or newer with its venv module." >&2
    echo "Debian, Ubuntu: apt-get install python3 python3-venv; or set PYTHON=/path/to/python" >&2
    return 1
}

stamp=.venv/installed.sha256
wanted=$(cat requirements.lock pyproject.toml | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
    python=$(find_python)
    echo "setting up .venv with $("$python" --version): a minute or two"
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    echo "$wanted" >"$stamp"
fi

if ! .venv/bin/python -m hms_bridge.spark.java >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing a Java for Spark"
        apt-get update -qq
        apt-get install -y -qq openjdk-17-jre-headless || apt-get install -y -qq openjdk-21-jre-headless
    fi
    .venv/bin/python -m hms_bridge.spark.java >/dev/null
fi
