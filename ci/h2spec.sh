#!/usr/bin/env bash
# Examines the HTTP/2 server of urgency-web with h2spec, which comes through the Go module proxy, and loads it with h2load and wrk
# where they are installed (Debian: nghttp2-client, wrk). Needs Go. Ends with status 1 if a case of h2spec fails.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/local/go/bin:$(go env GOPATH 2>/dev/null || echo "$HOME/go")/bin"
command -v h2spec >/dev/null || go install github.com/summerwind/h2spec/cmd/h2spec@latest

cargo build --release --locked -q -p urgency-web --example conformance
exec 3< <(exec target/release/examples/conformance)
server=$!
trap 'kill "$server"' EXIT
read -r port <&3

failed=0
timeout 120 h2spec --host 127.0.0.1 --port "$port" --timeout 2 || failed=1
if command -v h2load >/dev/null; then
  timeout 60 h2load -c 16 -m 16 -n 20000 "http://127.0.0.1:$port/" | grep -E "^(finished|requests|status)"
fi
if command -v wrk >/dev/null; then
  timeout 60 wrk -t 1 -c 64 -d 2 "http://127.0.0.1:$port/" | grep -E "Requests/sec|Socket errors|Non-2xx" || true
fi
exit "$failed"
