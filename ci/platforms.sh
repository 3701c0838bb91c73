#!/usr/bin/env bash
# On a platform without epoll the library stops with one error that says what is missing, and with no other.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v rustup >/dev/null; then
    echo "skipped: without rustup there is no standard library of another platform" >&2
    exit 0
fi
for target in x86_64-apple-darwin x86_64-pc-windows-gnu; do
    if ! rustup target list --installed | grep -qx "$target" && ! rustup target add "$target"; then
        echo "skipped: rustup has no standard library for $target here" >&2
        continue
    fi
    if said=$(cargo check -p urgency --target "$target" --locked 2>&1); then
        echo "urgency compiles for $target: say so in docs/limits.md, and change ci/platforms.sh" >&2
        exit 1
    fi
    errors=$(grep -E '^error' <<<"$said" | grep -v 'build script logged errors')
    echo "$target: $errors"
    if [ "$(wc -l <<<"$errors")" -ne 1 ] || ! grep -q 'runs on Linux only' <<<"$errors"; then
        echo "$said" >&2
        echo "expected for $target: one error, which says what urgency needs of Linux" >&2
        exit 1
    fi
done
