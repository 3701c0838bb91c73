#!/usr/bin/env bash
# The main job and every benchmark once, with tiny sizes: they run, verify their results, and end.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --workspace --release --locked
target=${CARGO_TARGET_DIR:-target}
"$target/release/urgency" demo --duration 4 --picture "$(mktemp -u --suffix .svg)"
"$target/release/urgency-bench" --quick --check --rounds 1 --save "$(mktemp -d)"
