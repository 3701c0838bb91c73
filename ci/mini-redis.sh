#!/usr/bin/env bash
# mini-redis, the example of the Tokio project, on Urgency: its own tests, and how many of its lines change; and its
# speed beside the original. By hand.
#
#   ci/mini-redis.sh                       from GitHub
#   MINI_REDIS=FOLDER ci/mini-redis.sh     from a clone of it
#   ci/mini-redis.sh speed [ROUNDS] [build|run]
#
# The source is fetched at one commit and nothing of it is kept here. The port is a line in its Cargo.toml: there `tokio`
# is Urgency. The second dependency on Tokio, for its tests, goes. The run fails if a test fails, or if more than 20 lines
# of the project differ.
#
# `speed` builds both, and loads them in turns by redis-benchmark (Debian: redis-tools), which ci/mini-redis-speed.py
# does. On a machine with nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD from=${MINI_REDIS:-https://github.com/tokio-rs/mini-redis}
commit=3d93b42bc363220f85af4fc9e1bebd35b588a4a3
mkdir -p "${CARGO_TARGET_DIR:-target}"
out=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/mini-redis

# The original, with the dependencies of today: the versions that its lock names are old.
original() {
    rm -rf "$1"
    git clone --quiet "$from" "$1"
    cd "$1"
    git checkout --quiet "$commit"
    git rm --quiet Cargo.lock
    # It lies within ours.
    echo '[workspace]' >> Cargo.toml
}

port() {
    original "$1"
    sed -i -e "s#^tokio = .*\"full\".*#tokio = { package = \"urgency\", path = \"$root/crates/urgency\", features = [\"tokio-io\"] }#" \
        -e '/^# Enable test-util/d' -e '/^tokio = .*"test-util"/d' Cargo.toml
}

if [ "${1:-}" = speed ]; then
    rounds=${2:-9} what=${3:-all}
    if ! command -v redis-benchmark > /dev/null; then
        echo "redis-benchmark is missing; on Debian: apt-get install redis-tools" >&2
        exit 1
    fi
    if [ "$what" != run ]; then
        for kind in original port; do
            (
                # Not joined by `&&`: the shell would go on after a failed step of the function.
                $kind "$out/$kind"
                cargo build --quiet --release --bin mini-redis-server --target-dir "$out/$kind-target"
            )
        done
    fi
    [ "$what" != build ] || exit 0
    exec python3 ci/mini-redis-speed.py "$rounds" {"$out/original","$out/port"}-target/release/mini-redis-server
fi

port "$out/source"
changed=$(git diff --numstat | awk '{ lines += $1 > $2 ? $1 : $2 } END { print lines + 0 }')

log=$(mktemp)
trap 'rm -f "$log"' EXIT
result=0
CARGO_TARGET_DIR=$out RUSTFLAGS="${RUSTFLAGS:-} -A warnings" timeout 1200 cargo test --no-fail-fast 2>&1 | tee "$log" || result=$?
passed=$(sed -nE 's/^test result: .* ([0-9]+) passed.*/\1/p' "$log" | paste -sd+ | bc)
echo "$passed tests pass; $changed lines of the project differ"
[ "$changed" -gt 0 ] && [ "$changed" -le 20 ] || { echo "0 < lines <= 20" >&2; exit 1; }
exit "$result"
