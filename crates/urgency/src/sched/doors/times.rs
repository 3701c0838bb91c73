//! Where the time of the workers went, up to the moment of the look.
//!
//! A worker's counters grow when a span of time ends (`account/counters.rs`). What is open still is added by the thread
//! that looks: the worker's last stamp is there, and the clock. The worker writes nothing for it.
//!
//! # Rules
//!
//! 1. Of two kinds of open spans another thread can tell to which counter they will go. A stack's *visit* to user code
//!    is running, at the level that its worker has announced: the worker's stamp and counters stay as they are for as
//!    long as the visit lasts. A worker in the idle set sleeps: the same is true until it is claimed. A worker inside
//!    the scheduler may have stamped a span that it has not counted yet. So what is open there (scheduling, searching)
//!    counts when it ends.
//! 2. A look reads the clock, then the spans, the counters, and the spans once more. A span that is the same both times
//!    was open all the time. So none of the counters has it, and it ends at a later reading of the clock: it is added,
//!    up to the look's reading. Any other span is not.
//! 3. So no look finds more than the truth, and the truth only grows. An earlier look may have found more, where this
//!    one could not tell: [`Shown`](crate::account::shown::Shown) keeps the most. So of two looks the later one never
//!    shows less, and no span is counted twice.
//! 4. A span counts at the level that the worker announced when it began, also if the stack is raised meanwhile. (At
//!    the level of its end, a snapshot would have shown it at one level, and the next one at another.)

use crate::protocol::{attention::Visit, fence};
use crate::sched::{
    job::Job,
    worker::{NO_LEVEL, Worker},
};
use crate::sys::{
    clock,
    primitives::atomic::{Ordering, fence as barrier},
};

/// A span of a worker's time that is open, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Runs(Visit, u8, u64),
    Sleeps(u64),
}

/// What one worker did so far, in ticks.
#[derive(Debug)]
pub(crate) struct Times {
    /// In user code of this job, by level.
    pub(crate) running: Vec<u64>,
    pub(crate) asleep: u64,
}

impl Job {
    /// By worker.
    pub(crate) fn times(&self) -> Vec<Times> {
        let now = clock::now();
        let workers = || self.core.workers.iter().map(|worker| &**worker);
        let open: Vec<_> = workers().map(|worker| self.open_at(worker)).collect();
        let counted = |worker: &Worker| Times {
            running: (self.account_of(worker))
                .map(|did| did.running.get())
                .collect(),
            asleep: worker.counters.asleep.get(),
        };
        let mut times: Vec<_> = workers().map(counted).collect();
        // A span ends with a locked instruction, and is counted behind it. On x86 that is enough. Elsewhere the count
        // may be seen first.
        barrier(Ordering::Acquire);
        if !cfg!(target_arch = "x86_64") {
            fence::heavy();
        }
        for ((worker, open), times) in workers().zip(open).zip(&mut times) {
            if self.open_at(worker) == open {
                times.add(open, now);
            }
            let first = worker.id * (self.levels.len() + 1);
            times.each().enumerate().for_each(|(place, ticks)| {
                *ticks = self.shown.show(first + place, *ticks);
            });
        }
        times
    }

    /// Rule 1.
    fn open_at(&self, worker: &Worker) -> Option<Span> {
        let visits = |holder: &crate::sched::stack::Stack| holder.attention.visit_with(worker.id);
        if let Some(visit) = self.core.holder(worker).and_then(visits) {
            let level = worker.level_in(self);
            (level != NO_LEVEL).then(|| Span::Runs(visit, level, worker.since()))
        } else {
            let is_idle = self.core.idle.contains(worker.id);
            is_idle.then(|| Span::Sleeps(worker.since()))
        }
    }
}

impl Times {
    fn add(&mut self, open: Option<Span>, now: u64) {
        match open {
            Some(Span::Runs(_, level, since)) => {
                self.running[usize::from(level)] += now.saturating_sub(since);
            }
            Some(Span::Sleeps(since)) => self.asleep += now.saturating_sub(since),
            None => {}
        }
    }

    fn each(&mut self) -> impl Iterator<Item = &mut u64> {
        self.running.iter_mut().chain([&mut self.asleep])
    }
}

#[cfg(test)]
mod tests {
    use crate::Runtime;
    use std::{
        hint,
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        thread,
        time::{Duration, Instant},
    };

    /// Looks come while spans end. If one had found a span and its count, it would show more than was counted.
    #[test]
    fn what_was_shown_of_spans_is_what_was_counted_in_the_end() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (job, over) = (runtime.job(), &AtomicBool::new(false));
        let is_idle = || job.core.idle.contains(0);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !over.load(SeqCst) {
                    job.times();
                }
            });
            for round in 0..1000 {
                let closure = runtime.spawn_fn(|| {
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_micros(30) {
                        hint::spin_loop();
                    }
                });
                closure.get().unwrap();
                while !is_idle() {
                    hint::spin_loop();
                }
                let shown = job.times()[0].running[0];
                let counted = job.at(&job.core.workers[0], 0).running.get();
                if shown != counted {
                    over.store(true, SeqCst);
                }
                assert_eq!(shown, counted, "in round {round}");
            }
            over.store(true, SeqCst);
        });
    }
}
