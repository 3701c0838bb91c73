//! Policies that answer, panic and call by lot.

use super::common::{Random, fib};
use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    Runtime,
    jobs::{CoreSet, JobControl, JobHandle},
    join,
    policy::{
        Layout, LevelSchedule, Otherwise, PoolOrder, Schedule,
        cores::{
            Boundary, CorePolicy, Cores, Decision, DecisionError, Demand, Event, Group, JobId,
            Refusal, Shares, Task,
        },
    },
};
use urgency_policy::{
    dice::Dice,
    level::{Period, Seat, Use},
    pool::{
        Amount, Arrival, Chooser, End, Left, Place, PoolPolicy, Queue, QueueLayout, Shed, Sight,
        Source,
    },
};

/// What the hostile code of one round reaches, and how it draws.
pub struct World {
    lots: Mutex<Random>,
    /// It panics, or makes a call that does, once in so many questions; 0: never.
    panics: u64,
    pub set: Mutex<Option<CoreSet>>,
    pub controls: Mutex<Vec<JobControl>>,
    /// Perhaps the last handles.
    pub runtimes: Mutex<Vec<Runtime>>,
    decisions: Mutex<Vec<Decision>>,
    pub captured: AtomicUsize,
    /// How many jobs hostile code may submit.
    submits: AtomicUsize,
    pub is_on: AtomicBool,
}

impl World {
    pub fn new(seed: u64, panics: u64) -> Arc<Self> {
        Arc::new(World {
            lots: Mutex::new(Random::new(seed)),
            panics,
            set: Mutex::default(),
            controls: Mutex::default(),
            runtimes: Mutex::default(),
            decisions: Mutex::default(),
            captured: AtomicUsize::new(0),
            submits: AtomicUsize::new(50),
            is_on: AtomicBool::new(false),
        })
    }

    fn below(&self, n: u64) -> u64 {
        self.lots.lock().unwrap().below(n)
    }

