#!/usr/bin/env bash
# A program of examples-external on rayon as it is, and on our rayon-core: the service's latencies beside the
# batch. By hand. polars takes an hour of a processor to compile, twice; rayon-beside-service a minute.
#
#   ci/beside.sh EXAMPLE [build|run|all] [rounds]
set -euo pipefail
cd "$(dirname "$0")/.."
example=$1 what=${2:-all} rounds=${3:-1}
out=$PWD/target/beside/$example
if [ "$what" != run ]; then
    patched=examples-external/$example
    as_it_is=$out/as-it-is
    mkdir -p "$as_it_is"
    cp -r "$patched/." "$as_it_is"
    sed -i "/^\[patch.crates-io\]/,\$d; s|\"../../crates|\"$PWD/crates|" "$as_it_is/Cargo.toml"
    cargo build --release --manifest-path "$patched/Cargo.toml" --target-dir "$out"
    cp "$out/release/$example" "$out/patched"
    cargo build --release --manifest-path "$as_it_is/Cargo.toml" --no-default-features --target-dir "$out"
    cp "$out/release/$example" "$out/rayon"
fi
[ "$what" != build ] || exit 0
for _ in $(seq "$rounds"); do
    for core in rayon patched; do
        echo "$core"
        RAYON_NUM_THREADS=2 timeout 120 "$out/$core"
    done
done
