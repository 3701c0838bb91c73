//! Policies of a user's own that answer by lot: each simulation ends, with all of its work done or with an error that
//! says why not. `URGENCY_TEST_SEED` says which lots.

mod common;

use common::ends;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use urgency_policy::{
    cores::{
        Boundary, CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId, Refusal, Shares,
    },
    dice::Dice,
    level::{LevelSchedule, Otherwise, Period, Schedule, Seat, Use},
    pool::{
        Amount, Arrival, Chooser, End, Layout, Left, Place, PoolOrder, PoolPolicy, Queue,
        QueueLayout, Shed, Sight, Source,
    },
};
use urgency_sim::{
    Costs, Machine, MachineError,
    dag::Dag,
    generate,
    jobs::{self, Carrying, JobsError, JobsMachine, Shape, Sizes, elastic_pair, flow},
    run,
};

/// Draws lots; clones go on with the same ones.
#[derive(Clone, Debug)]
struct Lots(Arc<AtomicU64>);

impl Lots {
    fn new(seed: u64) -> Self {
        Lots(Arc::new(AtomicU64::new(seed)))
    }

    fn below(&self, n: u64) -> u64 {
        Dice::new(self.0.fetch_add(1, Relaxed)).below(n)
    }

    fn one_of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn first_seed() -> u64 {
    let given = std::env::var("URGENCY_TEST_SEED").ok();
    given.and_then(|it| it.parse().ok()).unwrap_or(1) << 32
}

fn dag(seed: u64, vertices: u32) -> Dag {
    let parameters = generate::Random {
        vertices,
        work: 100,
        ..generate::Random::default()
    };
    generate::random(parameters, seed)
}

/// An order, and the policy of one worker.
#[derive(Clone, Debug)]
struct ByLot(Lots, Layout);

impl ByLot {
    fn number(&self) -> usize {
        self.0.one_of(&[0, 1, 2, 63, 64, usize::MAX])
    }

    fn queue(&self) -> Queue {
        self.0
            .one_of(&[Queue::Mugging, Queue::Regular, Queue::Shared(self.number())])
    }
}

impl PoolOrder for ByLot {
    fn layout(&self) -> Layout {
        self.1
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(self.clone())
    }
}

impl PoolPolicy for ByLot {
    fn place(&mut self, _: Arrival, _: usize) -> Place {
        let worker = Place::Worker(self.number());
        self.0.one_of(&[
            Place::Tail(self.queue()),
            worker,
            Place::Slot,
            Place::Full,
            Place::Dropped,
        ])
    }

    fn take_from(&mut self, _: Sight) -> Source {
        let amount = self.0.one_of(&[Amount::One, Amount::Half]);
        let end = self
            .0
            .one_of(&[End::Newest, End::Oldest, End::Slot, End::Deepest]);
        let (victim, least) = (self.number(), self.number());
        let steal = Source::Steal {
            victim,
            amount,
            least,
        };
        let others = [Source::OwnDeque, Source::Advert { amount }, Source::Nowhere];
        self.0.one_of(
            &[
                &others[..],
                &[Source::Head(self.queue()), Source::Own(end), steal],
            ]
            .concat(),
        )
    }

    fn choose(&mut self, _: usize, _: Chooser) -> usize {
        self.number()
    }

    fn after_steal(&mut self, _: Left) -> Place {
        self.0.one_of(&[
            Place::Tail(self.queue()),
            Place::Worker(self.number()),
            Place::Dropped,
        ])
    }

