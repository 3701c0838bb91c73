#!/usr/bin/env bash
# Each crate that is meant for crates.io is packaged as it would be uploaded, and compiles from its package alone.
set -euo pipefail
cd "$(dirname "$0")/.."
excluded=()
for manifest in $(grep -l '^publish = false$' crates/*/Cargo.toml bench/Cargo.toml); do
    excluded+=(--exclude "$(sed -n 's/^name = "\(.*\)"$/\1/p' "$manifest" | head -n 1)")
done
# `--allow-dirty`: what is packaged are the files of the checkout, committed or not.
cargo package --workspace "${excluded[@]}" --locked --allow-dirty --quiet
ls "${CARGO_TARGET_DIR:-target}"/package/*.crate
