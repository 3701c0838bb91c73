//! Stops the build where the library cannot run, before the compiler lists each system call that is missing there.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let platform = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if platform != "linux" {
        println!(
            "cargo::error=urgency runs on Linux only, not on {platform}: its reactor is made of epoll, eventfd and \
             timerfd, its scheduler uses membarrier and the kernel's scheduling classes (docs/limits.md)"
        );
    }
}
