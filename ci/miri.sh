#!/usr/bin/env bash
# Miri over the floors of tasks, accounts, forks, synchronisation and parallel loops: unit tests, and programs of one to
# four workers. Needs a nightly toolchain with miri; where rustup or that component cannot be had, it says so and leaves
# the check out.
#
# What miri does not interpret counts as missing, as it may be elsewhere: timerfd, so there is no reactor, and no relief;
# niceness, affinity and the processor time of a thread (crates/urgency/src/sys). Left out is what needs those, and what
# computes for long.
#
#   ci/miri.sh                                 all: a quarter of an hour
#   ci/miri.sh --quick                         unit tests and forks; `.ci/run` runs this form
#   MIRIFLAGS=-Zmiri-many-seeds=0..8 ci/miri.sh
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v rustup >/dev/null; then
    echo "skipped: without rustup there is no nightly Rust with miri" >&2
    exit 0
fi
has_miri() { cargo +nightly miri --version >/dev/null 2>&1; }
if ! has_miri && ! { rustup toolchain install nightly --profile minimal --component miri,rust-src && has_miri; }; then
    echo "skipped: rustup has no nightly Rust with miri here" >&2
    exit 0
fi

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
# Tree borrows: the crates of crossbeam break the older rules. With fewer processors than workers no worker would steal.
# Leaks are not looked for: a runtime that is dropped does not wait for its threads, and the global one stays.
export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-disable-isolation -Zmiri-num-cpus=4 -Zmiri-ignore-leaks ${MIRIFLAGS:-}"
# To interpret the printing of a backtrace takes seconds, and many tests panic on purpose.
export RUST_BACKTRACE=0
# All is slow here, and on a machine that does other work a test of tests/sync.rs does not end in the usual time.
export URGENCY_TEST_HANGS=1200
miri() { cargo +nightly miri test -p urgency --locked "$@"; }

quick=
if [ "${1-}" = --quick ]; then
    quick=yes
fi
miri --lib -- tasks:: account:: sync:: protocol:: --skip the_same_work_is_one_entry --skip overtakes
miri --test fork_join -- --skip a_plain_thread_can_join --skip every_number_of_workers --skip many_plain_threads
[ -z "$quick" ] || exit 0
# An urgent task beside a loop needs a stack that runs for long.
miri --test sync --test sync_data --test broadcasts --test futures --test par -- --skip let_equals_run --skip lets_its_equals_run --skip urgent_work
