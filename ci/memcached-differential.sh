#!/usr/bin/env bash
# Compares the cache server with memcached 1.6.18, byte for byte, on random meta, text and binary requests, and checks
# the expected answers of crates/urgency-cache/tests/common/cases.rs against memcached.
#
#   ci/memcached-differential.sh                 # 300 batches of each protocol
#   ci/memcached-differential.sh 5000 70000      # 5,000, from seed 70,000 on
#
# Needs memcached (apt-get install memcached). docs/cache.md says what is known to differ, and why.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(memcached -V || true)
if [ "$version" != "memcached 1.6.18" ]; then
    echo "needs memcached 1.6.18 in PATH, found: ${version:-none}" >&2
    exit 2
fi
export URGENCY_BATCHES=${1:-300} URGENCY_SEED=${2:-1}
cargo test --locked -p urgency-cache --test differential -- --ignored --nocapture --test-threads 4
