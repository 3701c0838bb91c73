//! Random programs of parallel loops beside the same programs of sequential ones: the same result, the same panic, and
//! each value dropped once, wherever a closure or a drop panics.
//!
//! A program is a list of steps, each of which makes one vector of values out of the last. The loops run over slices,
//! chunks and ranges, and over [`Items`] that own their values, that are zipped and that are chained, as a program may
//! write them.
//!
//! Where it panics is one of these:
//! - nowhere;
//! - at the first *value* of a kind, which the sequential program meets as well, so both panic or none;
//! - at the n-th *call* of any closure, or at the n-th *drop*. The calls of a parallel loop are in another order, and
//!   there may be more of them, so it panics or has the right result.
//!
//! `URGENCY_RANDOM_PAR` says how many programs, `URGENCY_TEST_SEED` which.

mod common;

use common::{Random, ends, number, quiet, runtime};
use std::{
    cmp::Ordering,
    hint, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};
use urgency::{
    join,
    par::{self, Items},
    scheduling_point, scope,
};

/// What the values of a program have in common.
#[derive(Debug)]
struct Ledger {
    alive: AtomicIsize,
    dropped_twice: AtomicUsize,
    calls_left: AtomicU64,
    drops_left: AtomicU64,
    bad: u64,
}

/// Where a program panics.
#[derive(Clone, Copy, Debug)]
enum Fuse {
    Nowhere,
    /// At values that are so modulo [`KINDS`].
    Value(u64),
    Call(u64),
    Drop(u64),
}

const KINDS: u64 = 4_001;

impl Ledger {
    fn new(fuse: Fuse) -> Arc<Self> {
        let (calls, drops, bad) = match fuse {
            Fuse::Nowhere => (u64::MAX, u64::MAX, KINDS),
            Fuse::Value(bad) => (u64::MAX, u64::MAX, bad),
            Fuse::Call(calls) => (calls, u64::MAX, KINDS),
            Fuse::Drop(drops) => (u64::MAX, drops, KINDS),
        };
        Arc::new(Ledger {
            alive: AtomicIsize::new(0),
            dropped_twice: AtomicUsize::new(0),
            calls_left: AtomicU64::new(calls),
            drops_left: AtomicU64::new(drops),
            bad,
        })
    }

    /// A closure is called.
    fn call(&self) {
        if self.calls_left.fetch_sub(1, SeqCst) == 1 {
            panic!("on purpose, in a call");
        }
    }
}

/// The mark of a value that was not dropped.
const LIVES: u64 = 0x5afe_c0de_5afe_c0de;

/// A map `n -> slope * n + offset`. To combine two of them is associative, and not commutative.
#[derive(Debug)]
struct Value {
    slope: u64,
    offset: u64,
    /// Where it stood in the step's vector: nothing compares it, so it shows whether sorting is stable.
    place: usize,
    mark: Box<u64>,
    ledger: Arc<Ledger>,
}

impl Value {
    fn new(slope: u64, offset: u64, place: usize, ledger: &Arc<Ledger>) -> Self {
        ledger.alive.fetch_add(1, SeqCst);
        Value {
            slope,
            offset,
            place,
            mark: Box::new(LIVES),
            ledger: ledger.clone(),
        }
    }

    /// A closure looks at it.
    fn counted(&self) -> u64 {
        self.ledger.call();
        self.offset
    }

    fn is_kept(&self, of: u64) -> bool {
        !self.counted().is_multiple_of(of)
    }

    /// Work whose length differs from value to value.
    fn changed(&self, by: u64) -> Value {
        let turns = match mixed(self.offset ^ by) % 64 {
            0 => 3_000,
            1..=8 => 100,
            _ => 1,
        };
        let turned = (0..turns).fold(self.offset ^ by, |n, _| hint::black_box(mixed(n)));
        if turned.is_multiple_of(32) {
            scheduling_point();
        }
        self.ledger.call();
        if self.offset % KINDS == self.ledger.bad {
            panic!("on purpose, at a value");
        }
        Value::new(self.slope | 1, turned, self.place, &self.ledger)
    }

    fn then(&self, next: &Value) -> Value {
        self.ledger.call();
        let offset = self
            .offset
            .wrapping_mul(next.slope)
            .wrapping_add(next.offset);
        Value::new(
            self.slope.wrapping_mul(next.slope),
            offset,
            self.place,
            &self.ledger,
        )
    }

    // Where a drop panics as a function returns, the compiler forgets what the function returns (rust-lang/rust#47949).
    // So the two below drop what they take before.

    fn turned(self, by: u64) -> Value {
        let changed = self.changed(by);
        drop(self);
        changed
    }

    fn joined(self, next: &Value) -> Value {
        let both = self.then(next);
        drop(self);
        both
    }

