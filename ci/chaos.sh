#!/usr/bin/env bash
# The library's tests with decisions drawn from seeds, each the unusual way now and then
# (crates/urgency/src/sys/chaos.rs). A seed repeats the decisions of each thread, but not the kernel's.
#
#   ci/chaos.sh [SEED...]           all tests; with seeds 1 and 2 if none is named
#   ci/chaos.sh --quick [SEED...]   the tests that are over soon, of each room; with a seed that is the commit's if none
#                                   is named: another one for each commit, and the same when a run is repeated. `.ci/run`
#                                   runs this form
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg urgency_chaos" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/chaos"
tests=(--lib --tests) quick=
if [ "${1-}" = --quick ]; then
    quick=" --quick"
    shift
    tests=()
    export URGENCY_RANDOM_JOBS="${URGENCY_RANDOM_JOBS:-2000}"
    for name in broadcasts fork_join futures handles job_handles levels panics par pools prompt random_async random_jobs random_par \
        random_scopes relief schedules scopes shutdown soak stress sync sync_data tasks tracker two_jobs urgent_forks \
        waits; do
        tests+=(--test "$name")
    done
    if [ $# -eq 0 ]; then
        commit=$(git rev-parse HEAD) || commit=$(date +%Y%m%d)
        set -- $((16#${commit:0:7}))
    fi
fi
[ $# -gt 0 ] || set -- 1 2
for seed in "$@"; do
    echo "seed $seed"
    URGENCY_TEST_SEED=$seed cargo test -p urgency "${tests[@]}" --locked --quiet --no-fail-fast -- --skip compile || {
        echo "seed $seed fails: repeat it with ci/chaos.sh$quick $seed" >&2
        exit 1
    }
done
