//! What the kernel lets this process do: a runtime tries it, and says how it went.

use super::finding::Finding;
use rustix::thread::{MembarrierQuery, membarrier_query};

pub fn findings() -> Vec<Finding> {
    let mut findings = of_a_runtime();
    findings.push(membarrier());
    findings
}

fn of_a_runtime() -> Vec<Finding> {
    let (real_time, niceness) = ("real-time polling", "raising threads");
    let runtime = urgency::Runtime::builder()
        .workers(1)
        .real_time_polling(true)
        .build();
    let stats = match runtime {
        Ok(runtime) => runtime.stats(),
        Err(error) => {
            let found = format!("no runtime could be built to find out: {error}");
            let enable = "raise the limits on threads and descriptors (ulimit -u, ulimit -n)";
            let all = [real_time, niceness].into_iter();
            return all
                .map(|name| Finding::missing(name, found.clone(), enable))
                .collect();
        }
    };
    vec![
        if stats.real_time {
            Finding::usable(
                real_time,
                "the thread that waits for events may use the real-time class",
            )
        } else {
            Finding::missing(
                real_time,
                "this process may not use the real-time class",
                "CAP_SYS_NICE, or RLIMIT_RTPRIO of 1 (`ulimit -r 1`, LimitRTPRIO=1 in a unit of systemd)",
            )
        },
        if stats.can_raise {
            Finding::usable(
                niceness,
                "a thread that was lowered for more urgent work comes back",
            )
        } else {
            Finding::missing(
                niceness,
                "a thread that was lowered for more urgent work stays lowered, and others take its place",
                "CAP_SYS_NICE, or RLIMIT_NICE of 20 (`ulimit -e 20`, LimitNICE=+0 in a unit of systemd)",
            )
        },
    ]
}

/// With it a thief makes all processors run a fence, and the owner of a deque needs none.
fn membarrier() -> Finding {
    let name = "membarrier";
    if membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED) {
        return Finding::usable(name, "an idle worker gets a fork without its owner's help");
    }
    Finding::missing(
        name,
        "another worker gets a fork at its owner's next scheduling point only",
        "a kernel with CONFIG_MEMBARRIER; in a sandbox, permit the system call `membarrier`",
    )
}