    fn seen(&self) -> (u64, u64, usize) {
        (self.slope, self.offset, self.place)
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        self.ledger.call();
        Value::new(self.slope, self.offset, self.place, &self.ledger)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if mem::replace(&mut *self.mark, 0) != LIVES {
            self.ledger.dropped_twice.fetch_add(1, SeqCst);
        }
        self.ledger.alive.fetch_sub(1, SeqCst);
        if self.ledger.drops_left.fetch_sub(1, SeqCst) == 1 && !thread::panicking() {
            panic!("on purpose, in a drop");
        }
    }
}

fn mixed(n: u64) -> u64 {
    (n ^ n >> 29)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        .rotate_left(23)
}

/// Items that own their values.
struct Owned(Vec<Value>);

impl Items for Owned {
    type Item = Value;
    type Iter = std::vec::IntoIter<Value>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        Owned(self.0.split_off(at))
    }

    fn iter(self) -> Self::Iter {
        self.0.into_iter()
    }
}

/// The items of one, then the items of the other.
struct Chained<A, B>(A, B);

impl<A: Items, B: Items<Item = A::Item>> Items for Chained<A, B> {
    type Item = A::Item;
    type Iter = std::iter::Chain<A::Iter, B::Iter>;

    fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        let first = self.0.len();
        Chained(
            self.0.split_off(at.min(first)),
            self.1.split_off(at.saturating_sub(first)),
        )
    }

    fn iter(self) -> Self::Iter {
        self.0.iter().chain(self.1.iter())
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Map(u64),
    /// Of items that own their values.
    MapOwned(u64),
    ChangeInPlace(u64),
    Filter(u64),
    Reduce,
    /// One value for each chunk, by a loop in the loop.
    ReduceChunks(usize),
    ReverseChunks(usize),
    Scan,
    Sort,
    SortBy,
    SortByKey,
    /// With the vector's own reversal.
    Zip,
    /// Its later half first.
    Chain(u64),
    /// Each half is changed by a branch of a `join`.
    Halves(u64),
    /// Each chunk is changed by a child of a scope.
    Children(usize, u64),
}

impl Step {
    fn random(random: &mut Random) -> Self {
        let by = random.below(1 << 40);
        let most = 1 << random.below(12);
        let size = 1 + random.below(most) as usize;
        match random.below(15) {
            0 => Step::Map(by),
            1 => Step::MapOwned(by),
            2 => Step::ChangeInPlace(by),
            3 => Step::Filter(2 + by % 7),
            4 => Step::Reduce,
            5 => Step::ReduceChunks(size),
            6 => Step::ReverseChunks(size),
            7 => Step::Scan,
            8 => Step::Sort,
            9 => Step::SortBy,
            10 => Step::SortByKey,
            11 => Step::Zip,
            12 => Step::Chain(by),
            13 => Step::Halves(by),
            _ => Step::Children(size.max(64), by),
        }
    }

    fn parallel(self, values: &mut Vec<Value>) {
        match self {
            Step::Map(by) => *values = par::map(&values[..], |value| value.changed(by)),
            Step::MapOwned(by) => *values = par::map(owned(values), |value| value.turned(by)),
            Step::ChangeInPlace(by) => change_all(values, by),
            Step::Filter(of) => {
                let keep = |mut kept: Vec<Value>, value: Value| {
                    match value.is_kept(of) {
                        true => kept.push(value),
                        false => drop(value),
                    }
                    kept
                };
                *values = par::fold(owned(values), Vec::new, keep, |mut earlier, later| {
                    earlier.extend(later);
                    earlier
                });
            }
            Step::Reduce => *values = Vec::from_iter(reduced(values)),
            Step::ReduceChunks(size) => {
                let one = |chunk: &[Value]| reduced(chunk).expect("a chunk has elements");
                *values = par::map(par::chunks(values, size), one);
            }
            Step::ReverseChunks(size) => {
                par::for_each(par::chunks_mut(values, size), <[Value]>::reverse);
            }
            Step::Scan => par::scan(values, Value::then),
            Step::Sort => par::sort_by(values, |a, b| a.counted().cmp(&b.offset)),
            Step::SortBy => par::sort_by(values, downwards),
            Step::SortByKey => par::sort_by_key(values, |value| value.counted() % 7),
            Step::Zip => {
                let other = par::map(0..values.len(), |n| values[values.len() - 1 - n].clone());
                let pairs = par::zip(owned(values), &other[..]);
                *values = par::map(pairs, |(a, b)| a.joined(b));
            }
            Step::Chain(by) => {
                let (early, late) = values.split_at(values.len() / 2);
                *values = par::map(Chained(late, early), |value| value.changed(by));
            }
            Step::Halves(by) => {
                let mut late = values.split_off(values.len() / 2);
                join(
                    || Step::MapOwned(by).parallel(values),
                    || Step::Map(by).parallel(&mut late),
                );
                values.extend(late);
            }
            Step::Children(size, by) => scope(|s| {
                for chunk in values.chunks_mut(size) {
                    s.spawn(move || change_all(chunk, by));
                }
            }),
        }
    }

