#!/usr/bin/env python3
"""mini-redis beside its port: rounds of redis-benchmark with 50 connections, in turns, each in a fresh process.

    ci/mini-redis-speed.py ROUNDS ORIGINAL PORT...

`ci/mini-redis.sh speed` builds the two servers and calls this. For each server: SET, then GET, one request under way
for each connection; then the same with 16 (`-P 16`). The processor time is the server's, of SET and GET together. A
ratio is the median over the rounds of port / original, with its smallest and largest. More than one port can be given,
to compare two trees of ours. Behind each ratio stands whether it keeps its bar (`BARS`).
"""

import csv
import socket
import statistics
import subprocess
import sys
import time

CONNECTIONS = 50
# Requests of one kind, by how many are under way for each connection: some 1.5 s.
REQUESTS = {1: 100_000, 16: 400_000}

# What a ratio has to be, by the end of a metric's name.
BARS = {
    "k/s": ("at least 1.05", lambda ratio: ratio >= 1.05),
    "p99 ms": ("at most 0.9", lambda ratio: ratio <= 0.9),
    "ns/request": ("at most 0.95", lambda ratio: ratio <= 0.95),
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    limit = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > limit:
                sys.exit(f"no server at port {port} after 20 s")
            time.sleep(0.01)


def benchmark(port, under_way, requests):
    """Runs SET and GET; the rows by name."""
    command = ["redis-benchmark", "-p", port, "-c", CONNECTIONS, "-n", requests, "-P", under_way, "-t", "set,get", "--csv"]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=100)
    lines = [line for line in run.stdout.splitlines() if line.startswith('"')]
    rows = {row["test"]: row for row in csv.DictReader(lines)}
    if set(rows) != {"SET", "GET"}:
        sys.exit(f"redis-benchmark gave no figures: {run.stdout}{run.stderr}")
    return rows


def sample(binary, under_way):
    port = free_port()
    # It reports each connection that the client resets at its end.
    server = subprocess.Popen([binary, "--port", str(port)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    # Linux's clock of the processor time of a process.
    spent = lambda: time.clock_gettime_ns(~server.pid << 3 | 2)
    try:
        wait_for(port)
        benchmark(port, under_way, REQUESTS[under_way] // 10)
        before = spent()
        rows = benchmark(port, under_way, REQUESTS[under_way])
        figures = {"processor ns/request": (spent() - before) / (2 * REQUESTS[under_way])}
    finally:
        server.kill()
        server.wait()
    for kind, row in rows.items():
        figures[f"{kind} k/s"] = float(row["rps"]) / 1000
        figures[f"{kind} p99 ms"] = float(row["p99_latency_ms"])
    return figures


def main():
    rounds, servers = int(sys.argv[1]), sys.argv[2:]
    for under_way in REQUESTS:
        samples = []
        for number in range(rounds):
            order = list(range(len(servers)))
            if number % 2:
                order.reverse()
            by_server = {at: sample(servers[at], under_way) for at in order}
            samples.append([by_server[at] for at in range(len(servers))])
        print(f"{CONNECTIONS} connections, {under_way} under way for each, {rounds} rounds: median; ratio (least..most)")
        for name in sorted(samples[0][0]):
            bar, is_kept = next(bar for end, bar in BARS.items() if name.endswith(end))
            columns = [[row[at][name] for row in samples] for at in range(len(servers))]
            text = f"  {name:22} {statistics.median(columns[0]):9.2f}"
            for column in columns[1:]:
                ratios = [new / old for new, old in zip(column, columns[0])]
                ratio = statistics.median(ratios)
                text += f"   {statistics.median(column):9.2f} {ratio:.2f} ({min(ratios):.2f}..{max(ratios):.2f})"
                text += " kept" if is_kept(ratio) else " MISSED"
            print(f"{text}   bar: {bar}", flush=True)


if __name__ == "__main__":
    main()
