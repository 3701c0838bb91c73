//! A pool whose first thread the system refuses.
#![cfg(target_os = "linux")]

use rayon_core::ThreadPoolBuilder;
use std::{env, mem, process::Command};

const NAME: &str = "a_pool_that_gets_no_thread_is_not_built";

/// Says that this process is the one whose memory is limited.
const LIMITED: &str = "URGENCY_TEST_LIMITED";

#[test]
fn a_pool_that_gets_no_thread_is_not_built() {
    if env::var_os(LIMITED).is_some() {
        return build_without_memory();
    }
    let program = env::current_exe().unwrap();
    let limited = "ulimit -v 400000 && exec \"$0\" \"$@\"";
    let mut child = Command::new("sh");
    child.args(["-c", limited]).arg(program);
    child.args(["--exact", NAME, "--test-threads=1", "--nocapture"]);
    assert!(child.env(LIMITED, "1").status().unwrap().success());
}

/// Less than the two megabytes of a stack are left, which are more than the rest needs.
fn build_without_memory() {
    let mut last = None;
    loop {
        let mut bytes = Vec::<u8>::new();
        if bytes.try_reserve_exact(1 << 20).is_err() {
            break;
        }
        mem::forget(last.replace(bytes));
    }
    drop(last);
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    assert!(pool.is_err(), "without a thread");
}
