#!/usr/bin/env bash
# Fuzzes the parsers of the cache server, by hand: ci/fuzz.sh [SECONDS-EACH] [TARGET...].
#
# The folder has cargo-fuzz's layout, so `cargo +nightly fuzz run text` works there, too. This script needs neither: it
# builds the targets with the flags that cargo-fuzz uses, on the stable toolchain, and runs them.
set -euo pipefail
cd "$(dirname "$0")/../crates/urgency-cache/fuzz"
seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(text meta binary)
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../../target}/fuzz"
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Cdebug-assertions -Ccodegen-units=1"
cargo build --release --target "$host" "${targets[@]/#/--bin=}"
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target"
    "$CARGO_TARGET_DIR/$host/release/$target" "corpus/$target" -artifact_prefix="artifacts/$target/" \
        -max_total_time="$seconds" -max_len=4096 -print_final_stats=1
done
