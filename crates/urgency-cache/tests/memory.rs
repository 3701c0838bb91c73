//! The memory of the process, as the kernel counts it, against the limit of the store.
//!
//! One test, for it looks at the whole process.

mod common;

use common::Running;
use std::{fs, thread, time::Duration};
use urgency_cache::store::Limits;

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 64 * MIB;
/// Threads, their stacks, connections, and the buffers that are kept for large values.
const REST: u64 = 40 * MIB;
/// Each cycle stores the limit several times over, so that pages go from shard to shard.
const CYCLES: u64 = 12;
const VALUES: u64 = 200;
const VALUE: usize = 1_000_000;

/// Resident memory of this process.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

/// Waits until no more than `most` is resident.
fn wait_for(most: u64, why: &str) {
    for _ in 0..4000 {
        if resident() <= most {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("{} MiB of {} {why}", resident() / MIB, most / MIB);
}

#[test]
fn large_values_take_the_limit_and_no_more_and_a_flush_or_a_lower_limit_gives_it_back() {
    let limits = Limits {
        memory: LIMIT,
        ..Limits::default()
    };
    let running = Running::with(Default::default(), &limits);
    let mut client = running.client();
    let value = "x".repeat(VALUE);
    let mut random = fastrand::Rng::with_seed(1);
    client.ask("mn\r\n", "MN\r\n");
    let base = resident();
    let mut fill = |client: &mut common::Client| {
        for _ in 0..VALUES {
            let key = random.u32(..20_000);
            client.send(format!("set k{key} 0 0 {VALUE} noreply\r\n{value}\r\n"));
        }
        client.ask("mn\r\n", "MN\r\n");
    };
    for cycle in 0..CYCLES {
        fill(&mut client);
        let most = base + LIMIT + REST;
        wait_for(most, &format!("are resident after cycle {cycle}"));
        assert!(client.stat("allocated_bytes") <= LIMIT);
    }
    let items = client.stat("curr_items");
    assert!(items * VALUE as u64 > LIMIT / 2, "{items} items");
    client.ask("flush_all\r\n", "OK\r\n");
    wait_for(base + LIMIT / 4 + REST, "are resident after a flush");
    fill(&mut client);
    wait_for(base + LIMIT + REST, "are resident when it is full again");
    client.ask("cache_memlimit 12\r\n", "OK\r\n");
    let most = base + 12 * MIB + LIMIT / 16 + REST;
    wait_for(most, "are resident after the limit was lowered");
    client.ask("mn\r\n", "MN\r\n");
}
