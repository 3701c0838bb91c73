//! In which order a worker takes from its own queue.

use crate::dice::Dice;

/// The order of a worker's own queue.
///
/// The two pure orders favour different things (the OCaml dissertation, section 4.2.1): the oldest first
/// bounds how long anything waits, the newest first finds its data in the cache and finishes a request's
/// subtree before the next one's. The others mix them (sections 4.2.2 and 5.1):
///
/// | order | rule |
/// |---|---|
/// | [`Order::Oldest`] | first in, first out |
/// | [`Order::Newest`] | last in, first out |
/// | [`Order::Slot`] | first in, first out, but the task that was made ready last goes first (Go, Tokio); so many times in a row at most |
/// | [`Order::Alternating`] | newest and oldest in turn |
/// | [`Order::Mix`] | the newest with a given probability, else the oldest |
/// | [`Order::Reverse`] | newest first; but after every n takings as many oldest as there are entries |
/// | [`Order::Deepest`] | deepest in the computation's DAG first (the fairness paper, section 5.2) |
///
/// [`Order::Reverse`] is what the dissertation calls reversing the stack; taking the oldest for a while
/// instead of turning the stack around leaves no entry stuck between two that spawn for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The oldest first.
    Oldest,
    /// The newest first.
    Newest,
    /// The slot first, at most `most` times in a row; else the oldest.
    Slot {
        /// Takings from the slot in a row.
        most: u32,
    },
    /// The newest and the oldest in turn.
    Alternating,
    /// The newest with a probability, else the oldest.
    Mix {
        /// The probability in percent.
        newest: u8,
    },
    /// The newest first; after every `every` takings as many oldest as there are.
    Reverse {
        /// Takings of the newest before the queue turns.
        every: u32,
    },
    /// The deepest first.
    Deepest,
}

/// Which entry of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The one that has been there longest.
    Oldest,
    /// The one that came last.
    Newest,
    /// The one in the slot.
    Slot,
    /// The one that is deepest in its DAG, the newest of several.
    Deepest,
}

/// Chooses the entries of one worker's queue, in an order.
///
/// ```
/// use urgency_policy::{dice::Dice, pool::{End, Order, Picker}};
///
/// let mut picker = Picker::new(Order::Alternating, Dice::new(1));
/// assert_eq!(picker.pick(3, false), End::Newest);
/// assert_eq!(picker.pick(2, false), End::Oldest);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picker {
    order: Order,
    dice: Dice,
    /// Takings, or takings from the slot in a row.
    count: u32,
    /// How many oldest are still to be taken before the newest come again.
    turned: usize,
}

impl Picker {
    /// A picker at its beginning.
    pub fn new(order: Order, dice: Dice) -> Self {
        Picker {
            order,
            dice,
            count: 0,
            turned: 0,
        }
    }

    /// The order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Which entry comes next, of a queue with `own` entries besides what is in the slot. One of the two
    /// is not empty.
    pub fn pick(&mut self, own: usize, slot: bool) -> End {
        match self.order {
            Order::Oldest => End::Oldest,
            Order::Newest => End::Newest,
            Order::Deepest => End::Deepest,
            Order::Slot { most } => {
                if slot && (self.count < most || own == 0) {
                    self.count = self.count.saturating_add(1);
                    return End::Slot;
                }
                self.count = 0;
                End::Oldest
            }
            Order::Alternating => {
                self.count ^= 1;
                if self.count == 1 {
                    End::Newest
                } else {
                    End::Oldest
                }
            }
            Order::Mix { newest } => {
                if self.dice.below(100) < u64::from(newest) {
                    End::Newest
                } else {
                    End::Oldest
                }
            }
            Order::Reverse { every } => {
                if self.turned > 0 {
                    self.turned -= 1;
                    return End::Oldest;
                }
                self.count += 1;
                if self.count >= every {
                    self.count = 0;
                    // What is there after this taking.
                    self.turned = own.saturating_sub(1);
                }
                End::Newest
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::VecDeque, vec::Vec};
    use proptest::prelude::*;

    /// Takes all of 0..n out of a queue that was filled in this order.
    fn taken(order: Order, n: u32) -> Vec<u32> {
        let mut picker = Picker::new(order, Dice::new(5));
        let mut queue: VecDeque<u32> = (0..n).collect();
        let mut next = |queue: &mut VecDeque<u32>| match picker.pick(queue.len(), false) {
            End::Oldest => queue.pop_front(),
            _ => queue.pop_back(),
        };
        core::iter::from_fn(|| (!queue.is_empty()).then(|| next(&mut queue).unwrap())).collect()
    }

    #[test]
    fn pure_orders_and_their_alternation() {
        assert_eq!(taken(Order::Oldest, 4), [0, 1, 2, 3]);
        assert_eq!(taken(Order::Newest, 4), [3, 2, 1, 0]);
        assert_eq!(taken(Order::Alternating, 4), [3, 0, 2, 1]);
    }

    #[test]
    fn a_mix_takes_the_newest_as_often_as_it_says() {
        let mut picker = Picker::new(Order::Mix { newest: 80 }, Dice::new(2));
        let newest = (0..10_000)
            .filter(|_| picker.pick(5, false) == End::Newest)
            .count();
        assert!((7800..8200).contains(&newest), "{newest}");
    }

    #[test]
    fn the_slot_goes_first_but_not_for_ever() {
        let mut picker = Picker::new(Order::Slot { most: 3 }, Dice::new(0));
        let ends: Vec<End> = (0..8).map(|_| picker.pick(5, true)).collect();
        let period = [End::Slot, End::Slot, End::Slot, End::Oldest];
        assert_eq!(ends, [period, period].concat());
        assert_eq!(picker.pick(0, true), End::Slot, "nothing else is there");
    }

    proptest! {
        #[test]
        fn under_reversal_nothing_waits_longer_than_the_period_and_the_queue_itself(
            every in 1u32..50,
            spawns in proptest::collection::vec(0usize..3, 200..1000),
        ) {
            // Each taken entry spawns some: a stack would never come to its bottom.
            let mut picker = Picker::new(Order::Reverse { every }, Dice::new(0));
            let mut queue = VecDeque::from([0usize]);
            let mut longest = 0;
            for (turn, spawns) in spawns.into_iter().enumerate() {
                if queue.is_empty() {
                    queue.push_back(turn);
                }
                longest = longest.max(queue.len());
                let since = match picker.pick(queue.len(), false) {
                    End::Oldest => queue.pop_front(),
                    _ => queue.pop_back(),
                }
                .unwrap();
                let limit = every as usize + 2 * longest + 1;
                prop_assert!(turn - since <= limit, "{since} waited until {turn}, limit {limit}");
                queue.extend(core::iter::repeat_n(turn, spawns));
            }
        }

        #[test]
        fn every_order_takes_each_entry_once(n in 0u32..60, newest in 0u8..=100, every in 1u32..9) {
            let orders = [
                Order::Oldest, Order::Newest, Order::Alternating, Order::Mix { newest }, Order::Reverse { every },
            ];
            for order in orders {
                let mut all = taken(order, n);
                all.sort_unstable();
                prop_assert_eq!(all, (0..n).collect::<Vec<_>>());
            }
        }
    }
}
