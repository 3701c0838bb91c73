//! At which level the code on a stack runs, and at which level a thief runs the forks of that code.
//!
//! Code begins on a stack at a level of its own. Other threads raise it, for good or while it keeps a lock that more
//! urgent code waits for. Code that keeps a lock inherits: the forks that it made before do not keep the lock, and stay
//! at its own level.
//!
//! # States
//!
//! One word has the level of the code, the *mark*, and how often code has begun here. The mark is a level and an index
//! of the deque: forks below that index are as urgent as that level at most.
//!
//! # Rules
//!
//! 1. *Begin*: the stack writes the level at which it begins code, one beginning more, and no mark.
//! 2. *Raise*: a thread that raises the stack reads the word, *then* the end of the deque, and makes one step from that
//!    word to the next. If the code has its own level before that step, and not after it, the step sets the mark: its
//!    own level, and that end.
//! 3. *Steal*: a thief reads the word once. It has the deque's lock, and the fork's code began before the fork.
//!
//! # Invariants
//!
//! 1. A mark has the level at which the code ran that has begun here last. So it is a level of that code's job.
//! 2. A mark has an end that the deque had since that code began: no fork that is made after the raise lies below the
//!    mark, but for forks that take the place of older ones.
//!
//! # Race
//!
//! *A late raise against other work.* A thread finds the stack at the level of a task, and waits. The task ends, and
//! the stack begins something else: its word is another one, and the thread's step fails. The thread begins anew with
//! what is here now: at another level it sets no mark. (The level, and the two parts of the mark, were three words. The
//! late thread's mark was for forks of the next code: less urgent than that, or at a level that the next job does not
//! have.) That the next code may be raised in vain is its stack's to find out (`Me::lowers_late_raise`).
//!
//! The models fail with a mark that is a store behind a look, and with a word without the beginnings.

use super::own::Own;
use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, Ordering},
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct CodeLevel(AtomicU64);

/// The word's parts, from the lowest bit: the level, the mark's level, the mark's index, the beginnings.
const MARKED_AT: u32 = 8;
const MARK: u32 = 16;
const BEGUN: u32 = 40;
/// A mark beyond is this one: the forks above it are as urgent as the stack.
const LAST_MARK: u64 = (1 << (BEGUN - MARK)) - 1;

fn level_in(word: u64) -> u8 {
    word as u8
}

impl CodeLevel {
    pub(crate) fn new() -> Self {
        CodeLevel(AtomicU64::new(0))
    }

    /// The level of the code that runs here.
    #[inline]
    pub(crate) fn get(&self) -> u8 {
        level_in(self.0.load(Ordering::Relaxed))
    }

    /// Rule 3: the level of the fork at this index.
    pub(crate) fn of_fork(&self, index: usize) -> u8 {
        let word = self.0.load(Ordering::Relaxed);
        let mark = word >> MARK & LAST_MARK;
        if (index as u64) < mark {
            level_in(word).max(level_in(word >> MARKED_AT))
        } else {
            level_in(word)
        }
    }

    /// Rule 2: the code here is at least as urgent as `level` now. If it is of the level `own`, what it forked before
    /// stays there, which is what lies below the `end` of the deque. Whether that is news.
    pub(crate) fn raise(&self, level: u8, own: u8, end: impl Fn() -> usize) -> bool {
        let raise = |word| {
            let now = level_in(word);
            if now <= level {
                return Some(word);
            }
            if now != own {
                return Some(word - u64::from(now) + u64::from(level));
            }
            chaos::delay();
            let mark = (end() as u64).min(LAST_MARK);
            chaos::delay();
            let begun = word >> BEGUN << BEGUN;
            Some(begun | mark << MARK | u64::from(own) << MARKED_AT | u64::from(level))
        };
        // A step also where nothing changes: it is a full barrier.
        let raised = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, raise);
        raised.is_ok_and(|before| level_in(before) > level)
    }
}

