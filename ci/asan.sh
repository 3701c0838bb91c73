#!/usr/bin/env bash
# Address sanitizer, without leaks, over the library's tests, on the stable toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS="detect_leaks=0"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
host=$(rustc -vV | sed -n 's/^host: //p')
# The tests that are left out, or what they test, measure stacks by the addresses of their variables, which this checker
# moves to the heap; or the memory of the process, of which this checker keeps what was freed.
cargo test -p urgency --target "$host" --lib --tests --locked --no-fail-fast -- --skip do_not_compile \
    --skip many_jobs_that_wait_in_joins_do_not_pile_up_on_one_stack \
    --skip a_closure_that_waits_in_get_runs_nothing_else_on_its_stack \
    --skip get_runs_a_task_that_has_not_begun_on_the_stack_that_waits \
    --skip the_stacks_of_threads_that_were_needed_once_are_given_back_within_seconds \
    --skip what_threads_that_were_needed_once_freed_is_the_allocators_to_give_back
