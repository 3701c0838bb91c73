#!/usr/bin/env bash
# The example of policies of a user's own: its tests, a run of all three in a runtime, and in the simulator one of its
# order and its schedule and one of its core policy. After `cargo test --workspace` little is left to compile: the
# versions and the profile are the workspace's.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
own=examples-external/own-policy
cp Cargo.lock "$own/"
timeout 600 cargo test --manifest-path "$own/Cargo.toml"
cargo build --manifest-path "$own/Cargo.toml"
timeout 60 "$CARGO_TARGET_DIR/debug/own-policy" run
timeout 60 "$CARGO_TARGET_DIR/debug/own-policy" --dag memcached --pool spilling-queues --schedule night-shift >/dev/null
jobs=$(timeout 60 "$CARGO_TARGET_DIR/debug/own-policy" jobs --policies newest-few,drep,shares --jobs 500)
grep -q newest-few <<<"$jobs" || { printf 'no result of newest-few:\n%s\n' "$jobs" >&2; exit 1; }
