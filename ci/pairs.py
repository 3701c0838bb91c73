#!/usr/bin/env python3
"""Compares two builds of urgency-bench: whole runs in pairs, in random order within a pair.

    ci/pairs.py ROUNDS OLD NEW NAME/CONTENDER:KEY[,KEY..] ..

    ci/pairs.py 5 /tmp/bench-of-before target/release/urgency-bench mixed/ours:p50_ns,p99_ns fib-2/ours:time_ns

Prints for each key both medians, the median of the paired ratios NEW / OLD, and their spread. The raw samples go to
results/pairs-TIME.json, with the commands. A run takes all processors: measure alone.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import time


def sample(binary, name):
    run = subprocess.run([binary, "--one", name], capture_output=True, text=True, timeout=900)
    if run.returncode != 0:
        sys.exit(f"{binary} --one {name} failed:\n{run.stderr}")
    return json.loads(run.stdout.strip().splitlines()[-1])


def pair(old, new, name):
    order = [("old", old), ("new", new)]
    random.shuffle(order)
    return {which: sample(binary, name) for which, binary in order}


def report(name, key, pairs):
    if any(key not in side for both in pairs for side in both.values()):
        sys.exit(f"{name} has no {key}; it has {', '.join(sorted(pairs[0]['old']))}")
    old, new = ([both[which][key] for both in pairs] for which in ("old", "new"))
    medians = f"{statistics.median(old):.4g} -> {statistics.median(new):.4g}"
    ratios = [b / a for a, b in zip(old, new) if a]
    if ratios:
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"{name} {key}: {medians}, ratio {statistics.median(ratios):.3f} ({spread}; {len(ratios)} pairs)")
    else:
        print(f"{name} {key}: {medians}, no ratio: the old one is 0")


def main():
    if len(sys.argv) < 5 or not sys.argv[1].isdigit() or sys.argv[1] == "0":
        sys.exit(__doc__)
    rounds, (old, new) = int(sys.argv[1]), sys.argv[2:4]
    rows = [row.partition(":") for row in sys.argv[4:]]
    wrong = [name for name, _, keys in rows if not keys or "/" not in name]
    if wrong:
        sys.exit(f"NAME/CONTENDER:KEY is missing in {', '.join(wrong)}")
    samples = {name: [] for name, _, _ in rows}
    os.makedirs("results", exist_ok=True)
    path = f"results/pairs-{int(time.time())}.json"
    for _ in range(rounds):
        for name in samples:
            samples[name].append(pair(old, new, name))
        with open(path, "w") as raw:
            json.dump({"command": sys.argv, "samples": samples}, raw)
    for name, _, keys in rows:
        for key in keys.split(","):
            report(name, key, samples[name])
    print(f"raw samples: {path}")


main()
