#!/usr/bin/env bash
# Makes .venv with everything that is locked, finds a Java for Spark and a compiler for the jar (installs them when
# root), and builds the jar.
set -euo pipefail
cd "$(dirname "$0")/.."

is_usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Microseconds that a Python needs for a little of everything.
speed_of() {
    "$1" - <<'EOF'
import time

class Row:
    __slots__ = ("key",)

    def __init__(self, key):
        self.key = key

    def text(self, length):
        return "%d-%d" % (self.key, length)

best = 9.0
for _ in range(5):
    began, texts = time.perf_counter(), {}
    for key in range(50_000):
        texts[key & 255] = Row(key).text(len(texts))
    best = min(best, time.perf_counter() - began)
print(int(best * 1e6))
EOF
}

# Whether the second is faster by a fifth at least: the best of some turns, as a machine has bad moments.
is_faster() {
    local first=9999999 second=9999999 took
    for _ in 1 2 3 4; do
        took=$(speed_of "$1")
        [ "$took" -ge "$first" ] || first=$took
        took=$(speed_of "$2")
        [ "$took" -ge "$second" ] || second=$took
    done
    [ $((second * 5)) -le $((first * 4)) ]
}

# PYTHON, or else the first that there is; or the system's own if that is faster. Many a Python that was
# compiled on the spot lacks a compiler's optimisations, and takes up to 1.6 times as long for what we do.
find_python() {
    local candidate found="" own=/usr/bin/python3 candidates=("${PYTHON:-}")
    [ -n "${PYTHON:-}" ] || candidates=(python3 python3.13 python3.12 python3.11)
    for candidate in "${candidates[@]}"; do
        if is_usable "$candidate"; then
            found=$candidate
            break
        fi
    done
    if [ -z "$found" ]; then
        echo "hms-bridge needs Python 3.11 or newer with its venv module; none here: ${candidates[*]}" >&2
        echo "Debian, Ubuntu: apt-get install python3 python3-venv; or set PYTHON=/path/to/python" >&2
        return 1
    fi
    if [ -z "${PYTHON:-}" ] && [ "$(command -v "$found")" != "$own" ] &&
        is_usable "$own" && is_faster "$found" "$own"; then
        found=$own
    fi
    echo "$found"
}

# Whether .venv was made with another one than PYTHON.
is_anothers() {
    local base='import sys; print(sys.base_prefix, sys.version_info)'
    [ -n "${PYTHON:-}" ] && [ "$("$PYTHON" -c "$base")" != "$(.venv/bin/python -c "$base")" ]
}

stamp=.venv/installed.sha256
wanted=$(cat requirements.lock pyproject.toml | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || is_anothers; then
    python=$(find_python)
    echo "setting up .venv with $("$python" --version) ($python): a minute or two"
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    echo "$wanted" >"$stamp"
fi

if ! .venv/bin/python -m hms_bridge.spark.java >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing a Java for Spark"
        apt-get update -qq
        apt-get install -y -qq openjdk-17-jdk-headless || apt-get install -y -qq openjdk-21-jdk-headless
    fi
    .venv/bin/python -m hms_bridge.spark.java >/dev/null
fi

has_compiler() { [ -x "$(.venv/bin/python -m hms_bridge.spark.java)/bin/javac" ] || command -v javac >/dev/null; }
if ! has_compiler && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing a Java compiler"
    apt-get update -qq
    apt-get install -y -qq openjdk-17-jdk-headless || apt-get install -y -qq openjdk-21-jdk-headless
fi
.venv/bin/python scripts/build_jar.py
