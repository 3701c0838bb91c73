//! How the client's threads are scheduled: on which processors, in which class, how exactly their timers fire.
//!
//! A load client must not be starved by what it measures, or the wait for its own processor counts as the
//! server's latency. So its threads ask for the class SCHED_FIFO, which the kernel prefers to every normal
//! thread; that needs CAP_SYS_NICE or a limit RLIMIT_RTPRIO above 0. Where it is refused the threads stay
//! normal, and the outcome says so. The kernel takes a real-time thread that never sleeps off its processor
//! for 5 % of each second (`sched_rt_runtime_us`: measured here as pauses of 50 ms), so a thread that
//! [spins](crate::Waiting::Spin) asks for the niceness -20 instead.

use crate::Waiting;
use clap::ValueEnum;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use serde::Serialize;
use std::num::NonZeroU64;
use std::{fmt, str::FromStr};
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// The scheduling class to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// SCHED_FIFO where it is permitted; niceness -20 for threads that spin.
    RealTime,
    /// As the client was started.
    Normal,
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
    pub fn allowed() -> std::io::Result<Self> {
        let set = sched_getaffinity(None)?;
        Ok(Cpus(
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect(),
        ))
    }

    /// Binds the calling thread, and the threads that it starts from now on, to these processors.
    ///
    /// # Errors
    ///
    /// The system's, if none of them may be used.
    pub fn bind(&self) -> std::io::Result<()> {
        let mut set = CpuSet::new();
        for &cpu in &self.0 {
            set.set(cpu);
        }
        Ok(sched_setaffinity(None, &set)?)
    }
}

impl FromStr for Cpus {
    type Err = String;

    /// A list as `taskset -c` takes it, each processor once: `0`, `0,2`, `0-3`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "allowed: processor numbers below {}, each once, as in 0 or 0,2 or 0-3 (the lower one first)",
                CpuSet::MAX_CPU
            )
        };
        let number = |text: &str| match text.parse::<usize>() {
            Ok(number) if number < CpuSet::MAX_CPU => Ok(number),
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

/// Puts the calling thread into `class`; returns what it got, in words.
pub fn enter(class: Class, waiting: Waiting) -> String {
    // Where the slack cannot be set, sends come up to 50 us late, and the client's lag shows it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    if class == Class::Normal {
        return "normal".to_owned();
    }
    if waiting == Waiting::Spin {
        // On Linux this is about the calling thread only.
        return match setpriority_process(None, -20) {
            Ok(()) => "normal, nice -20".to_owned(),
            Err(refusal) => format!("normal (nice -20 refused: {refusal})"),
        };
    }
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let lowest = thread_priority::ThreadPriority::Min;
    match set_thread_priority_and_policy(thread_native_id(), lowest, fifo) {
        Ok(()) => "SCHED_FIFO".to_owned(),
        Err(thread_priority::Error::OS(code)) => format!(
            "normal (SCHED_FIFO refused: {})",
            std::io::Error::from_raw_os_error(code)
        ),
        Err(other) => format!("normal (SCHED_FIFO refused: {other:?})"),
    }
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
