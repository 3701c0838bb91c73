#!/usr/bin/env bash
# The main job and a few benchmarks once, with tiny sizes: they run, verify their results, and end.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --workspace --release --locked
target=${CARGO_TARGET_DIR:-target}
"$target/release/urgency" demo --duration 4 --picture "$(mktemp -u --suffix .svg)"
"$target/release/urgency-bench" --quick --check --rounds 1 --timeout 60 --save "$(mktemp -d)" \
    fib-1 fib-2 sort-2 scope-children-1 idle task-spawn
