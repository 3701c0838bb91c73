#!/usr/bin/env bash
# Each crate that is meant for crates.io is packaged as it would be uploaded, and compiles from its package alone.
set -euo pipefail
cd "$(dirname "$0")/.."
excluded=()
for manifest in $(grep -l '^publish = false$' crates/*/Cargo.toml bench/Cargo.toml); do
    excluded+=(--exclude "$(sed -n 's/^name = "\(.*\)"$/\1/p' "$manifest" | head -n 1)")
done
# Cargo unpacks a package into a place that is named after the checkout's path, and not again when that place has one of the
# same version: without this line a crate compiles against the packages of an earlier run.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/urgency*
# `--allow-dirty`: what is packaged are the files of the checkout, committed or not.
cargo package --workspace "${excluded[@]}" --locked --allow-dirty --quiet
ls "${CARGO_TARGET_DIR:-target}"/package/*.crate
