#!/usr/bin/env bash
# The parts of urgency-web that plain `cargo test` leaves out, because they bring cryptography or Tokio's
# runtime: TLS, the pooled client, QUIC, the Tokio driver; and crates that cannot do without Tokio, in a
# package of its own so that nobody else builds them: reqwest against our own server, redis and async-nats
# against Debian's servers, sqlx with SQLite.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo clippy --locked -p urgency-web --all-features --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --locked -p urgency-web --all-features --no-deps
timeout 300 cargo test --locked -p urgency-web --all-features
timeout 300 cargo run --locked -q -p urgency-web --features axum,client --example service
command -v redis-server >/dev/null || apt-get install -y --no-install-recommends redis-server
command -v nats-server >/dev/null || apt-get install -y --no-install-recommends nats-server
timeout 300 cargo test --locked --manifest-path ci/tokio-crates/Cargo.toml --target-dir target/tokio-crates
