#!/usr/bin/env bash
# The parts of urgency-web that a service on Urgency uses and plain `cargo test` leaves out: the extractor that gives
# axum's handlers their level, with its compile-fail tests, the pooled client, and the example of a whole service.
# `ci/web.sh` has the rest, which brings cryptography or Tokio's runtime.
set -euo pipefail
cd "$(dirname "$0")/.."
features="axum,client"
timeout 900 cargo test --locked -p urgency-web --features $features --test at --test client
timeout 300 cargo run --locked -q -p urgency-web --features $features --example service
