//! Whether relief must look at the busy workers, and how soon: the state of the relief timer.
//!
//! - OFF: nothing waits, or an idle worker or a searcher will come to what waits.
//! - SELDOM: the same, and a fork was stolen. A stack may sleep until forks have run that it keeps to itself. So the
//!   timer expires after long (`rescue/hidden.rs`). For all else it counts as not set.
//! - LATE: nothing needs a look within a period. All that waits is forks of stacks that run (their deques are in the
//!   pool), and no worker serves anything less urgent: the stacks come to their own forks themselves. Or a look has
//!   found that the threads with workers run. Or a worker was revoked for an event, which is brief as a rule, and no
//!   worker lacks what its stack forked. So the timer expires only after some periods.
//! - SOON: something else waits. The timer expires within a period.
//! - LIGHT: as SOON, and an insertion without a barrier (`sched/serve/insert.rs`) relies on it. Only an expiry of LIGHT
//!   owes it the barrier, which costs each processor 6 to 20 µs.
//!
//! Only an expiry switches the timer off. A thread that finds that something waits arms it first, and then sets the
//! driver's timer. It may be brought forward at any time, and the driver's timer is then set anew. A timer that
//! expires when it was not meant to causes one look in vain.
//!
//! # Named races
//!
//! - *Arm under expiry*: an expiry switches the driver's timer off first, then this state. A thread that finds the
//!   state off must find the driver's timer off, too. Otherwise it would leave that timer as it is, and none would
//!   expire any more. So an expiry releases, and what arms acquires.
//! - *Arm behind another*: a thread that finds the timer armed leaves the driver's timer to the thread that armed it.
//!   The expiry to come may be earlier than that thread's, and must see what the first one wrote before. So [`arm`],
//!   [`arm_light`], [`arm_held`] and [`arm_seldom`] write in any case, and release; an expiry acquires. [`arm_late`]
//!   hands over only where it sets the timer. Its caller may then find the driver's timer set for an earlier time, and
//!   leave it, too.
//! - *A worker that comes against an expiry*: what a thread wrote before it found the timer set must be seen by the
//!   expiry, though the thread writes nothing to the timer. So the thread writes, has a full barrier, and then looks
//!   whether the timer [is set]; an expiry switches the timer off, has a full barrier, and then looks. One of the two
//!   sees the other. The expiry looks at the jobs that there are then: of a list that is older than the barrier, the
//!   thread's job might be missing.
//!
//! [is set]: ReliefTimer::is_set
//! [`arm`]: ReliefTimer::arm
//! [`arm_light`]: ReliefTimer::arm_light
//! [`arm_held`]: ReliefTimer::arm_held
//! [`arm_seldom`]: ReliefTimer::arm_seldom
//! [`arm_late`]: ReliefTimer::arm_late

use crate::sys::primitives::atomic::{AtomicU8, Ordering, fence};

const OFF: u8 = 0;
const SELDOM: u8 = 1;
const LATE: u8 = 2;
const SOON: u8 = 3;
const LIGHT: u8 = 4;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct ReliefTimer(AtomicU8);

impl ReliefTimer {
    pub(crate) fn new() -> Self {
        ReliefTimer(AtomicU8::new(OFF))
    }

    /// Whether the timer expires within a period.
    #[inline]
    pub(crate) fn is_soon(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= SOON
    }

    /// As [`ReliefTimer::is_soon`], and its expiry brings a barrier.
    #[inline]
    pub(crate) fn is_light(&self) -> bool {
        self.0.load(Ordering::Relaxed) == LIGHT
    }

    /// Whether the timer expires after some periods.
    #[inline]
    pub(crate) fn is_late(&self) -> bool {
        self.0.load(Ordering::Relaxed) == LATE
    }