    fn is(&self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn some_control(&self) -> Option<JobControl> {
        let controls = self.controls.lock().unwrap();
        let place = self.below(controls.len().max(1) as u64) as usize;
        controls.get(place).cloned()
    }

    /// What hostile code does before it answers a question: where it waits or forks it panics.
    fn misbehaves(&self) {
        self.panics_or_calls(6);
    }

    /// What a clone and a drop do, which are on any thread. There a wait is a wait.
    fn misbehaves_anywhere(&self) {
        self.panics_or_calls(1);
    }

    fn panics_or_calls(&self, ways: u64) {
        if !self.is_on.load(SeqCst) || thread::panicking() {
            return;
        }
        let set = self.set.lock().unwrap().clone();
        let less = |left: usize| left.checked_sub(1);
        let may_submit = || self.submits.fetch_update(SeqCst, SeqCst, less).is_ok();
        if self.panics != 0
            && self.is(self.panics)
            && let Some(set) = &set
        {
            match self.below(ways) {
                1 => drop(set.spawn_fn(|| ()).map(JobHandle::get)),
                2 => drop(join(|| (), || ())),
                3 => set.drain(),
                4 => urgency::block_on(std::future::pending::<()>()),
                _ => panic!("on purpose, by lot"),
            }
        }
        match (self.below(40), set) {
            (0, Some(set)) => drop(set.stats()),
            (1, Some(set)) => set.request(self.below(u64::MAX)),
            (2, Some(set)) if may_submit() => drop(set.spawn_fn(|| fib(5)).map(JobHandle::detach)),
            (3, Some(set)) if may_submit() => {
                let job = set
                    .job()
                    .demand(demand(&mut self.lots.lock().unwrap().clone()));
                drop(job.spawn_fn(|| fib(5)).map(JobHandle::detach));
            }
            (4, _) => {
                let all = |it: JobControl| (it.stats(), it.state(), it.times(), it.period());
                drop(self.some_control().map(all));
            }
            (5, _) => {
                let demand = demand(&mut self.lots.lock().unwrap().clone());
                let _changed = self.some_control().map(|it| it.set_demand(demand));
            }
            (6, _) if self.is(8) => self.some_control().iter().for_each(JobControl::cancel),
            (7, _) => {
                let runtime = self.runtimes.lock().unwrap().pop();
                drop(runtime);
            }
            (8, _) => {
                let runtime = self.runtimes.lock().unwrap().last().cloned();
                if let Some(runtime) = runtime {
                    runtime.spawn(async {}).detach();
                    let _ = (runtime.stats(), runtime.set_schedule(Schedule::Prompt));
                    let _ = runtime.set_demand(Demand::default());
                }
            }
            (9, _) if self.is(8) => thread::sleep(Duration::from_micros(self.below(3000))),
            _ => {}
        }
    }
}

/// What a job asks for; much of it cannot be had.
pub fn demand(random: &mut Random) -> Demand {
    let [period, work] =
        [random.below(3), random.below(2)].map(|it| [1_000_000, u64::MAX, 0][it as usize]);
    let task = Task {
        longest: [period, u64::MAX, 0][random.below(3) as usize],
        ..Task::new(work, work / (1 + random.below(3)), period)
    };
    Demand {
        weight: [1, 3, u32::MAX, 0][random.below(13).min(3) as usize],
        group: (random.below(3) == 0).then(|| Group::new(random.below(3))),
        priority: [0, 1, u8::MAX][random.below(3) as usize],
        min_cores: [0, 0, 0, 1, 3, usize::MAX][random.below(6) as usize],
        max_cores: [usize::MAX, 1, 2, 0][random.below(13).min(3) as usize],
        deadline: [None, Some(0), Some(u64::MAX)][random.below(3) as usize],
        task: (random.below(6) == 0).then_some(task),
    }
}

#[derive(Clone)]
pub struct BetweenJobs {
    pub world: Arc<World>,
    pub boundary: Boundary,
    pub is_partitioned: bool,
    pub is_work_conserving: bool,
}

impl CorePolicy for BetweenJobs {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        let world = self.world.clone();
        world.misbehaves();
        let (jobs, count) = (cores.jobs(), cores.count() as u64);
        let any_job = || match world.below(8) {
            0 => JobId(world.below(u64::MAX)),
            lot => jobs
                .get(lot as usize % jobs.len().max(1))
                .map_or(JobId(0), |it| it.id()),
        };
        // A job that has nothing may have something then.
        let soon = cores.now() + 1 + world.below(2_000_000);
        to.set_timer(soon)?;
        match world.below(14) {
            0 => {}
            1 => (0..count).try_for_each(|core| to.give(core as usize, any_job()))?,
            2 => to.give(world.below(count + 2) as usize, any_job())?,
            3 => (0..2).try_for_each(|_| to.give(0, any_job()))?,
            4 => cores.available().try_for_each(|core| to.give(core, None))?,
            5 => to.give(usize::MAX, None)?,
            6 => {
                let counts: Vec<_> = jobs
                    .iter()
                    .map(|_| world.below(count + 1) as usize)
                    .collect();
                to.give_counts(cores, &counts)?;
            }
            7 => to.give_counts(cores, &[usize::MAX; 2])?,
            8 => to.set_timer(world.below(cores.now().max(1)))?,
            9 => to.set_cache_ways(any_job(), u64::MAX)?,
            10 => {
                let mut decisions = world.decisions.lock().unwrap();
                let other = decisions.pop().unwrap_or_default();
                decisions.push(std::mem::replace(to, other));
            }
            11 => {
                // Of the same table, asked once more.
                let mut copy = cores.clone();
                if let Ok(made) = copy.decide(&mut Shares::default(), event) {
                    *to = made.clone();
                }
            }
            12 => Err(DecisionError::Replaced)?,
            _ => to.fit(cores)?,
        }
        Ok(())
    }

    fn admit(&mut self, id: JobId, _: &Demand, _: &Cores) -> Result<(), Refusal> {
        self.world.misbehaves();
        match self.world.below(6) {
            _ if !self.world.is_on.load(SeqCst) => Ok(()),
            0 => Err(Refusal::Own("by lot")),
            1 => Err(Refusal::UnknownJob(id)),
            _ => Ok(()),
        }
    }

    fn refuses(&self) -> bool {
        self.world.is(2)
    }

    fn period(&self, _: JobId, _: &Cores) -> Option<u64> {
        self.world.misbehaves();
        [None, Some(0), Some(u64::MAX)][self.world.below(3) as usize]
    }

    fn boundary(&self) -> Boundary {
        self.boundary
    }

    fn is_partitioned(&self) -> bool {
        self.is_partitioned
    }

