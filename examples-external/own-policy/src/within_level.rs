//! Within a level: a worker whose queue is long sends what becomes ready to a random other one.
//!
//! The layout is a queue for each worker. A context goes to the own queue while that is short, and else to another
//! worker, which the dice name. A worker takes the oldest of its own. It steals half of another one's when it has none.

use urgency_policy::{
    dice::Dice,
    pool::{
        Amount, Arrival, End, Layout, Left, Place, PoolOrder, PoolPolicy, QueueLayout, Sight,
        Source,
    },
};

/// From this length on a queue is long.
const LONG: usize = 8;

/// The choice of this order.
#[derive(Debug)]
pub struct SpillingQueues;

impl PoolOrder for SpillingQueues {
    fn layout(&self) -> Layout {
        Layout::Queues(QueueLayout::default())
    }

    fn policy(&self, me: usize, workers: usize, dice: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(Worker {
            me,
            workers,
            dice: dice.split(me as u64),
        })
    }
}

/// One worker's view.
struct Worker {
    me: usize,
    workers: usize,
    dice: Dice,
}

impl Worker {
    fn anybody_else(&mut self) -> usize {
        let others = self.workers.saturating_sub(1).max(1) as u64;
        (self.me + 1 + self.dice.below(others) as usize) % self.workers
    }
}

impl PoolPolicy for Worker {
    fn place(&mut self, arrival: Arrival, own: usize) -> Place {
        match arrival {
            Arrival::Task | Arrival::Root if own >= LONG => Place::Worker(self.anybody_else()),
            _ => Place::Worker(self.me),
        }
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        if sight.own > 0 {
            return Source::Own(End::Oldest);
        }
        if self.workers == 1 {
            return Source::Nowhere;
        }
        Source::Steal {
            victim: self.anybody_else(),
            amount: Amount::Half,
            least: 1,
        }
    }

    fn after_steal(&mut self, _: Left) -> Place {
        Place::Dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urgency_sim::{Machine, generate, run};

    #[test]
    fn a_computation_runs_under_it_with_all_of_its_work_done() {
        let dag = generate::fork_join(10, 2, 1000);
        for workers in [1, 2, 16] {
            let machine = Machine {
                workers,
                pool: SpillingQueues.into(),
                ..Machine::default()
            };
            assert_eq!(run(&dag, &machine).unwrap().work, dag.total_work());
        }
    }
}
