#!/usr/bin/env bash
# The main job and a few benchmarks once, with tiny sizes: they run, verify their results, and end. So do the random
# programs and the soak, which are large only in a release build, and the examples.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --workspace --release --locked
target=${CARGO_TARGET_DIR:-target}
timeout 120 "$target/release/urgency" demo --duration 4 --picture "$(mktemp -u --suffix .svg)"
timeout 300 "$target/release/urgency-bench" --quick --check --rounds 1 --timeout 60 --save "$(mktemp -d)" \
    fib-1 fib-2 sort-2 scope-children-1 idle task-spawn coschedule-isolation coschedule-flow-75

# All hundred random programs; a debug build runs ten small ones. A million contexts; a debug build spawns 20,000.
cargo test -p urgency --release --locked --test stress --test soak --no-run
timeout 300 cargo test -p urgency --release --locked --test stress -- random_programs
timeout 120 cargo test -p urgency --release --locked --test soak -- --nocapture

# Each example ends by itself within seconds.
cargo build -p urgency --release --locked --examples
for example in crates/urgency/examples/*.rs; do
    name=$(basename "$example" .rs)
    echo "example $name"
    timeout 60 "$target/release/examples/$name" >/dev/null
done
