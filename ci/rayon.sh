#!/usr/bin/env bash
# rayon's own tests, unmodified, on the rayon-core of this repository. Fetches the `rayon` and `rayon-core` crates from
# crates.io into target/rayon-suite; nothing of them is kept here.
#
#   ci/rayon.sh            all: rayon's unit and integration tests, rayon-core's
#   ci/rayon.sh core|iter  one part; more arguments go to the test programs
#   ci/rayon.sh iterators  only rayon's iterators beside other levels, which need nothing of the suites
#
# rayon-core's unit tests are written for the inside of the crate, so they are compiled inside a copy of ours, with
# three internal names added (`suite.rs` below). What cannot pass is named in SKIPPED, with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD part=${1:-all}
shift || true
rayon=1.12.0 core=1.13.0
suite=$root/target/rayon-suite
iterators() {
    cargo test --manifest-path "$root/examples-external/rayon-beside-service/Cargo.toml" --test iterators -- "$@"
}
if [ "$part" = iterators ]; then
    # Little is left to compile after `cargo test --workspace`.
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} iterators "$@"
    exit
fi
mkdir -p "$suite"

# Both look at the registry inside rayon's pool, which outlives the pool there. Here it is what keeps the pool alive.
# `when_a_pool_is_dropped_its_threads_end` (crates/rayon-core/tests) is the same from outside.
SKIPPED=(thread_pool::test::workers_stop thread_pool::test::sleeper_stop)

fetch() {
    [ -d "$suite/$1-$2" ] || curl -fsSL "https://static.crates.io/crates/$1/$1-$2.crate" | tar xz -C "$suite"
}
fetch rayon $rayon
fetch rayon-core $core

ours=$suite/ours
rm -rf "$ours"
cp -r crates/rayon-core "$ours"
rm -rf "$ours/tests"
cp -r "$suite/rayon-core-$core/tests" "$ours/tests"
theirs=$suite/rayon-core-$core/src
cat > "$ours/src/suite.rs" <<EOF
#![allow(missing_docs, dead_code)]
pub(crate) mod unwind {
    pub(crate) fn halt_unwinding<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
    }
}
EOF
cat >> "$ours/src/lib.rs" <<EOF
mod suite;
#[cfg(test)]
use suite::unwind;
#[path = "$theirs/test.rs"]
mod test;
#[path = "$theirs/compile_fail/mod.rs"]
mod compile_fail;
#[cfg(test)]
mod thread_pool {
    #[path = "$theirs/thread_pool/test.rs"]
    mod test;
}
EOF
for module in join scope spawn broadcast; do
    printf '#[cfg(test)]\nuse crate::suite::unwind;\n#[cfg(test)]\n#[path = "%s/%s/test.rs"]\nmod test;\n' \
        "$theirs" $module >> "$ours/src/$module.rs"
done
cat >> "$ours/src/registry.rs" <<EOF
#[cfg(test)]
pub(crate) fn in_worker<R: Send>(f: impl FnOnce(&(), bool) -> R + Send) -> R {
    Registry::current().host.run(|injected| f(&(), injected))
}
#[cfg(test)]
impl Registry {
    pub(crate) fn num_threads(&self) -> usize {
        self.host.workers()
    }
    pub(crate) fn wait_until_stopped(&self) {
        unimplemented!("see SKIPPED")
    }
}
EOF
sed -i "s|path = \"../urgency\"|path = \"$root/crates/urgency\"|; s|\\.workspace = true||; /^edition\$/d; /^rust-version\$/d; /^license\$/d; /^repository\$/d; /^\\[lints\\]\$/d; /^workspace = true\$/d; /^workspace\$/d" "$ours/Cargo.toml"
sed -i 's/^publish = false$/publish = false\nedition = "2024"/' "$ours/Cargo.toml"
cat >> "$ours/Cargo.toml" <<EOF

[dev-dependencies]
crossbeam-utils = "0.8"
libc = "0.2"
rand = "0.9"
rand_xorshift = "0.4"
scoped-tls = "1.0"
EOF
cat > "$suite/Cargo.toml" <<EOF
[workspace]
resolver = "3"
members = ["rayon-$rayon", "ours"]

[patch.crates-io]
rayon-core = { path = "ours" }
EOF

skip=()
for test in "${SKIPPED[@]}"; do skip+=(--skip "$test"); done
export CARGO_TARGET_DIR=$suite/target
test() { cargo test --manifest-path "$suite/Cargo.toml" "$@"; }
if [ "$part" != iter ]; then
    test -p rayon-core --no-fail-fast -- "${skip[@]}" "$@"
fi
if [ "$part" != core ]; then
    test -p rayon --no-fail-fast -- "$@"
    iterators "$@"
fi