impl Own<'_, CodeLevel> {
    /// Rule 1.
    #[inline]
    pub(crate) fn begin(self, level: u8) {
        let word = self.0.load(Ordering::Relaxed);
        let begun = (word >> BEGUN).wrapping_add(1) << BEGUN;
        let word = begun | u64::from(level);
        if cfg!(urgency_loom) {
            // Loom does not know that a store cannot come between the two halves of another thread's step.
            self.0.swap(word, Ordering::Release);
        } else {
            // A thread that reads this sees the deque as it is now.
            self.0.store(word, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    fn own(code: &CodeLevel) -> Own<'_, CodeLevel> {
        // SAFETY: one thread is in this test.
        unsafe { Own::new(code) }
    }

    #[test]
    fn forks_from_before_code_inherits_stay_at_its_own_level_until_other_code_begins() {
        let code = CodeLevel::new();
        own(&code).begin(7);
        assert!(code.raise(3, 7, || 2));
        assert_eq!([1, 2].map(|index| code.of_fork(index)), [7, 3]);
        // More urgent code waits as well; the mark stays.
        assert!(code.raise(1, 7, || 9) && !code.raise(2, 7, || 9));
        assert_eq!([1, 2].map(|index| code.of_fork(index)), [7, 1]);
        own(&code).begin(4);
        assert_eq!((code.get(), code.of_fork(0)), (4, 4));
        // For good.
        assert!(code.raise(2, 2, || 9));
        assert_eq!(code.of_fork(0), 2);
    }

    #[test]
    fn a_mark_beyond_the_last_one_is_the_last_one() {
        let code = CodeLevel::new();
        own(&code).begin(7);
        assert!(code.raise(3, 7, || usize::MAX));
        let last = LAST_MARK as usize;
        assert_eq!([last - 1, last].map(|index| code.of_fork(index)), [7, 3]);
        assert_eq!(code.get(), 3);
    }

    #[test]
    fn a_raise_during_which_the_stack_takes_up_other_work_marks_no_fork_of_that() {
        let code = CodeLevel::new();
        own(&code).begin(7);
        // A job with fewer levels.
        assert!(!code.raise(3, 7, || {
            own(&code).begin(1);
            5
        }));
        assert_eq!((code.get(), code.of_fork(0)), (1, 1));
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::own::own_in_model;
    use loom::{
        model,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::*},
        },
        thread,
    };

    const LEAST: u8 = 7;
    const RAISED: u8 = 0;

    #[derive(Debug)]
    struct Stack {
        code: CodeLevel,
        /// The end of the deque.
        end: AtomicUsize,
    }

    impl Stack {
        /// A task of the least urgent level runs here, and has two forks. A thread raises it.
        fn raised() -> (Arc<Stack>, thread::JoinHandle<bool>) {
            let stack = Arc::new(Stack {
                code: CodeLevel::new(),
                end: AtomicUsize::new(0),
            });
            stack.begins(LEAST);
            stack.end.store(2, Relaxed);
            let raiser = thread::spawn({
                let stack = stack.clone();
                move || stack.code.raise(RAISED, LEAST, || stack.end.load(Relaxed))
            });
            (stack, raiser)
        }

        fn begins(&self, level: u8) {
            self.end.store(0, Relaxed);
            own_in_model(&self.code).begin(level);
        }
    }

    #[test]
    fn a_thread_that_raises_marks_no_fork_of_the_next_job_with_a_level_beyond_its() {
        let next = 1;
        model(move || {
            let (stack, raiser) = Stack::raised();
            stack.begins(next);
            stack.end.store(1, Relaxed);
            assert!(stack.code.of_fork(0) <= next);
            raiser.join().unwrap();
            assert!(stack.code.of_fork(0) <= next);
        });
    }

    #[test]
    fn forks_that_the_next_code_makes_after_the_raise_have_its_level() {
        model(|| {
            let (stack, raiser) = Stack::raised();
            stack.begins(LEAST);
            raiser.join().unwrap();
            assert_eq!(stack.code.of_fork(0), stack.code.get());
        });
    }
}
