#!/usr/bin/env bash
# The loom models of every protocol. The cfg has a name of our own: plain `--cfg loom` would switch
# dependencies over, too.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg urgency_loom" LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
cargo test -p urgency --release --lib --locked