    fn sequential(self, values: &mut Vec<Value>) {
        let reduced = |values: &[Value]| values.iter().cloned().reduce(|a, b| a.then(&b));
        match self {
            Step::Map(by)
            | Step::MapOwned(by)
            | Step::Halves(by)
            | Step::ChangeInPlace(by)
            | Step::Children(_, by) => values.iter_mut().for_each(|v| *v = v.changed(by)),
            Step::Filter(of) => values.retain(|value| value.is_kept(of)),
            Step::Reduce => *values = Vec::from_iter(reduced(values)),
            Step::ReduceChunks(size) => {
                *values = values.chunks(size).filter_map(reduced).collect();
            }
            Step::ReverseChunks(size) => values.chunks_mut(size).for_each(<[Value]>::reverse),
            Step::Scan => {
                (1..values.len()).for_each(|n| values[n] = values[n - 1].then(&values[n]));
            }
            Step::Sort => values.sort_by_key(|value| value.offset),
            Step::SortBy => values.sort_by(downwards),
            Step::SortByKey => values.sort_by_key(|value| value.offset % 7),
            Step::Zip => {
                let pairs = values.iter().zip(values.iter().rev());
                *values = pairs.map(|(a, b)| a.then(b)).collect();
            }
            Step::Chain(by) => {
                let (early, late) = values.split_at(values.len() / 2);
                let chain = late.iter().chain(early);
                *values = chain.map(|value| value.changed(by)).collect();
            }
        }
    }
}

fn owned(values: &mut Vec<Value>) -> Owned {
    Owned(mem::take(values))
}

fn change_all(values: &mut [Value], by: u64) {
    par::for_each(values, |value: &mut Value| *value = value.changed(by));
}

fn reduced(values: &[Value]) -> Option<Value> {
    par::reduce(values, Value::clone, |a, b| {
        let both = a.joined(&b);
        drop(b);
        both
    })
}

fn downwards(a: &Value, b: &Value) -> Ordering {
    (b.offset % 7).cmp(&(a.counted() % 7))
}

#[derive(Debug)]
struct Program {
    size: usize,
    seed: u64,
    steps: Vec<Step>,
    fuse: Fuse,
}

type Seen = Vec<(u64, u64, usize)>;

impl Program {
    fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Sorting forks, and cuts its merges, from some thousands on.
        let size = match random.below(8) {
            0 => random.below(3),
            1 => 4_000 + random.below(20_000),
            _ => random.below(600),
        };
        let steps = (0..1 + random.below(6))
            .map(|_| Step::random(&mut random))
            .collect();
        let fuse = match random.below(4) {
            0 => Fuse::Nowhere,
            1 => Fuse::Value(random.below(KINDS)),
            2 => Fuse::Call(1 + random.below(4 * size + 2)),
            _ => Fuse::Drop(1 + random.below(2 * size + 2)),
        };
        Program {
            size: size as usize,
            seed,
            steps,
            fuse,
        }
    }

    /// What the program gives; `None` if it panics. In either case it has dropped all its values, each once.
    fn run(&self, step: fn(Step, &mut Vec<Value>), fuse: Fuse) -> Option<Seen> {
        let ledger = Ledger::new(fuse);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let value = |place| {
                let n = mixed(self.seed ^ (place as u64) << 20);
                Value::new(n, mixed(n), place, &ledger)
            };
            let mut values: Vec<Value> = (0..self.size).map(value).collect();
            for &next in &self.steps {
                step(next, &mut values);
                let places = values.iter_mut().enumerate();
                places.for_each(|(place, value)| value.place = place);
            }
            values.iter().map(Value::seen).collect()
        }));
        let (alive, twice) = (&ledger.alive, &ledger.dropped_twice);
        assert_eq!((alive.load(SeqCst), twice.load(SeqCst)), (0, 0), "{self:?}");
        result.ok()
    }
}

#[test]
fn random_programs_of_loops_do_what_sequential_loops_do_and_drop_each_value_once() {
    quiet();
    let first = number("URGENCY_TEST_SEED", 1) << 32;
    let programs = number("URGENCY_RANDOM_PAR", 60);
    for workers in [1, 2, 8] {
        ends(move || {
            let runtime = runtime(workers);
            for seed in first..first + programs {
                let program = Program::random(seed);
                let (fuse, may_panic) = match program.fuse {
                    Fuse::Call(_) | Fuse::Drop(_) => (Fuse::Nowhere, true),
                    fuse => (fuse, false),
                };
                let expected = program.run(Step::sequential, fuse);
                let found = runtime.run(|| program.run(Step::parallel, program.fuse));
                if found.is_some() || !may_panic {
                    assert_eq!(found, expected, "{program:?} on {workers} workers");
                }
            }
        });
    }
}
