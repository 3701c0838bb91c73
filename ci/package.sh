#!/usr/bin/env bash
# Each crate that is meant for crates.io is packaged as it would be uploaded, and compiles from its package alone.
set -euo pipefail
cd "$(dirname "$0")/.."
excluded=()
for manifest in $(grep -l '^publish = false$' crates/*/Cargo.toml bench/Cargo.toml); do
    excluded+=(--exclude "$(sed -n 's/^name = "\(.*\)"$/\1/p' "$manifest" | head -n 1)")
done
# Cargo takes a package of the same version from an earlier run as it is: unpacked, in a place that is named after the
# path of the target directory, and compiled, in that directory. With a new directory a crate compiles against the
# packages of this run.
packages=$(mktemp -d)
trap 'rm -rf "$packages" "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/urgency*' EXIT
# `--allow-dirty`: what is packaged are the files of the checkout, committed or not.
cargo package --workspace "${excluded[@]}" --target-dir "$packages" --locked --allow-dirty --quiet
ls "$packages"/package/*.crate
