//! Whether a stack waits for forks that others stole: then they are as urgent as it is.
//!
//! Code that is raised, for good or while it keeps a lock, may wait for forks of its own. A thief runs each of them, at
//! the level at which it stole the fork. If that stays less urgent than the code, what lies between keeps the thief
//! from running, and the code from going on, for as long as it likes.
//!
//! # Rules
//!
//! 1. *Wait*: the stack notes that it waits for forks, has a full barrier, and reads its level. If that was raised, it
//!    raises the thieves.
//! 2. *Raise*: a thread that has raised the stack has a full barrier, and then looks at the note. If the stack waits,
//!    the thread raises the thieves.
//! 3. *Begin*: a thief notes whose fork it runs, has a full barrier, and then looks at the note and the level of the
//!    stack that it stole from. If that waits, the thief raises itself.
//! 4. To *raise the thieves* is to look at the notes of all stacks (of 3), again and again, until a look has raised no
//!    stack: a thief that a look has missed may have looked at another one that was not raised yet.
//! 5. *Interrupt*: what the stack runs on top of a wait does not wait for the forks below. The note is off meanwhile,
//!    and afterwards the stack begins to wait anew (1). Otherwise a lock that is kept on top would raise the thieves.
//!
//! Of two parties one sees what the other wrote before its barrier. So while the stack waits each of its thieves is as
//! urgent as the stack, but for steps in progress.

use crate::sys::primitives::atomic::{AtomicBool, Ordering, fence};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct AwaitedForks(AtomicBool);

impl AwaitedForks {
    pub(crate) fn new() -> Self {
        AwaitedForks(AtomicBool::new(false))
    }

    /// Rule 1; the caller looks at its level after this. Returns what [`AwaitedForks::end`] puts back: the stack may
    /// wait for forks in the middle of another such wait.
    pub(crate) fn begin(&self) -> bool {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        before
    }

    /// Rule 5: something else runs on the stack. Returns whether the stack has to begin anew afterwards.
    pub(crate) fn interrupt(&self) -> bool {
        let waits = self.0.load(Ordering::Relaxed);
        self.end(false);
        waits
    }

    pub(crate) fn end(&self, before: bool) {
        self.0.store(before, Ordering::Relaxed);
    }

    /// Rules 2 and 3: whether the stack waits, behind what the caller has written.
    pub(crate) fn is_any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::sys::primitives::atomic::AtomicU8;
    use loom::{model, sync::Arc, thread};

    const LOW: u8 = 2;
    const HIGH: u8 = 1;

    struct Stack {
        level: AtomicU8,
        awaited: AwaitedForks,
        is_thief: AtomicBool,
    }

    impl Stack {
        fn new() -> Self {
            Stack {
                level: AtomicU8::new(LOW),
                awaited: AwaitedForks::new(),
                is_thief: AtomicBool::new(false),
            }
        }

        fn level(&self) -> u8 {
            self.level.load(Ordering::Relaxed)
        }

        fn raise(&self) -> bool {
            self.level.fetch_min(HIGH, Ordering::AcqRel) > HIGH
        }

        /// Rule 3, of a fork of `from`.
        fn begins(&self, from: &Stack) {
            self.is_thief.store(true, Ordering::Relaxed);
            // A thief that is raised lends its level as a stack that waits does.
            if (from.awaited.is_any() || from.is_thief.load(Ordering::Relaxed))
                && from.level() < self.level()
            {
                self.raise();
            }
        }
    }

    /// Rule 4.
    fn raise_thieves(stacks: &[Stack]) {
        loop {
            fence(Ordering::SeqCst);
            let thieves = stacks[1..].iter();
            let thieves = thieves.filter(|stack| stack.is_thief.load(Ordering::Relaxed));
            if thieves.filter(|stack| stack.raise()).count() == 0 {
                return;
            }
        }
    }

    #[test]
    fn a_thief_is_raised_whichever_of_wait_raise_and_begin_comes_last() {
        model(|| {
            let stacks = Arc::new([Stack::new(), Stack::new()]);
            let raiser = {
                let stacks = stacks.clone();
                thread::spawn(move || {
                    stacks[0].raise();
                    if stacks[0].awaited.is_any() {
                        raise_thieves(&*stacks);
                    }
                })
            };
            let thief = {
                let stacks = stacks.clone();
                thread::spawn(move || stacks[1].begins(&stacks[0]))
            };
            assert!(!stacks[0].awaited.begin());
            if stacks[0].level() == HIGH {
                raise_thieves(&*stacks);
            }
            raiser.join().unwrap();
            thief.join().unwrap();
            assert_eq!(stacks[1].level(), HIGH);
        });
    }

    /// A thief of a thief, which could steal after the first had begun: the look of the raising thread meets it first.
    #[test]
    fn a_thief_of_a_thief_is_raised() {
        model(|| {
            let stacks = Arc::new([Stack::new(), Stack::new(), Stack::new()]);
            assert!(!stacks[0].awaited.begin());
            let thieves = {
                let stacks = stacks.clone();
                thread::spawn(move || {
                    stacks[2].begins(&stacks[0]);
                    stacks[1].begins(&stacks[2]);
                })
            };
            stacks[0].raise();
            if stacks[0].awaited.is_any() {
                raise_thieves(&*stacks);
            }
            thieves.join().unwrap();
            assert_eq!([1, 2].map(|it| stacks[it].level()), [HIGH; 2]);
        });
    }
}
