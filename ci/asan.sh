#!/usr/bin/env bash
# Address and leak sanitizer over the library's tests, on the stable toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS="detect_leaks=0"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
host=$(rustc -vV | sed -n 's/^host: //p')
cargo test -p urgency --target "$host" --lib --tests --locked -- --skip compile_fail
