#!/usr/bin/env bash
# Miri over the unit tests of the task floor and of the pure code: by hand, it needs a nightly toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
rustup component add --toolchain nightly miri rust-src
MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-disable-isolation ${MIRIFLAGS:-}" \
    cargo +nightly miri test -p urgency --lib -- tasks:: account:: "$@"
