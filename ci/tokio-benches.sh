#!/usr/bin/env bash
# Tokio's own benchmarks, unmodified, on Tokio and on Urgency by turns. By hand, alone on the machine: a round of all
# files takes five minutes, and building them as long.
#
#   ci/tokio-benches.sh CHECKOUT [ROUNDS [FILE...]]    CHECKOUT: of github.com/tokio-rs/tokio, with `benches/`
#
# In a crate of its own under target/ `tokio` is Urgency by a line in Cargo.toml, in another one the tokio of Cargo.lock.
# Prints criterion's time of both (median of the rounds), and the ratio of each round, below 1 where Urgency is ahead.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD out=$PWD/${CARGO_TARGET_DIR:-target}/tokio-benches
[ -f "${1-}/benches/spawn.rs" ] || { echo "usage: ci/tokio-benches.sh CHECKOUT [ROUNDS [FILE...]]" >&2; exit 2; }
theirs=$1/benches rounds=${2:-3}
shift $(($# < 2 ? $# : 2))
version=$(awk '/^name = "tokio"$/ { getline; gsub(/[^0-9.]/, ""); print }' Cargo.lock)
names=$(cd "$theirs" && basename -s .rs -- *.rs)
crate() { # FOLDER DEPENDENCY
    rm -rf "$out/$1/src" "$out/$1"/*.rs
    mkdir -p "$out/$1/src"
    : > "$out/$1/src/lib.rs"
    cp "$theirs"/*.rs "$out/$1/"
    cp Cargo.lock "$out/$1/Cargo.lock"
    {
        cat <<TOML
[package]
name = "benches"
version = "0.0.0"
edition = "2021"
publish = false

[workspace]

[features]
test-util = []

[dependencies]
tokio = { $2 }
criterion = { version = "0.5", default-features = false }
libc = "0.2"
rand = "0.9"
rand_chacha = "0.9"

[dev-dependencies]
tokio-stream = "0.1"
tokio-util = { version = "0.7", features = ["full"] }
TOML
        printf '\n[[bench]]\nname = "%s"\nharness = false\npath = "%s.rs"\n' $(for name in $names; do echo "$name $name"; done)
    } > "$out/$1/Cargo.toml"
    (cd "$out/$1" && CARGO_TARGET_DIR=target cargo bench --no-run --quiet)
}
crate tokio "version = \"=$version\", features = [\"full\"]"
crate ours "package = \"urgency\", path = \"$root/crates/urgency\", features = [\"tokio-io\"]"
python3 ci/tokio-benches.py "$out" "$rounds" "${@:-$names}"
