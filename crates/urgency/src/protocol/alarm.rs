//! For what time the timer descriptor of a driver is set, by threads that hold no lock meanwhile.
//!
//! The descriptor expires once, at the time for which it was set last. Each thread that needs it for some time asks for
//! that time or an earlier one ([`Alarm::by`]). The word is the time, and whether it *is set* for it.
//!
//! # States
//!
//! - *At some time, not set*: a thread is on its way to set the descriptor. Another thread that needs it does not rely
//!   on that one, which may have no processor for long. It sets the descriptor itself, for the earlier of both times.
//! - *At some time, set*: the descriptor expires then, or earlier.
//! - [`NEVER`]: it expired, or was never set.
//!
//! # Rules
//!
//! 1. A thread writes the time, *then* sets the descriptor, *then* notes that it is set, if the word is still its own.
//! 2. If another thread wrote the same or an earlier time meanwhile, one of the two set the descriptor last: which one
//!    is not known. So the thread sets it once more, for the earlier of both times.
//!    If the time in the word is later, the descriptor has expired since the thread wrote, since nothing else makes the
//!    time later. Then the thread is done: what it needs was entered before, and rule 3 sees it. If the thread set the
//!    descriptor last, that expires too early, and rule 3 sets it anew.
//! 3. After an expiry a thread notes it ([`Alarm::expired`]), *then* looks what comes next, *then* asks for that. What
//!    is entered after the look is asked for after the note.
//!
//! # Named races
//!
//! - *Over before it is set*: a thread that is late sets a time that is over. The descriptor expires at once, and the
//!   thread in the poller may preempt the one that set it, and note the expiry before that one goes on. (Until 28
//!   November 2026 the late thread then set the same time once more, and so on: on one processor a lowered thread never
//!   came back from `sleep` of some microseconds, and used all time that was left.)
//!
//! A thread that loses its processor between its setting and its look at the word may have put the
//! descriptor off until it goes on.
//!
//! # Rejected
//!
//! To set the descriptor under the lock of the timers. Another process preempted a lowered thread at the end of that
//! system call. The thread in the poller waited for the lock, for up to 0.94 s, and so did all events.

use crate::sys::primitives::atomic::{AtomicU64, Ordering};

/// No time: later than all others.
pub(crate) const NEVER: u64 = u64::MAX >> 1;

const IS_SET: u64 = 1;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Alarm(AtomicU64);

impl Alarm {
    pub(crate) fn new() -> Self {
        Alarm(AtomicU64::new(NEVER << 1 | IS_SET))
    }

    /// Sees to it that the descriptor expires at `at` or earlier; `set` sets it for a time.
    pub(crate) fn by(&self, at: u64, set: impl Fn(u64)) {
        self.see_to(self.0.load(Ordering::Acquire), at.min(NEVER), true, set);
    }

    /// Sets the descriptor once more, if it is set: the kernel's timer is then the calling thread's processor's. If the
    /// descriptor expires meanwhile, it may expire once more, in vain.
    pub(crate) fn again(&self, set: impl Fn(u64)) {
        let seen = self.0.load(Ordering::Acquire);
        if seen >> 1 != NEVER {
            self.see_to(seen, seen >> 1, false, set);
        }
    }

    /// The word was `seen`. `is_known`: what it says of the descriptor is to be relied on.
    fn see_to(&self, mut seen: u64, at: u64, mut is_known: bool, set: impl Fn(u64)) {
        loop {
            let time = seen >> 1;
            if is_known && time <= at && seen & IS_SET != 0 {
                return;
            }
            let mine = time.min(at) << 1;
            if let Err(other) = self.replace(seen, mine) {
                seen = other;
                continue;
            }
            set(mine >> 1);
            match self.replace(mine, mine | IS_SET) {
                Ok(_) => return,
                // Rule 2.
                Err(other) if other >> 1 > mine >> 1 => return,
                Err(other) => (seen, is_known) = (other, false),
            }
        }
    }

    fn replace(&self, old: u64, new: u64) -> Result<u64, u64> {
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
    }

    /// The descriptor has expired. Rule 3.
    pub(crate) fn expired(&self) {
        let _ = self.0.swap(NEVER << 1 | IS_SET, Ordering::AcqRel);
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        model,
        sync::{Arc, Mutex},
        thread,
    };

    /// A driver: what the descriptor is set for, and what is to come.
    struct Driver {
        alarm: Alarm,
        descriptor: AtomicU64,
        entered: Mutex<u64>,
    }

