#!/usr/bin/env bash
# Thread sanitizer over the library's tests: by hand, it needs a nightly toolchain and builds std anew.
set -euo pipefail
cd "$(dirname "$0")/.."
rustup component add --toolchain nightly rust-src
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/tsan"
# All is slow here. A backtrace takes seconds, and the schedule of a test that panics in it waits meanwhile.
export RUST_BACKTRACE=0 URGENCY_TEST_HANGS=1200 URGENCY_RANDOM_JOBS=2000
# Left out: what compiles programs, and what starts threads after a fork, which this checker does not support. And what
# counts steps with up to 256 workers: beyond 255 threads the checker resets its memory at each change of threads, and
# one such test does not end within minutes. And five tests of tests/leaves_ahead.rs, which count pieces in progress, and
# one of tests/strict_parts.rs, where a core is used by one job only: a loop that never sleeps does here, for a lock of
# the checker, and then loses its worker. And what measures the memory of the process, as in ci/asan.sh: this checker
# keeps what it noted of the memory of ended threads.
cargo +nightly test -Zbuild-std --target "$host" -p urgency --tests --locked --no-fail-fast -- \
    --skip do_not_compile --skip the_child_of_a_fork \
    --skip sched::tests::costs --skip sched::tests::steps --skip sched::tests::breadth \
    --skip in_progress_if_they_are --skip pieces_of_three_levels_in_progress \
    --skip twice_as_many_endless_loops_as_workers_go_on --skip a_new_job_without_a_part_has_no_idle_core_either \
    --skip the_stacks_of_threads_that_were_needed_once_are_given_back_within_seconds \
    --skip what_threads_that_were_needed_once_freed_is_the_allocators_to_give_back "$@"
