//! What the operating system says about this process and the machine: CPU time, memory, threads, limits, the
//! real-time class.
//!
//! Memory is `VmHWM` of `/proc/self/status`, not `ru_maxrss`: the latter is inherited through fork and exec,
//! so a child would report the harness's peak as its own.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::{TimeSpec, TimeVal};
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use nix::unistd::{Pid, Uid, geteuid, setuid};
use std::time::Duration;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)
}

fn usage(who: UsageWho) -> Duration {
    let usage = getrusage(who).expect("getrusage has no failure for these arguments");
    duration(usage.user_time()) + duration(usage.system_time())
}

/// CPU time, user and system, that all threads of this process have used.
pub fn cpu_time() -> Duration {
    usage(UsageWho::RUSAGE_SELF)
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("threads have a clock");
    Duration::from(time)
}

/// The monotonic clock, in nanoseconds: the same for all processes, and the one behind `Instant`.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has this clock");
    Duration::from(time).as_nanos() as u64
}

/// CPU time of all waited-for children and theirs.
pub fn children_cpu_time() -> Duration {
    usage(UsageWho::RUSAGE_CHILDREN)
}

/// How often threads of this process went to sleep so far.
pub fn sleeps() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .expect("getrusage has no failure for these arguments")
        .voluntary_context_switches() as u64
}

fn status(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .and_then(|value| value.split_whitespace().next()?.parse().ok())
        .unwrap_or_else(|| panic!("/proc/self/status has no number in its field {field}"))
}

/// Peak resident memory of this process, in bytes.
pub fn peak_rss() -> f64 {
    status("VmHWM") * 1024.0
}

/// Resident memory of this process now, in bytes.
pub fn rss() -> f64 {
    status("VmRSS") * 1024.0
}

/// Threads of this process now.
pub fn threads() -> f64 {
    status("Threads")
}

/// CPU time that everything on this machine has used since boot, and that the host took (steal), over all processors.
pub fn machine_busy() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal, in hundredths of a second.
    let busy: u64 = fields
        .iter()
        .take(8)
        .enumerate()
        .filter(|(index, _)| ![3, 4].contains(index))
        .map(|(_, ticks)| ticks)
        .sum();
    Duration::from_millis(busy * 10)
}

/// Processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Raises the limit on open descriptors as far as it goes and checks that `needed` fit.
pub fn allow_descriptors(needed: u64) {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("getrlimit cannot fail");
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("up to the hard limit is allowed");
    }
    assert!(
        hard >= needed,
        "this experiment needs {needed} open descriptors, the hard limit is {hard}: raise it with `ulimit -Hn {needed}`"
    );
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

/// Puts the calling thread into the class SCHED_FIFO; false where that is not permitted.
pub fn enter_real_time_class() -> bool {
    enter_real_time_class_at(10)
}

/// The same with a priority from 1 to 99.
pub fn enter_real_time_class_at(priority: u8) -> bool {
    let Ok(priority) = ThreadPriorityValue::try_from(priority) else {
        return false;
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let class = ThreadPriority::Crossplatform(priority);
    set_thread_priority_and_policy(thread_native_id(), class, policy).is_ok()
}

/// Makes the calling thread as nice as the kernel knows, which takes no privilege.
pub fn become_nice() {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy)
        .expect("any thread may become nicer");
}

/// Makes this process one of a user without privileges, if it is the superuser's.
pub fn drop_privileges() {
    const NOBODY: Uid = Uid::from_raw(65534);
    if geteuid().is_root() {
        setuid(NOBODY).expect("the superuser may become any user");
    }
}

/// Binds the calling thread, and the threads that it starts from now on, to the first processor that it may use.
pub fn bind_to_one_processor() {
    bind_to_processor(allowed_processors()[0]);
}

/// Binds them to this one of the [`allowed_processors`].
pub fn bind_to_processor(processor: usize) {
    let mut one = CpuSet::new();
    one.set(processor).expect("the processor was in a set");
    sched_setaffinity(Pid::from_raw(0), &one)
        .expect("a subset of the allowed processors is allowed");
}

/// The processors that the calling thread may use.
pub fn allowed_processors() -> Vec<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("the affinity can be read");
    let is_allowed = |&processor: &usize| allowed.is_set(processor).unwrap_or(false);
    let processors: Vec<_> = (0..CpuSet::count()).filter(is_allowed).collect();
    assert!(!processors.is_empty(), "this thread may run somewhere");
    processors
}