    impl Driver {
        fn new(entered: u64) -> Arc<Self> {
            Arc::new(Driver {
                alarm: Alarm::new(),
                descriptor: AtomicU64::new(NEVER),
                entered: Mutex::new(entered),
            })
        }

        fn set(&self, at: u64) {
            self.descriptor.store(at, Ordering::SeqCst);
        }

        fn by(&self, at: u64) {
            self.alarm.by(at, |at| self.set(at));
        }

        fn again(&self) {
            self.alarm.again(|at| self.set(at));
        }

        fn enter(&self, at: u64) {
            {
                let mut entered = self.entered.lock().unwrap();
                *entered = at.min(*entered);
            }
            self.by(at);
        }

        fn expire(&self) {
            self.alarm.expired();
            let next = *self.entered.lock().unwrap();
            self.by(next);
        }

        fn is_set_for(&self) -> u64 {
            self.descriptor.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn the_descriptor_is_set_for_the_earliest_time_that_any_thread_needs() {
        model(|| {
            let driver = Driver::new(NEVER);
            let others = [10, 5].map(|at| {
                let driver = driver.clone();
                thread::spawn(move || driver.by(at))
            });
            driver.by(7);
            others.map(|other| other.join().unwrap());
            assert_eq!(driver.is_set_for(), 5);
        });
    }

    /// It was set for 5, which is over. What was entered for 30 is next, until another thread enters something for 7.
    #[test]
    fn what_is_entered_as_the_descriptor_expires_is_not_forgotten() {
        model(|| {
            let driver = Driver::new(30);
            driver.by(5);
            driver.descriptor.store(NEVER, Ordering::SeqCst);
            let other = {
                let driver = driver.clone();
                thread::spawn(move || driver.enter(7))
            };
            driver.expire();
            other.join().unwrap();
            assert_eq!(driver.is_set_for(), 7);
        });
    }

    #[test]
    fn a_thread_that_sets_the_descriptor_once_more_hides_nothing() {
        model(|| {
            let driver = Driver::new(10);
            driver.by(10);
            let again = {
                let driver = driver.clone();
                thread::spawn(move || driver.again())
            };
            let other = {
                let driver = driver.clone();
                thread::spawn(move || driver.enter(7))
            };
            again.join().unwrap();
            other.join().unwrap();
            assert_eq!(driver.is_set_for(), 7);
        });
    }

    /// It was set for 5, which is over, and 30 is next. Whenever it is set for 5 again, it expires.
    #[test]
    fn a_thread_that_sets_it_once_more_as_it_expires_hides_nothing() {
        model(|| {
            let driver = Driver::new(30);
            driver.by(5);
            let again = {
                let driver = driver.clone();
                thread::spawn(move || driver.again())
            };
            driver.expire();
            again.join().unwrap();
            if driver.is_set_for() == 5 {
                driver.descriptor.store(NEVER, Ordering::SeqCst);
                driver.expire();
            }
            assert_eq!(driver.is_set_for(), 30);
        });
    }

    /// The thread that needs 5 is so late that 5 is over: whenever the descriptor is set for that, it expires.
    #[test]
    fn a_thread_that_sets_a_time_that_is_over_hides_nothing() {
        model(|| {
            let driver = Driver::new(30);
            let late = {
                let driver = driver.clone();
                thread::spawn(move || driver.by(5))
            };
            let other = {
                let driver = driver.clone();
                thread::spawn(move || driver.enter(7))
            };
            driver.expire();
            late.join().unwrap();
            other.join().unwrap();
            if driver.is_set_for() == 5 {
                driver.descriptor.store(NEVER, Ordering::SeqCst);
                driver.expire();
            }
            assert_eq!(driver.is_set_for(), 7);
        });
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_is_set_is_set_once_more() {
        let alarm = Alarm::new();
        alarm.again(|_| panic!("it is not set"));
        alarm.by(30, |_| ());
        let times = Cell::new(0);
        alarm.again(|at| times.set(times.get() + at));
        assert_eq!(times.get(), 30);
        alarm.by(40, |_| panic!("it is set for 30"));
    }

    /// What is entered for 5 is over when it is set, and the thread in the poller comes at once.
    #[test]
    fn a_time_that_expires_whenever_it_is_set_is_set_once() {
        let (alarm, sets) = (Alarm::new(), Cell::new(0));
        let expires_at_once = |at| {
            sets.set(sets.get() + 1);
            assert!(sets.get() < 10, "it never ends");
            if at == 5 {
                alarm.expired();
                alarm.by(30, |_| ());
            }
        };
        alarm.by(5, expires_at_once);
        assert_eq!(sets.get(), 1);
        alarm.by(40, |_| panic!("it is set for 30"));
    }
}
