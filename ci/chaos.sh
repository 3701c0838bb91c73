#!/usr/bin/env bash
# The library's tests with scheduling decisions drawn from seeds (crates/urgency/src/chaos.rs), each in an
# unusual order: ci/chaos.sh [SEED...]
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg urgency_chaos" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/chaos"
for seed in "${@:-1 2}"; do
    echo "seed $seed"
    URGENCY_TEST_SEED=$seed cargo test -p urgency --lib --tests --locked --quiet -- --skip priority_inversions
done
