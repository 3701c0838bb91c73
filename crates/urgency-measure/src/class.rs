//! How the threads that measure are scheduled: on which processors, in which class, how exactly their timers fire.
//!
//! A load client must not be starved by what it measures, or the wait for its own processor counts as the
//! server's latency. So its threads ask for the class SCHED_FIFO, which the kernel prefers to every normal
//! thread; that needs CAP_SYS_NICE or a limit RLIMIT_RTPRIO above 0. Where it is refused the threads stay
//! normal, and the outcome says so. The kernel takes a real-time thread that never sleeps off its processor
//! for 5 % of each second (`sched_rt_runtime_us`: measured here as pauses of 50 ms), so a thread that
//! [spins](Waiting::Spin) asks for the niceness -20 instead.

use clap::ValueEnum;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, Uid, geteuid, setuid};
use serde::Serialize;
use std::{fmt, io, str::FromStr};
use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// The priority of load clients in the class SCHED_FIFO.
pub const CLIENT: u8 = 10;
/// The priority of canaries, above all that is measured and above the clients.
pub const CANARY: u8 = 60;

/// The most niceness that there is.
const NICEST: u8 = 19;

/// The scheduling class to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// SCHED_FIFO where it is permitted; niceness -20 for threads that spin.
    RealTime,
    /// As the client was started.
    Normal,
}

/// What a client's threads do while there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// Sleep in the kernel until a reply comes or a request is due. For a client that shares its processors.
    Sleep,
    /// Look again and again: most exact, and costs no wake-ups (in a virtual machine, one costs more than a
    /// request), but each thread needs a processor of its own.
    Spin,
}

/// Processors by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Cpus(Vec<usize>);

impl Cpus {
    /// These processors.
    pub fn new(cpus: Vec<usize>) -> Self {
        Cpus(cpus)
    }

    /// Their numbers.
    pub fn numbers(&self) -> &[usize] {
        &self.0
    }

    /// The processors that the calling thread may use, ascending.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn allowed() -> io::Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(0))?;
        let is_set = |&cpu: &usize| set.is_set(cpu).unwrap_or(false);
        Ok(Cpus((0..CpuSet::count()).filter(is_set).collect()))
    }

    /// Each of them alone, in turn and without an end. There is at least one.
    pub fn in_turn(&self) -> impl Iterator<Item = Cpus> {
        self.0.iter().cycle().map(|&cpu| Cpus(vec![cpu]))
    }

    /// Binds the calling thread, and the threads that it starts from now on, to these processors.
    ///
    /// # Errors
    ///
    /// The system's, if none of them may be used.
    pub fn bind(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        for &cpu in &self.0 {
            set.set(cpu)?;
        }
        Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
    }
}

impl FromStr for Cpus {
    type Err = String;

    /// A list as `taskset -c` takes it, each processor once: `0`, `0,2`, `0-3`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "allowed: processor numbers below {}, each once, as in 0 or 0,2 or 0-3 (the lower one first)",
                CpuSet::count()
            )
        };
        let number = |text: &str| match text.parse::<usize>() {
            Ok(number) if number < CpuSet::count() => Ok(number),
            _ => Err(refuse()),
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => cpus.push(number(part)?),
                Some((first, last)) => match (number(first)?, number(last)?) {
                    (first, last) if first <= last => cpus.extend(first..=last),
                    _ => return Err(refuse()),
                },
            }
        }
        let is_again = |index: usize| cpus[..index].contains(&cpus[index]);
        if (0..cpus.len()).any(is_again) {
            return Err(refuse());
        }
        Ok(Cpus(cpus))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list: Vec<_> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&list.join(","))
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> String {
        cpus.to_string()
    }
}

/// Binds the calling thread, and the threads that it starts from now on, to the first processor that it may use.
///
/// # Panics
///
/// If the system refuses, which it does not for a processor that is allowed.
pub fn bind_to_one_processor() {
    let allowed = Cpus::allowed().expect("the affinity can be read");
    let first = allowed
        .in_turn()
        .next()
        .expect("this thread may run somewhere");
    first.bind().expect("an allowed processor is allowed");
}

/// Puts the calling thread into the class SCHED_FIFO with a priority from 1 to 99.
///
/// # Errors
///
/// Why that is refused, in words.
pub fn enter_real_time(priority: u8) -> Result<(), String> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let value = ThreadPriorityValue::try_from(priority).map_err(|why| why.to_string())?;
    become_(ThreadPriority::Crossplatform(value), policy)
}

/// Lets the calling thread's timers fire as exactly as the kernel can. Where that is refused they are up to 50 us
/// late, which a client's lag shows.
pub fn sharpen_timers() {
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Puts the calling thread, which is a client's, into `class`; returns what it got, in words.
pub fn enter(class: Class, waiting: Waiting) -> String {
    sharpen_timers();
    let normal = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    match (class, waiting) {
        (Class::Normal, _) => "normal".to_owned(),
        (Class::RealTime, Waiting::Spin) => match become_(ThreadPriority::Max, normal) {
            Ok(()) => "normal, nice -20".to_owned(),
            Err(refusal) => format!("normal (nice -20 refused: {refusal})"),
        },
        (Class::RealTime, Waiting::Sleep) => match enter_real_time(CLIENT) {
            Ok(()) => "SCHED_FIFO".to_owned(),
            Err(refusal) => format!("normal (SCHED_FIFO refused: {refusal})"),
        },
    }
}

/// Makes the calling thread as nice as the kernel knows, which takes no privilege.
///
/// # Panics
///
/// If the system refuses that all the same.
pub fn become_nice() {
    become_nice_by(NICEST);
}

/// Gives the calling thread this niceness, 0 to 19, which takes no privilege if it is not less nice by that.
///
/// # Panics
///
/// If it is above 19, or the system refuses it.
pub fn become_nice_by(niceness: u8) {
    assert!(
        niceness <= NICEST,
        "niceness {niceness}: at most {NICEST} is allowed"
    );
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    // The other scale: 99 is niceness -20, 0 is niceness 19. The middle of what stands for a niceness: at the edge the
    // crate's floating-point number decides.
    let nicer = 2 * (u32::from(niceness) + 20) + 1;
    let urgency = 99 - ((nicer * 99 + 39) / (2 * 39)).min(99);
    let value = ThreadPriorityValue::try_from(urgency as u8).expect("it is below 99");
    become_(ThreadPriority::Crossplatform(value), policy).expect("any thread may become nicer");
}

/// Makes this process one of a user without privileges, if it is the superuser's.
///
/// # Panics
///
/// If the system refuses that to the superuser.
pub fn drop_privileges() {
    const NOBODY: Uid = Uid::from_raw(65534);
    if geteuid().is_root() {
        setuid(NOBODY).expect("the superuser may become any user");
    }
}

fn become_(priority: ThreadPriority, policy: ThreadSchedulePolicy) -> Result<(), String> {
    let become_it = set_thread_priority_and_policy(thread_native_id(), priority, policy);
    become_it.map_err(|refusal| match refusal {
        thread_priority::Error::OS(code) => io::Error::from_raw_os_error(code).to_string(),
        other => format!("{other:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lists_are_read_as_taskset_reads_them() {
        let cpus: Cpus = "0,2-4".parse().expect("a list");
        assert_eq!(cpus.numbers(), [0, 2, 3, 4]);
        assert_eq!(cpus.to_string(), "0,2,3,4");
        for text in ["", "x", "3-1", "0,3-1", "1,", "99999", "0,0", "0-2,1"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
    }
}
