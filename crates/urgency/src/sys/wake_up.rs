//! How long a thread takes that is woken on another processor: measured, since it decides whether to wake one.
//!
//! From the waker's call to the woken thread's first instruction it is 10 µs on some machines, 30 on others, and 70
//! where the hypervisor has to be called and the processor slept. The measured wake-ups are of threads that are
//! called away from the waker's processor (`sched/switch/hand_off.rs`): for forks, for a stack that goes on, and for a
//! worker that was revoked elsewhere. There the waker knows that another processor is the worker's.
//!
//! Each of them moves the figure by a sixteenth of itself, up if it took longer and down if not. So the figure goes to
//! about the median, and one thread that waited for a time slice of another program changes little.

use super::{
    clock,
    thread::{self, Processors},
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module's text. In ticks; 0 as long as none is measured.
#[derive(Debug, Default)]
pub(crate) struct WakeUpTime(AtomicU64);

impl WakeUpTime {
    /// What it is taken for before one is measured, and where threads may not be sent to other processors.
    const USUAL: f64 = 30_000.0;
    /// Shorter than any that was seen.
    const LEAST: f64 = 5_000.0;
    /// A thread that takes longer than this waits for a processor.
    const MOST: f64 = 150_000.0;

    /// About what a wake-up takes, in ticks.
    pub(crate) fn ticks(&self) -> u64 {
        match self.0.load(Relaxed) {
            0 => clock::ticks(Self::USUAL),
            ticks => ticks,
        }
    }

    /// A wake-up took so many ticks. Several threads may learn at once, and one of them may be forgotten.
    pub(crate) fn learn(&self, took: u64) {
        let old = self.ticks();
        let new = if took > old {
            old + old / 16
        } else {
            old - old / 16
        };
        let (least, most) = (clock::ticks(Self::LEAST), clock::ticks(Self::MOST));
        self.0.store(new.clamp(least, most), Relaxed);
    }
}

/// Where a thread may run otherwise that was called to a processor, or away from one: see `protocol/home.rs`.
#[derive(Debug)]
pub(crate) struct Call {
    home: Processors,
    /// When the thread was called, if it was called away.
    away_since: Option<u64>,
}

impl Call {
    /// The thread, which sleeps, runs on the calling thread's processor only.
    pub(crate) fn here(tid: i32) -> Option<Self> {
        let home = thread::call_here(tid)?;
        Some(Call {
            home,
            away_since: None,
        })
    }

    /// It runs on any other processor.
    pub(crate) fn away(tid: i32) -> Option<Self> {
        let home = thread::send_away(tid)?;
        Some(Call {
            home,
            away_since: Some(clock::now()),
        })
    }

    /// The calling thread, which was called, may run everywhere again.
    pub(crate) fn free(&self) {
        thread::send_home(&self.home);
    }

    /// As [`Call::free`], of a thread that has just woken.
    pub(crate) fn answer(&self, time: &WakeUpTime) {
        if let Some(since) = self.away_since {
            time.learn(clock::now().saturating_sub(since));
        }
        self.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(took: impl Iterator<Item = f64>) -> f64 {
        let time = WakeUpTime::default();
        took.for_each(|took| time.learn(clock::ticks(took)));
        time.ticks() as f64 / clock::ticks_per_nanosecond()
    }

    #[test]
    fn the_figure_goes_to_the_median_from_both_sides() {
        for median in [10_000.0, 70_000.0] {
            // Each fifth wake-up waits for a time slice.
            let one = |n| {
                if n % 5 == 0 {
                    3e6
                } else {
                    median * (0.8 + 0.1 * (n % 5) as f64)
                }
            };
            let learnt = after((0..200).map(one));
            assert!(
                (0.7..1.6).contains(&(learnt / median)),
                "{learnt} of {median}"
            );
        }
    }

    #[test]
    fn a_busy_machine_does_not_make_it_longer_than_any_wake_up_takes() {
        let learnt = after((0..1000).map(|_| 4e6));
        assert!(learnt <= WakeUpTime::MOST * 1.01, "{learnt}");
        let back = after((0..1000).map(|n| if n < 500 { 4e6 } else { 20_000.0 }));
        assert!(back < 25_000.0, "{back}");
    }
}
