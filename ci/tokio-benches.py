"""Runs criterion's programs in OUT/tokio and OUT/ours by turns; see tokio-benches.sh.

tokio-benches.py OUT ROUNDS FILE...
"""

import collections
import glob
import os
import re
import statistics
import subprocess
import sys

UNITS = {"ps": 1e-3, "ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
OPTIONS = ["--bench", "--warm-up-time", "0.3", "--measurement-time", "1", "--sample-size", "20"]
TIME = re.compile(r"(\S.*?)?\s+time:\s+\[\S+ \S+ (\S+) (\S+) \S+ \S+\]")


def program(folder, file):
    built = glob.glob(f"{folder}/target/release/deps/{file}-*")
    return max((path for path in built if not path.endswith(".d")), key=os.path.getmtime)


def times(folder, file):
    """What each benchmark of the file took, in ns. A name may come twice: the second has a number."""
    run = subprocess.run(
        [program(folder, file), *OPTIONS], capture_output=True, text=True, timeout=300, cwd=folder, check=True
    )
    found, name = {}, file
    for line in run.stdout.splitlines():
        if match := TIME.match(line):
            name = match[1] or name
            found[name] = float(match[2]) * UNITS[match[3]]
        elif line and not line.startswith(" "):
            name = line.strip()
    return found


def main():
    out, rounds, files = sys.argv[1], int(sys.argv[2]), " ".join(sys.argv[3:]).split()
    for file in files:
        taken = collections.defaultdict(lambda: {"tokio": [], "ours": []})
        for _ in range(rounds):
            for side in ("tokio", "ours"):
                for name, ns in times(f"{out}/{side}", file).items():
                    taken[name][side].append(ns)
        for name, of in taken.items():
            theirs, ours = statistics.median(of["tokio"]), statistics.median(of["ours"])
            ratios = [ours / theirs for theirs, ours in zip(of["tokio"], of["ours"])]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            print(f"{file:18} {name:40} {theirs:14.0f} {ours:14.0f} {statistics.median(ratios):6.2f} ({spread})", flush=True)


main()
