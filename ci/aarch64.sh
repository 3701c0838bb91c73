#!/usr/bin/env bash
# The library's tests on aarch64, emulated (by hand; needs Debian's qemu-user, gcc-aarch64-linux-gnu and
# libc6-dev-arm64-cross). The emulator runs on this machine's memory model, so this shows that the code is
# right for the other processor's system calls and instructions; that its orderings are, the loom models show.
# Tests that start themselves as a process of their own are left out: the kernel cannot run that program
# directly.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
rustup target add "$target"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/aarch64"
cargo test -p urgency --target "$target" --lib --locked -- --skip stdio --skip at_the_limit_of_descriptors
cargo test -p urgency --target "$target" --locked --test fork_join --test tasks --test levels --test prompt --test sync
