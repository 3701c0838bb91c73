#!/usr/bin/env bash
# The workspace compiles with the oldest Rust that Cargo.toml states. Installs that toolchain if rustup is there.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
if ! command -v rustup >/dev/null; then
    echo "skipped: without rustup there is no Rust $oldest beside the installed one" >&2
    exit 0
fi
rustup toolchain list | grep -q "^$oldest" || rustup toolchain install "$oldest" --profile minimal
cargo "+$oldest" check --workspace --locked
cargo "+$oldest" check -p urgency --all-features --locked