    /// Whether the timer expires within some periods, and that expiry sees what the caller wrote before its full
    /// barrier.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= LATE
    }

    /// Whether the timer expires at some time: a thread has to be in the poller then.
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) != OFF
    }

    /// Whether the caller has to set the timer.
    pub(crate) fn arm(&self) -> bool {
        self.0.fetch_max(SOON, Ordering::AcqRel) < SOON
    }

    /// As [`ReliefTimer::arm`], for an insertion without a barrier.
    pub(crate) fn arm_light(&self) -> bool {
        self.0.fetch_max(LIGHT, Ordering::AcqRel) < SOON
    }

    /// As [`ReliefTimer::arm`], for after some periods.
    pub(crate) fn arm_late(&self) -> bool {
        let later = |seen: u8| (seen < LATE).then_some(LATE);
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, later)
            .is_ok()
    }

    /// As [`ReliefTimer::arm_late`], and an expiry that comes later sees what the caller wrote before.
    pub(crate) fn arm_held(&self) -> bool {
        self.0.fetch_max(LATE, Ordering::AcqRel) < LATE
    }

    /// As [`ReliefTimer::arm_held`], for after long.
    pub(crate) fn arm_seldom(&self) -> bool {
        self.0.fetch_max(SELDOM, Ordering::AcqRel) < SELDOM
    }

    /// The timer expired. Whether an insertion without a barrier relies on it.
    pub(crate) fn expire(&self) -> bool {
        let was_light = self.0.swap(OFF, Ordering::AcqRel) == LIGHT;
        fence(Ordering::SeqCst);
        was_light
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_late_timer_can_be_brought_forward_and_not_put_off() {
        let relief_timer = ReliefTimer::new();
        assert!(relief_timer.arm_late() && relief_timer.is_late() && relief_timer.is_set());
        assert!(!relief_timer.arm_late(), "the timer is set");
        assert!(relief_timer.arm() && relief_timer.is_soon());
        assert!(!relief_timer.arm() && !relief_timer.arm_late() && relief_timer.is_soon());
        assert!(!relief_timer.expire() && !relief_timer.is_set());
        assert!(relief_timer.arm_light() && relief_timer.is_soon() && relief_timer.is_light());
        assert!(
            !relief_timer.arm() && relief_timer.expire(),
            "the barrier is owed"
        );
        assert!(relief_timer.arm() && !relief_timer.arm_light() && relief_timer.expire());
        assert!(relief_timer.arm_late() && !relief_timer.expire());
        assert!(relief_timer.arm_held() && !relief_timer.arm_held() && relief_timer.is_late());
        assert!(!relief_timer.arm_seldom() && !relief_timer.expire());
        for arm in [ReliefTimer::arm_late, ReliefTimer::arm_held] {
            assert!(relief_timer.arm_seldom() && !relief_timer.arm_seldom());
            assert!(
                !relief_timer.is_set() && arm(&relief_timer),
                "brought forward"
            );
            assert!(relief_timer.is_late() && !relief_timer.expire());
        }
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::sys::{mutex::Mutex, primitives::atomic::AtomicBool};
    use loom::{model, sync::Arc, thread};

    /// The two fences stand for the asymmetric pair of `protocol/fence.rs`.
    #[test]
    fn an_entry_that_relies_on_an_expiry_is_seen_by_one() {
        model(|| {
            let relief_timer = Arc::new(ReliefTimer::new());
            let entry = Arc::new(AtomicBool::new(false));
            relief_timer.arm_light();
            let inserter = {
                let (relief_timer, entry) = (relief_timer.clone(), entry.clone());
                thread::spawn(move || {
                    entry.store(true, Ordering::Relaxed);
                    fence(Ordering::SeqCst);
                    if !relief_timer.is_light() {
                        relief_timer.arm_light();
                    }
                })
            };
            let other = {
                let relief_timer = relief_timer.clone();
                thread::spawn(move || relief_timer.arm())
            };
            assert!(relief_timer.expire());
            fence(Ordering::SeqCst);
            let seen = entry.load(Ordering::Relaxed);
            inserter.join().unwrap();
            other.join().unwrap();
            assert!(seen || relief_timer.is_light(), "nobody looks");
        });
    }

    /// A word as the driver has it (`reactor/driver.rs`): its timer is off when it returns from an expiry, and a thread
    /// that finds the timer set leaves it. A thread that arms as the timer expires must not find the old time.
    #[test]
    fn a_timer_that_is_armed_as_it_expires_is_set_again() {
        for arm in [
            ReliefTimer::arm,
            ReliefTimer::arm_light,
            ReliefTimer::arm_late,
            ReliefTimer::arm_held,
            ReliefTimer::arm_seldom,
        ] {
            model(move || {
                let relief_timer = Arc::new(ReliefTimer::new());
                let is_due = Arc::new(AtomicBool::new(true));
                assert!(relief_timer.arm());
                let other = {
                    let (relief_timer, is_due) = (relief_timer.clone(), is_due.clone());
                    thread::spawn(move || {
                        if arm(&relief_timer) && !is_due.load(Ordering::Relaxed) {
                            is_due.store(true, Ordering::Relaxed);
                        }
                    })
                };
                is_due.store(false, Ordering::Relaxed);
                relief_timer.expire();
                other.join().unwrap();
                assert_eq!(relief_timer.is_on(), is_due.load(Ordering::Relaxed));
            });
        }
    }

    /// Two threads bring a late timer forward. One of them sets the driver's timer. The other one leaves it to that
    /// thread, and the expiry sees what this other one wrote before.
    #[test]
    fn what_was_written_before_a_timer_was_armed_is_seen_by_its_expiry() {
        model(|| {
            let relief_timer = Arc::new(ReliefTimer::new());
            let entry = Arc::new(AtomicBool::new(false));
            assert!(relief_timer.arm_late());
            let inserter = {
                let (relief_timer, entry) = (relief_timer.clone(), entry.clone());
                thread::spawn(move || {
                    entry.store(true, Ordering::Relaxed);
                    relief_timer.arm()
                })
            };
            let other = {
                let relief_timer = relief_timer.clone();
                thread::spawn(move || relief_timer.arm())
            };
            relief_timer.expire();
            let seen = entry.load(Ordering::Relaxed);
            let sets = inserter.join().unwrap();
            other.join().unwrap();
            assert!(seen || sets || relief_timer.is_soon(), "nobody looks");
        });
    }

    /// As above, of a look that is due after long, where each expiry sets the timer again for a look that it sees
    /// (`sched/rescue/hidden.rs`).
    #[test]
    fn a_look_after_long_has_a_timer_whatever_expires_as_it_is_noted() {
        model(|| {
            let relief_timer = Arc::new(ReliefTimer::new());
            let looks = Arc::new(AtomicBool::new(false));
            assert!(relief_timer.arm_late());
            let other = {
                let (relief_timer, looks) = (relief_timer.clone(), looks.clone());
                thread::spawn(move || {
                    looks.store(true, Ordering::Relaxed);
                    relief_timer.arm_seldom();
                })
            };
            relief_timer.expire();
            if looks.load(Ordering::Relaxed) {
                relief_timer.arm_seldom();
            }
            other.join().unwrap();
            assert!(relief_timer.is_on(), "nobody looks");
        });
    }

    /// As above, of a thread that sets a late timer, which another thread brings forward at once.
    #[test]
    fn what_was_written_before_a_late_timer_was_set_is_seen_by_an_expiry_that_comes_early() {
        model(|| {
            let relief_timer = Arc::new(ReliefTimer::new());
            let entry = Arc::new(AtomicBool::new(false));
            let inserter = {
                let (relief_timer, entry) = (relief_timer.clone(), entry.clone());
                thread::spawn(move || {
                    entry.store(true, Ordering::Relaxed);
                    relief_timer.arm_late()
                })
            };
            let other = {
                let relief_timer = relief_timer.clone();
                thread::spawn(move || relief_timer.arm())
            };
            relief_timer.expire();
            let seen = entry.load(Ordering::Relaxed);
            let set_late = inserter.join().unwrap();
            other.join().unwrap();
            assert!(seen || !set_late || relief_timer.is_set(), "nobody looks");
        });
    }

    /// The timer is set when a stack holds a fork back, and expires at that moment: the expiry sees the fork, or the
    /// stack sets the timer.
    #[test]
    fn a_fork_that_is_held_back_is_seen_by_an_expiry() {
        for is_noted in [false, true] {
            model(move || {
                let relief_timer = Arc::new(ReliefTimer::new());
                let (fork, note) = (
                    Arc::new(AtomicBool::new(false)),
                    Arc::new(AtomicBool::new(is_noted)),
                );
                assert!(relief_timer.arm_late());
                let holder = {
                    let relief_timer = relief_timer.clone();
                    let (fork, note) = (fork.clone(), note.clone());
                    thread::spawn(move || {
                        fork.store(true, Ordering::Relaxed);
                        note.swap(true, Ordering::AcqRel);
                        relief_timer.arm_held();
                    })
                };
                relief_timer.expire();
                let looks = note.load(Ordering::Relaxed) && note.swap(false, Ordering::AcqRel);
                let seen = looks && fork.load(Ordering::Relaxed);
                holder.join().unwrap();
                let is_left = note.load(Ordering::Relaxed) && relief_timer.is_late();
                assert!(seen || is_left, "nobody looks");
            });
        }
    }

    /// A job gets its first worker, as `Job::begins_to_share`, when the timer expires.
    #[test]
    fn a_worker_that_comes_as_the_timer_expires_is_seen_or_finds_the_timer_off() {
        model(|| {
            let relief_timer = Arc::new(ReliefTimer::new());
            let jobs = Arc::new(Mutex::new(Vec::new()));
            assert!(relief_timer.arm_late());
            let starts = {
                let (relief_timer, jobs) = (relief_timer.clone(), jobs.clone());
                thread::spawn(move || {
                    let has_worker = Arc::new(AtomicBool::new(false));
                    jobs.lock().push(has_worker.clone());
                    has_worker.store(true, Ordering::Relaxed);
                    fence(Ordering::SeqCst);
                    if !relief_timer.is_set() {
                        relief_timer.arm_late();
                    }
                })
            };
            relief_timer.expire();
            let jobs = jobs.lock().clone();
            let seen = jobs.iter().any(|job| job.load(Ordering::Relaxed));
            starts.join().unwrap();
            assert!(seen || relief_timer.is_set(), "nobody asks the policy");
        });
    }
}
