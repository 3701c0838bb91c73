//! What the operating system says about this process: clocks, processor time, memory, threads, limits.
//!
//! Memory is `VmHWM` of `/proc/self/status`, not `ru_maxrss`: the latter is inherited through fork and exec,
//! so a child would report the harness's peak as its own.

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use std::io;
use std::time::Duration;

fn clock(id: ClockId) -> Duration {
    Duration::from(clock_gettime(id).expect("every system has this clock"))
}

/// CPU time, user and system, that all threads of this process have used.
pub fn cpu_time() -> Duration {
    clock(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_time() -> Duration {
    clock(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// The monotonic clock, in nanoseconds: the same for all processes, and the one behind `Instant`.
pub fn now_ns() -> u64 {
    clock(ClockId::CLOCK_MONOTONIC).as_nanos() as u64
}

/// How often threads of this process went to sleep so far.
pub fn sleeps() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("getrusage has no failure for this");
    usage.voluntary_context_switches() as u64
}

/// A number of `/proc/<process>/status`, if the process lives.
pub fn status(process: &str, field: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.to_owned());
    let value = text.lines().find_map(value)?;
    value.split_whitespace().next()?.parse().ok()
}

fn own(field: &str) -> f64 {
    let value = status("self", field);
    value.unwrap_or_else(|| panic!("/proc/self/status has no number in its field {field}"))
}

/// Peak resident memory of this process, in bytes.
pub fn peak_rss() -> f64 {
    own("VmHWM") * 1024.0
}

/// Resident memory of this process now, in bytes.
pub fn rss() -> f64 {
    own("VmRSS") * 1024.0
}

/// Threads of this process now.
pub fn threads() -> f64 {
    own("Threads")
}

/// Processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Raises the limit on open descriptors, which children inherit, if it is below `needed`.
///
/// # Errors
///
/// That the hard limit is below, or why the system refuses.
pub fn allow_descriptors(needed: u64) -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        return Err(io::Error::other(format!(
            "{needed} open descriptors are needed, the hard limit is {hard}; raise it with `ulimit -Hn {needed}` or use fewer connections"
        )));
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, needed, hard)?)
}

/// Sleeps until a time of the monotonic clock.
pub fn sleep_until_ns(time: u64) {
    let time = TimeSpec::from_duration(Duration::from_nanos(time));
    // A signal ends it early; the caller looks at the clock.
    let _ = clock_nanosleep(
        ClockId::CLOCK_MONOTONIC,
        ClockNanosleepFlags::TIMER_ABSTIME,
        &time,
    );
}

/// How long from now until a time of the monotonic clock; zero if it has passed.
pub fn until(time: u64) -> Duration {
    Duration::from_nanos(time.saturating_sub(now_ns()))
}
