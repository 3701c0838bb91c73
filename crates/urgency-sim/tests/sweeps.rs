//! A policy of a user's own that does not look where the work is: what its worker sweeps up costs as much as what a
//! policy finds.

use urgency_policy::{
    dice::Dice,
    pool::{
        Arrival, Layout, Left, Place, PoolOrder, PoolPolicy, Queue, QueueLayout, Sight, Source,
    },
};
use urgency_sim::{Costs, Machine, Report, generate, run};

/// All work goes to one place, and no worker looks anywhere.
#[derive(Clone, Debug)]
struct Blind(Layout, Place);

impl PoolOrder for Blind {
    fn layout(&self) -> Layout {
        self.0
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(self.clone())
    }
}

impl PoolPolicy for Blind {
    fn place(&mut self, _: Arrival, _: usize) -> Place {
        self.1
    }

    fn take_from(&mut self, _: Sight) -> Source {
        Source::Nowhere
    }

    fn after_steal(&mut self, _: Left) -> Place {
        Place::Dropped
    }
}

fn report(layout: Layout, place: Place, costs: Costs) -> Report {
    let parameters = generate::Random {
        vertices: 300,
        work: 1000,
        ..generate::Random::default()
    };
    let dag = generate::random(parameters, 3);
    let machine = Machine {
        workers: 4,
        pool: Blind(layout, place).into(),
        costs,
        ..Machine::default()
    };
    let report = run(&dag, &machine).unwrap();
    assert_eq!(report.work, dag.total_work());
    report
}

#[test]
fn what_is_swept_up_at_another_worker_is_a_steal_and_costs_one() {
    let queues = Layout::Queues(QueueLayout::default());
    for layout in [Layout::Deques, queues] {
        let costs = Costs {
            steal: 500,
            ..Costs::ZERO
        };
        let swept = report(layout, Place::Worker(0), costs);
        assert!(swept.steals > 5, "{layout:?}: {swept:?}");
        assert!(
            swept.scheduling >= 500 * swept.steals,
            "{layout:?}: {swept:?}"
        );
    }
}

#[test]
fn what_is_swept_up_in_a_shared_queue_costs_as_much_as_a_look_there() {
    let queues = Layout::Queues(QueueLayout::default());
    let shared = Place::Tail(Queue::Shared(0));
    let regular = Place::Tail(Queue::Regular);
    for (layout, place) in [
        (queues, shared),
        (Layout::Deques, shared),
        (Layout::Central, regular),
    ] {
        let costs = Costs {
            queue: 500,
            ..Costs::ZERO
        };
        let (swept, free) = (
            report(layout, place, costs),
            report(layout, place, Costs::ZERO),
        );
        assert_eq!(free.scheduling, 0, "{layout:?}: {free:?}");
        assert!(swept.scheduling >= 20 * 500, "{layout:?}: {swept:?}");
    }
}
