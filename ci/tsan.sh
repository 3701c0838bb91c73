#!/usr/bin/env bash
# Thread sanitizer over the library's tests: by hand, it needs a nightly toolchain and builds std anew.
set -euo pipefail
cd "$(dirname "$0")/.."
rustup component add --toolchain nightly rust-src
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/tsan"
cargo +nightly test -Zbuild-std --target "$host" -p urgency --tests --locked --no-fail-fast -- --skip compile_fail "$@"