    fn shed(&mut self, _: usize) -> Shed {
        let number = self.number();
        self.0.one_of(&[
            Shed::Keep,
            Shed::Ask(number),
            Shed::Advertise,
            Shed::Deal(number),
        ])
    }
}

#[test]
fn under_orders_by_lot_all_work_is_done_once() {
    let first = first_seed();
    ends(move || {
        for seed in first..first + 150 {
            let lots = Lots::new(seed << 20);
            let queues = QueueLayout {
                shared: lots.one_of(&[1, 2, 64]),
                capacity: lots.one_of(&[1, 3, usize::MAX]),
                by_depth: lots.below(2) == 0,
                is_dealt: lots.below(2) == 0,
                spawners_wait: lots.below(2) == 0,
                ..QueueLayout::default()
            };
            let layout = lots.one_of(&[Layout::Central, Layout::Deques, Layout::Queues(queues)]);
            let machine = Machine {
                workers: lots.one_of(&[1, 2, 8, 1024]),
                pool: ByLot(lots.clone(), layout).into(),
                costs: lots.one_of(&[Costs::ZERO, Costs::MEASURED]),
                check_in: lots.one_of(&[None, Some(50)]),
                seed,
                ..Machine::default()
            };
            let dag = dag(seed, 300);
            let report =
                run(&dag, &machine).unwrap_or_else(|it| panic!("{seed}: {layout:?}: {it}"));
            assert_eq!(report.work, dag.total_work(), "seed {seed}: {layout:?}");
        }
    });
}

/// Its layout is in range when it is asked first.
#[derive(Clone, Debug)]
struct Grows(Lots);

impl PoolOrder for Grows {
    fn layout(&self) -> Layout {
        let shared = match self.0.0.fetch_add(1, Relaxed) {
            0 => 1,
            _ => usize::MAX,
        };
        Layout::Queues(QueueLayout {
            shared,
            ..QueueLayout::default()
        })
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(ByLot(self.0.clone(), Layout::Deques))
    }
}

#[test]
fn an_order_whose_layout_grows_after_it_was_checked_is_refused() {
    let dag = dag(1, 30);
    let pool = Grows(Lots::new(0)).into();
    let refused = run(
        &dag,
        &Machine {
            pool,
            ..Machine::default()
        },
    );
    assert!(matches!(refused, Err(MachineError::Pool(_))), "{refused:?}");
}

#[derive(Clone, Debug)]
struct Seats(Lots, Period);

impl Seats {
    fn any(&self) -> Seat {
        let otherwise = self.0.one_of(&[Otherwise::Wait, Otherwise::Donate]);
        let seat = Seat::at(self.0.one_of(&[0, 1, 2, 63]), otherwise);
        self.0
            .one_of(&[Seat::PROMPT, seat, seat.with_ahead(u64::MAX)])
    }
}

impl LevelSchedule for Seats {
    fn period(&self) -> Period {
        self.1
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        self.any()
    }

    fn settle(&mut self, _: &[u64]) -> u64 {
        self.0.below(u64::MAX)
    }

