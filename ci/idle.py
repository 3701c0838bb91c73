#!/usr/bin/env python3
"""Finds processors that idle while a thread waits for another one, by the kernel's trace of its scheduler.

    ci/idle.py [--after SECONDS] [--for SECONDS] [--save FILE] COMMAND ..

    ci/idle.py target/release/urgency-bench --one latency-1ms-2/ours-get

Traces all threads of the machine while the command runs (from 1 s after its start, for 2 s, if not told otherwise).
Prints for each processor how long it was idle, how long it was idle beside a thread that had waited for 50 us or more
for another processor, which threads these were, and what ran there meanwhile. FILE gets the trace. Needs root, and
tracefs at /sys/kernel/tracing (`mount -t tracefs nodev /sys/kernel/tracing`).
"""
import argparse
import collections
import pathlib
import re
import signal
import subprocess
import sys
import time

TRACING = pathlib.Path("/sys/kernel/tracing")
EVENTS = "sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new sched:sched_migrate_task"
# A wake-up takes some microseconds until its thread runs, so a brief wait beside an idle processor is no waste.
PATIENCE = 50e-6
LINE = re.compile(r"\[(\d+)\]\s+\S+\s+([\d.]+): (sched_\w+): (.*)")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) .* prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) ")
WAKE = re.compile(r"comm=(.*) pid=(\d+) prio=\d+ (?:orig_cpu=\d+ dest_cpu|target_cpu)=(\d+)")


def write(name, text):
    (TRACING / name).write_text(text)


def record(options):
    """The trace's lines, of a run of the command."""
    write("tracing_on", "0")
    write("current_tracer", "nop")
    write("buffer_size_kb", "65536")
    write("set_event", EVENTS)
    write("trace", "")
    command = subprocess.Popen(options.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(options.after)
    write("tracing_on", "1")
    time.sleep(options.seconds)
    write("tracing_on", "0")
    ended = command.poll()
    lines = (TRACING / "trace").read_text(errors="replace").splitlines()
    write("set_event", "")
    write("trace", "")
    if ended is not None:
        sys.exit(f"the command ended (code {ended}) before {options.after + options.seconds} s:\n{command.stderr.read()}")
    command.send_signal(signal.SIGTERM)
    try:
        command.wait(5)
    except subprocess.TimeoutExpired:
        command.kill()
    return lines


def spans(lines):
    """Yields from each event to the next: (begin, end, {processor: comm or None}, [(comm, processor, since)])."""
    running, waiting, last = {}, {}, None
    for line in lines:
        found = LINE.search(line)
        if not found:
            continue
        processor, now, event, rest = int(found[1]), float(found[2]), found[3], found[4]
        if last is not None:
            yield last, now, running, list(waiting.values())
        last = now
        if event == "sched_switch":
            before, before_id, state, after, after_id = SWITCH.search(rest).groups()
            if before_id != "0":
                waiting.pop(before_id, None)
                if state.startswith("R"):
                    waiting[before_id] = (before, processor, now)
            waiting.pop(after_id, None)
            running[processor] = None if after_id == "0" else after
        else:
            comm, thread, target = WAKE.search(rest).groups()
            if event != "sched_migrate_task" or thread in waiting:
                since = waiting[thread][2] if thread in waiting else now
                waiting[thread] = (comm, int(target), since)


def report(lines):
    idle, wasted, whole = collections.Counter(), collections.Counter(), 0.0
    causes, lengths, open_since = collections.Counter(), [], {}
    for begin, end, running, waiting in spans(lines):
        whole += end - begin
        for processor, comm in running.items():
            if comm is not None:
                open_since.pop(processor, None)
                continue
            idle[processor] += end - begin
            late = [w for w in waiting if w[1] != processor and w[2] < end - PATIENCE and running.get(w[1]) is not None]
            if not late:
                open_since.pop(processor, None)
                continue
            name, where, since = min(late, key=lambda w: w[2])
            from_ = max(begin, since + PATIENCE)
            wasted[processor] += end - from_
            causes[(name, running[where])] += end - from_
            if processor not in open_since:
                open_since[processor] = len(lengths)
                lengths.append([from_, end])
            lengths[open_since[processor]][1] = end
    print(f"{whole:.2f} s traced")
    for processor in sorted(idle):
        print(f"processor {processor}: idle {idle[processor] / whole:6.1%}, beside a thread that waits {wasted[processor] / whole:6.2%}")
    for (name, there), length in causes.most_common(8):
        print(f"  {length / whole:6.2%}  {name} waits, {there} runs there")
    for begin, end in sorted(lengths, key=lambda span: span[0] - span[1])[:5]:
        print(f"  longest: {1e3 * (end - begin):7.2f} ms at {begin:.6f}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--after", type=float, default=1)
    options.add_argument("--for", type=float, default=2, dest="seconds")
    options.add_argument("--save", type=pathlib.Path)
    options.add_argument("command", nargs=argparse.REMAINDER)
    options = options.parse_args()
    if not options.command:
        sys.exit("ci/idle.py: name a command (see --help)")
    if not (TRACING / "trace").exists():
        sys.exit(f"ci/idle.py: there is no {TRACING}/trace: be root, and mount -t tracefs nodev {TRACING}")
    lines = record(options)
    if options.save:
        options.save.write_text("\n".join(lines))
    report(lines)


if __name__ == "__main__":
    main()
