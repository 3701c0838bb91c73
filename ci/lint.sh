#!/usr/bin/env bash
# Formatting, the width of comments, the length of files, lints, links in the documentation, how the documents are
# written, the subjects of commits, and the floors of the library.
set -euo pipefail
cd "$(dirname "$0")/.."
rustup component add rustfmt clippy >/dev/null 2>&1 || true
cargo fmt --all --check
# What rustfmt leaves alone: a comment's line, unless it is a table's, has at most 120 characters.
if grep -rnP --include='*.rs' '^(?=.{121,}$)\s*//[/!]? [^|]' crates bench examples-external; then
    echo "wrap these comments: more than 120 characters" >&2
    exit 1
fi
# A file is one idea.
long=$(git ls-files -z '*.rs' '*.go' | xargs -0 awk 'FNR == 501 { print FILENAME }')
if [ -n "$long" ]; then
    printf 'more than 500 lines, cut these files by what they are about:\n%s\n' "$long" >&2
    exit 1
fi
# A core dump or another product of a run does not belong to the tree.
large=$(git ls-files -z | xargs -0 sh -c 'find "$@" -maxdepth 0 -size +512k' find)
if [ -n "$large" ]; then
    printf 'larger than 512 KiB, take these out of the tree:\n%s\n' "$large" >&2
    exit 1
fi
ci/words.sh
ci/words.sh --rust
# The last commit with a longer subject: what came before stays as it is.
base=766d5f2c61d6
if git rev-parse --verify --quiet "$base^{commit}" >/dev/null; then
    ci/words.sh --subjects "$base"
else
    echo "skipped: the subjects of commits, since this clone does not reach back to $base" >&2
fi
ci/floors.sh
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