    fn is_work_conserving(&self) -> bool {
        self.is_work_conserving
    }
}

/// Its clone and its drop misbehave, too.
pub struct Kept(pub Arc<World>);

impl Clone for Kept {
    fn clone(&self) -> Self {
        self.0.misbehaves_anywhere();
        Kept(self.0.clone())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.misbehaves_anywhere();
    }
}

#[derive(Clone)]
pub struct BetweenLevels(
    pub Arc<World>,
    pub Period,
    #[expect(dead_code, reason = "for its clone and drop")] pub Kept,
);

impl fmt::Debug for BetweenLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("between levels")
    }
}

impl BetweenLevels {
    fn any(&self) -> Seat {
        let level = [0, 1, 63][self.0.below(3) as usize];
        match self.0.below(4) {
            0 => Seat::PROMPT,
            // A seat for good is one that donates.
            1 if self.1 != Period::Never => Seat::at(level, Otherwise::Wait),
            _ => Seat::at(level, Otherwise::Donate).with_ahead(self.0.below(u64::MAX)),
        }
    }
}

impl LevelSchedule for BetweenLevels {
    fn period(&self) -> Period {
        self.0.misbehaves();
        self.1
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        self.0.misbehaves();
        self.any()
    }

    fn settle(&mut self, _: &[u64]) -> u64 {
        self.0.misbehaves();
        self.0.below(u64::MAX)
    }

    fn reallocate(&mut self, _: &[Use], seats: &mut [Seat]) {
        self.0.misbehaves();
        seats.iter_mut().for_each(|seat| *seat = self.any());
    }

    fn is_work_conserving(&self) -> bool {
        self.0.is(2)
    }
}

/// An order, and the policy of one worker.
#[derive(Clone)]
pub struct WithinLevel(
    pub Arc<World>,
    #[expect(dead_code, reason = "for its clone and drop")] pub Kept,
);

impl fmt::Debug for WithinLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("within a level")
    }
}

impl WithinLevel {
    fn number(&self) -> usize {
        [0, 1, 2, 63, 64, usize::MAX][self.0.below(6) as usize]
    }

    fn queue(&self) -> Queue {
        [Queue::Mugging, Queue::Regular, Queue::Shared(self.number())][self.0.below(3) as usize]
    }
}

impl PoolOrder for WithinLevel {
    /// Another one at each question, though it is said that it never changes.
    fn layout(&self) -> Layout {
        let queues = QueueLayout {
            shared: [1, 1, 2, 64][self.0.below(4) as usize],
            capacity: 1 + self.0.below(3) as usize,
            by_depth: self.0.is(2),
            is_dealt: self.0.is(2),
            is_lock_free: self.0.is(2),
            spawners_wait: self.0.is(2),
        };
        [Layout::Central, Layout::Deques, Layout::Queues(queues)][self.0.below(3) as usize]
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(self.clone())
    }
}

impl PoolPolicy for WithinLevel {
    fn place(&mut self, _: Arrival, _: usize) -> Place {
        self.0.misbehaves();
        match self.0.below(5) {
            0 => Place::Tail(self.queue()),
            1 => Place::Worker(self.number()),
            2 => Place::Slot,
            3 => Place::Full,
            _ => Place::Dropped,
        }
    }

    fn take_from(&mut self, _: Sight) -> Source {
        self.0.misbehaves();
        let amount = [Amount::One, Amount::Half][self.0.below(2) as usize];
        match self.0.below(6) {
            0 => Source::Head(self.queue()),
            1 => Source::Own(
                [End::Newest, End::Oldest, End::Slot, End::Deepest][self.0.below(4) as usize],
            ),
            2 => Source::OwnDeque,
            3 => Source::Steal {
                victim: self.number(),
                amount,
                least: self.number(),
            },
            4 => Source::Advert { amount },
            _ => Source::Nowhere,
        }
    }

    fn choose(&mut self, _: usize, _: Chooser) -> usize {
        self.0.misbehaves();
        self.number()
    }

    fn after_steal(&mut self, _: Left) -> Place {
        Place::Dropped
    }

    fn shed(&mut self, _: usize) -> Shed {
        self.0.misbehaves();
        let number = self.number();
        [
            Shed::Keep,
            Shed::Ask(number),
            Shed::Advertise,
            Shed::Deal(number),
        ][self.0.below(4) as usize]
    }
}
