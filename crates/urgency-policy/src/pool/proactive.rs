//! Randomised proactive stealing: each worker has a set of deques, and a stack that waits takes its whole
//! deque out of the way.

use super::{Amount, Arrival, Chooser, Left, Place, PoolPolicy, Queue, Sight, Source};
use crate::dice::Dice;

/// Which of several deques.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pick {
    /// Any, with the same probability.
    Random,
    /// The one that became resumable or stealable last.
    Newest,
    /// The one that became resumable or stealable first.
    Oldest,
}

impl Pick {
    fn of(self, deques: usize, dice: &mut Dice) -> usize {
        match self {
            Pick::Random => dice.below(deques as u64) as usize,
            Pick::Newest => deques.saturating_sub(1),
            Pick::Oldest => 0,
        }
    }
}

/// Every so many looks a worker looks at what yielded first.
const LOOK: u32 = 32;

/// The queue for what yielded.
const YIELDED: Queue = Queue::Shared(0);

/// Steals at random among deques.
///
/// This is ProWS and Cilk-L (the latency-hiding paper, section 4), and the lower half of Adaptive I-Cilk.
///
/// 1. A worker whose stack meets an unready `get` suspends the whole deque, **donates** it to a random
///    worker, and steals elsewhere. (Parsimonious stealing, a plan of [`Queues`](super::Queues), would go on with the
///    deque's next fork.) The donation keeps the sets of all workers about equally large, which the bound on steal
///    attempts needs.
/// 2. When the wait is over, the deque is resumable where it stands.
/// 3. A worker without work looks at its own resumable deques, then at a random worker, and there at a random deque. It
///    continues a resumable one and steals the oldest fork of any other.
/// 4. A deque that yields far, until something else has happened, goes to a queue that all workers share. So does a
///    near yield where the owner picks the newest: its own set would give the deque straight back, for ever. A worker
///    that has nothing of its own looks at the shared queue at every second try, and every worker does at every 32nd
///    look. (The papers have no yields.)
///
/// The paper picks deques at random. I-Cilk's source picks the newest, for the owner and for thieves, which
/// is worse for the age of requests; the published *aging* variant has the owner pick the oldest.
///
/// ```
/// use urgency_policy::{dice::Dice, pool::{Arrival, Pick, Place, PoolPolicy, Proactive}};
///
/// let mut policy = Proactive::new(0, 4, Pick::Random, Pick::Random, Dice::new(1));
/// assert!(matches!(policy.place(Arrival::Suspended, 0), Place::Worker(0..4)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proactive {
    me: usize,
    workers: usize,
    owner: Pick,
    thief: Pick,
    dice: Dice,
    looks: u32,
}

impl Proactive {
    /// For the worker with the number `me` of so many, with what an owner and a thief pick.
    pub fn new(me: usize, workers: usize, owner: Pick, thief: Pick, dice: Dice) -> Self {
        Proactive {
            me,
            workers,
            owner,
            thief,
            dice,
            looks: 0,
        }
    }
}

impl PoolPolicy for Proactive {
    fn place(&mut self, arrival: Arrival, _own: usize) -> Place {
        match arrival {
            Arrival::Suspended | Arrival::Abandoned => {
                Place::Worker(self.dice.below(self.workers as u64) as usize)
            }
            Arrival::YieldedFar => Place::Tail(YIELDED),
            Arrival::Yielded if self.owner == Pick::Newest => Place::Tail(YIELDED),
            _ => Place::Worker(self.me),
        }
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        self.looks = self.looks.wrapping_add(1);
        let has_nothing = sight.own == 0 && sight.failed % 2 == 1;
        if sight.shared != 0 && (has_nothing || self.looks.is_multiple_of(LOOK)) {
            return Source::Head(YIELDED);
        }
        if sight.own > 0 && sight.failed == 0 {
            return Source::OwnDeque;
        }
        // Itself included: suspended deques with forks may have been donated to it.
        let victim = self.dice.below(self.workers as u64) as usize;
        Source::Steal {
            victim,
            amount: Amount::One,
            least: 1,
        }
    }

    fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        let pick = match chooser {
            Chooser::Owner => self.owner,
            Chooser::Thief => self.thief,
        };
        pick.of(deques, &mut self.dice)
    }

    fn after_steal(&mut self, left: Left) -> Place {
        match left {
            Left::Forks => Place::Worker(self.me),
            Left::Nothing => Place::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    #[test]
    fn donated_deques_are_spread_evenly_over_the_workers() {
        let mut policy = Proactive::new(3, 16, Pick::Random, Pick::Random, Dice::new(9));
        let mut count = vec![0u32; 16];
        for _ in 0..16_000 {
            match policy.place(Arrival::Suspended, 0) {
                Place::Worker(worker) => count[worker] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(count.iter().all(|n| (850..1150).contains(n)), "{count:?}");
    }

    #[test]
    fn a_worker_looks_at_its_own_resumable_deques_first_and_then_at_every_worker() {
        let mut policy = Proactive::new(0, 8, Pick::Random, Pick::Random, Dice::new(4));
        let own = Sight {
            own: 2,
            ..Sight::default()
        };
        assert_eq!(policy.take_from(own), Source::OwnDeque);
        let mut seen = [false; 8];
        for _ in 0..500 {
            match policy.take_from(Sight::default()) {
                Source::Steal {
                    victim,
                    amount: Amount::One,
                    ..
                } => seen[victim] = true,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, [true; 8]);
    }

    #[test]
    fn what_yields_far_is_out_of_the_way_of_its_worker_but_not_for_ever() {
        let mut policy = Proactive::new(0, 2, Pick::Newest, Pick::Newest, Dice::new(4));
        for yields in [Arrival::YieldedFar, Arrival::Yielded] {
            assert_eq!(policy.place(yields, 3), Place::Tail(Queue::Shared(0)));
        }
        let busy = Sight {
            own: 1,
            shared: 1,
            ..Sight::default()
        };
        let looks: Vec<Source> = (0..64).map(|_| policy.take_from(busy)).collect();
        let yielded = Source::Head(Queue::Shared(0));
        assert_eq!(looks.iter().filter(|look| **look == yielded).count(), 2);
        let free = Sight {
            failed: 1,
            own: 0,
            ..busy
        };
        assert_eq!(policy.take_from(free), yielded);
    }

    #[test]
    fn owner_and_thief_pick_as_they_are_told() {
        let mut policy = Proactive::new(0, 2, Pick::Oldest, Pick::Newest, Dice::new(0));
        assert_eq!(policy.choose(5, Chooser::Owner), 0);
        assert_eq!(policy.choose(5, Chooser::Thief), 4);
    }
}
