#!/usr/bin/env bash
# rayon's shapes with the real rayon-core and with ours: processes interleaved, medians, ratios. By hand.
# The bar is a ratio of 1.05 at most, for each shape; the script says which keep it, and its status is 0 all the same.
#
#   ci/rayon-speed.sh [build|run|all] [rounds] [filter]
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all} rounds=${2:-5} filter=${3:-}
out=$PWD/target/rayon-speed
mkdir -p "$out"
if [ "$what" != run ]; then
    # Two copies, since each has a lock file of its own.
    for core in theirs ours; do
        mkdir -p "$out/$core"
        cp -r bench/rayon/. "$out/$core/"
        [ $core = theirs ] || printf '\n[patch.crates-io]\nrayon-core = { path = "%s/crates/rayon-core" }\n' "$PWD" >> "$out/$core/Cargo.toml"
        cargo build --release --manifest-path "$out/$core/Cargo.toml" --target-dir "$out/target-$core"
    done
fi
[ "$what" != build ] || exit 0
for workers in 1 2; do
    : > "$out/$workers.txt"
    for round in $(seq "$rounds"); do
        order="theirs ours"
        [ $((round % 2)) = 0 ] || order="ours theirs"
        for core in $order; do
            RAYON_NUM_THREADS=$workers timeout 60 "$out/target-$core/release/rayon-speed" "$filter" |
                sed "s/^/$core $round /" >> "$out/$workers.txt"
        done
    done
done
python3 - "$out" <<'EOF'
import statistics as st, sys
BAR = 1.05
ratios = []
for workers in 1, 2:
    times, digests = {}, {}
    for line in open(f"{sys.argv[1]}/{workers}.txt"):
        core, round, name, ns, digest = line.split()
        times.setdefault(name, {}).setdefault(core, []).append(int(ns))
        assert digests.setdefault(name, digest) == digest, f"{name}: different results"
    print(f"{workers} worker(s)        rayon        ours   ratio (median of rounds)")
    for name, by in times.items():
        ratio = st.median(o / t for o, t in zip(by["ours"], by["theirs"]))
        ratios.append(ratio)
        print(f"  {name:14} {st.median(by['theirs'])/1e6:8.2f} ms {st.median(by['ours'])/1e6:8.2f} ms {ratio:7.2f}   {'kept' if ratio <= BAR else 'MISSED'}")
missed = sum(ratio > BAR for ratio in ratios)
print(f"median ratio {st.median(ratios):.2f}, worst {max(ratios):.2f}; bar {BAR}: {missed} of {len(ratios)} MISSED")
EOF
