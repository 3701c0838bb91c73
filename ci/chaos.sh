#!/usr/bin/env bash
# The library's tests with decisions drawn from seeds, each the unusual way now and then
# (crates/urgency/src/sys/chaos.rs): ci/chaos.sh [SEED...]
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg urgency_chaos" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/chaos"
[ $# -gt 0 ] || set -- 1 2
for seed in "$@"; do
    echo "seed $seed"
    URGENCY_TEST_SEED=$seed cargo test -p urgency --lib --tests --locked --quiet --no-fail-fast -- --skip compile
done
