#!/usr/bin/env bash
# The floors of the library: no room of crates/urgency/src imports from a room above its own, and no folder of its
# scheduler from a folder above. The lists of the floors and what counts as an import are in
# crates/urgency/tests/floors/main.rs. It is a test of the library as well; here it is built without the library. Prints
# the rooms, floor by floor, and what each imports from; fails on an upward import and names it. Needs rustc.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p target
rustc --edition 2024 --test crates/urgency/tests/floors/main.rs -o target/floors
target/floors --show-output