    fn reallocate(&mut self, _: &[Use], seats: &mut [Seat]) {
        seats.iter_mut().for_each(|seat| *seat = self.any());
    }
}

#[test]
fn under_schedules_by_lot_each_simulation_ends() {
    let first = first_seed();
    ends(move || {
        for seed in first..first + 60 {
            let lots = Lots::new(seed << 20);
            let nanos = lots.one_of(&[0, 1, 1000, u64::MAX]);
            let period = lots.one_of(&[
                Period::Never,
                Period::EachWorker(nanos),
                Period::AllWorkers(nanos),
            ]);
            let machine = Machine {
                workers: match nanos {
                    0 | 1 => lots.one_of(&[1, 2, 8]),
                    _ => lots.one_of(&[1, 2, 8, 1024]),
                },
                schedule: Schedule::own(Seats(lots.clone(), period)),
                check_in: lots.one_of(&[None, Some(50)]),
                seed,
                ..Machine::default()
            };
            let dag = dag(seed, 100);
            match run(&dag, &machine) {
                Ok(report) => assert_eq!(report.work, dag.total_work()),
                Err(error) => assert!(matches!(error, MachineError::Starved { .. }), "{error}"),
            }
        }
    });
}

/// A core policy that breaks the rules once in so many decisions.
struct CoresByLot {
    lots: Lots,
    breaks: u64,
    /// It decides as *shares*, and has opinions about periods only.
    is_fair: bool,
    shares: Shares,
}

impl CorePolicy for CoresByLot {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        if self.is_fair {
            return self.shares.decide(event, cores, to);
        }
        let (lots, jobs, count) = (&self.lots, cores.jobs(), cores.count() as u64);
        let any = |jobs: &[urgency_policy::cores::Job]| match jobs.len() {
            0 => JobId(0),
            many => jobs[lots.below(many as u64) as usize].id(),
        };
        if lots.below(self.breaks) == 0 {
            match lots.below(6) {
                0 => to.give(count as usize, any(jobs))?,
                1 => to.give(0, JobId(u64::MAX))?,
                2 => to.give_counts(cores, &vec![cores.count(); jobs.len()])?,
                3 => to.set_timer(cores.now())?,
                4 => *to = Decision::default(),
                _ => return Err(DecisionError::Replaced),
            }
        }
        match lots.below(6) {
            0 if !jobs.is_empty() => {
                (0..count).try_for_each(|core| to.give(core as usize, any(jobs)))?
            }
            1 => cores.available().try_for_each(|core| to.give(core, None))?,
            2 => {
                let mut copy = cores.clone();
                *to = copy.decide(&mut self.shares, event)?.clone();
            }
            3 => {}
            _ => self.shares.decide(event, cores, to)?,
        }
        to.set_timer(
            cores
                .now()
                .saturating_add(lots.one_of(&[200_000, 2_000_000, u64::MAX])),
        )
    }

    fn admit(&mut self, id: JobId, _: &Demand, _: &Cores) -> Result<(), Refusal> {
        match self.lots.below(self.breaks * 10) {
            0 => Err(Refusal::UnknownJob(id)),
            _ => Ok(()),
        }
    }

    fn period(&self, _: JobId, _: &Cores) -> Option<u64> {
        self.lots
            .one_of(&[None, Some(0), Some(1_000_000), Some(u64::MAX)])
    }

    fn boundary(&self) -> Boundary {
        self.lots
            .one_of(&[Boundary::Point, Boundary::Steal, Boundary::Job])
    }

    fn is_partitioned(&self) -> bool {
        self.lots.below(4) > 0
    }
}

#[test]
fn under_core_policies_by_lot_each_simulation_ends() {
    let first = first_seed();
    ends(move || {
        let mut done = 0;
        for seed in first..first + 60 {
            let lots = Lots::new(seed << 20);
            let machine = JobsMachine {
                cores: lots.one_of(&[1, 2, 16, 1024]),
                carrying: lots.one_of(&[Carrying::EachCore, Carrying::OneDecision]),
                ..JobsMachine::default()
            };
            let is_fair = lots.below(4) == 0;
            // One of the pair runs for as long as the other one does: without a core that would be for ever.
            let (workload, jobs) = match is_fair {
                true => (elastic_pair(4_000_000, 20, &machine), 2),
                false => (flow(Sizes::BING, Shape::Rounds, 20, 0.5, &machine), 20),
            };
            let breaks = lots.one_of(&[3, 1 << 40]);
            let mut policy = CoresByLot {
                lots,
                breaks,
                is_fair,
                shares: Shares::default(),
            };
            match jobs::run(&workload, &machine, &mut policy) {
                Ok(report) => {
                    assert_eq!(report.flow.count, jobs, "seed {seed}");
                    done += 1;
                }
                Err(error) => match &error {
                    JobsError::Decision { .. } | JobsError::Refused { .. } => {
                        assert_eq!(breaks, 3, "{error}")
                    }
                    JobsError::Starved { .. } => {}
                    other => panic!("seed {seed}: {other}"),
                },
            }
        }
        println!("{done} were done");
    });
}
