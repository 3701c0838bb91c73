#!/usr/bin/env bash
# mini-redis, the example of the Tokio project, on Urgency: its own tests, and how many of its lines change. By hand.
#
#   ci/mini-redis.sh                    from GitHub
#   MINI_REDIS=FOLDER ci/mini-redis.sh  from a clone of it
#
# The source is fetched at one commit and nothing of it is kept here. The port is a line in its Cargo.toml: there `tokio`
# is Urgency. The second dependency on Tokio, for its tests, goes. The run fails if a test fails, or if more than 20 lines
# of the project differ.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD from=${MINI_REDIS:-https://github.com/tokio-rs/mini-redis}
commit=3d93b42bc363220f85af4fc9e1bebd35b588a4a3
mkdir -p "${CARGO_TARGET_DIR:-target}"
out=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/mini-redis

rm -rf "$out/source"
git clone --quiet "$from" "$out/source"
cd "$out/source"
git checkout --quiet "$commit"
# The versions that its lock names are old; ours are those of today.
git rm --quiet Cargo.lock
sed -i -e "s#^tokio = .*\"full\".*#tokio = { package = \"urgency\", path = \"$root/crates/urgency\", features = [\"tokio-io\"] }#" \
    -e '/^# Enable test-util/d' -e '/^tokio = .*"test-util"/d' Cargo.toml
# It lies within ours.
echo '[workspace]' >> Cargo.toml
changed=$(git diff --numstat | awk '{ lines += $1 > $2 ? $1 : $2 } END { print lines + 0 }')

log=$(mktemp)
trap 'rm -f "$log"' EXIT
result=0
CARGO_TARGET_DIR=$out RUSTFLAGS="${RUSTFLAGS:-} -A warnings" timeout 1200 cargo test --no-fail-fast 2>&1 | tee "$log" || result=$?
passed=$(sed -nE 's/^test result: .* ([0-9]+) passed.*/\1/p' "$log" | paste -sd+ | bc)
echo "$passed tests pass; $changed lines of the project differ"
[ "$changed" -gt 0 ] && [ "$changed" -le 20 ] || { echo "0 < lines <= 20" >&2; exit 1; }
exit "$result"
