//! A trial: whether the first of a queue can have what it needs, while others give back what it may need.
//!
//! Whether it can, only the trial shows, and that takes time: the queue's lock is not held meanwhile. So a thread takes
//! the first one out, tries, and puts it back if it was refused. What is given back meanwhile may be all that it
//! needed, and what comes meanwhile must not pass it.
//!
//! # States
//!
//! Under the queue's lock there is no trial, or one trial *of* something, with or without *news*.
//!
//! # Protocol
//!
//! - A thread that has given something back: 1. takes the queue's lock; 2. tells the trial, if there is one, and is
//!   done; 3. if there is none, begins one of the first in the queue, and gives the lock back.
//! - The thread of a trial: 1. tries, without the lock; 2. takes the lock; 3. ends the trial. Then it begins the next
//!   one, if this one was accepted. If it was refused it goes back into the queue; without news the thread is done, and
//!   with news it begins again.
//!
//! # Invariants
//!
//! 1. There is one trial at a time. So nothing passes what is tried: what comes compares itself with
//!    [`Trial::of`] as with the first in the queue.
//! 2. *A refusal that stays came after everything that was given back.* What was given back before the trial began,
//!    the trial saw. What was given back later was told to the trial, or its thread found no trial and began one.
//!
//! # Races
//!
//! - *Two that give back at once*: one begins the trial, and the other one's news has it repeated.
//! - *What is given back after the refusal, and before its end*: the first one was out of the queue, which seemed to be
//!   empty, and nobody tried it again. This is the news.

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Trial<T> {
    of: Option<T>,
    has_news: bool,
}

impl<T> Default for Trial<T> {
    fn default() -> Self {
        Trial {
            of: None,
            has_news: false,
        }
    }
}

impl<T> Trial<T> {
    /// A trial of this begins. There is none.
    pub(crate) fn begin(&mut self, of: T) {
        debug_assert!(self.of.is_none());
        *self = Trial {
            of: Some(of),
            has_news: false,
        };
    }

    /// What is tried now.
    pub(crate) fn of(&self) -> Option<&T> {
        self.of.as_ref()
    }

    /// Something was given back. Whether there is a trial, whose thread sees to it.
    pub(crate) fn tell(&mut self) -> bool {
        self.has_news = self.of.is_some();
        self.has_news
    }

    /// The trial ends. Whether something was given back meanwhile.
    pub(crate) fn end(&mut self) -> bool {
        self.of = None;
        std::mem::take(&mut self.has_news)
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::sys::mutex::Mutex;
    use loom::{sync::Arc, thread};

    /// Two threads have a core each, which one in the queue needs.
    struct Model {
        /// Cores that are promised; a lock of its own, as the core policy's is.
        promised: Mutex<usize>,
        queue: Mutex<Queue>,
    }

    #[derive(Default)]
    struct Queue {
        trial: Trial<()>,
        /// Whether it is in the queue, in a trial, or has started.
        queued: bool,
        started: bool,
    }

    impl Model {
        fn give_back(&self) {
            *self.promised.lock() -= 1;
            while self.try_first() {}
        }

        /// As `Set::try_first`.
        fn try_first(&self) -> bool {
            let mut queue = self.queue.lock();
            if queue.trial.tell() || !queue.queued {
                return false;
            }
            queue.queued = false;
            queue.trial.begin(());
            drop(queue);
            let can_have = *self.promised.lock() == 0;
            let mut queue = self.queue.lock();
            let has_news = queue.trial.end();
            (queue.started, queue.queued) = (can_have, !can_have);
            has_news || can_have
        }
    }

    #[test]
    fn the_first_in_a_queue_starts_when_two_threads_give_back_what_it_needs() {
        loom::model(|| {
            let model = Arc::new(Model {
                promised: Mutex::new(2),
                queue: Mutex::new(Queue {
                    queued: true,
                    ..Queue::default()
                }),
            });
            let its = model.clone();
            let other = thread::spawn(move || its.give_back());
            model.give_back();
            other.join().unwrap();
            let queue = model.queue.lock();
            assert!(queue.started && !queue.queued && queue.trial.of().is_none());
        });
    }
}
