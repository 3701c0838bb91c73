//! Random fork-join programs that call every method of `Scope` from every descendant of it, and `join`, `par`,
//! `blocking` and spawns between them. Many joins wait until their second half is stolen, so that the joiner leaps.
//! Each part runs exactly once, a `sync` in the code that opened a scope finds no child alive, and the program ends.

mod common;

use common::{Random, ends, quiet, with_levels};
use std::{
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use urgency::{Runtime, Scope, block_on, blocking, join, par, scheduling_point, scope, yield_now};

urgency::levels! { App: Urgent > Usual }

/// How long a `join` waits for its second half to be stolen, if there is another worker.
const STEAL: Duration = Duration::from_micros(200);

type Block = Arc<[Step]>;

#[derive(Debug)]
enum Step {
    /// Counts itself, and computes for a while.
    Leaf {
        number: usize,
        turns: u64,
    },
    Join(Block, Block),
    /// As `Join`, whose first half waits until the second is stolen; with scheduling points, or without.
    Torn {
        first: Block,
        second: Block,
        answers: bool,
    },
    Scope(Block),
    /// Into the scope that is so far out.
    Spawn(usize, Block),
    /// Of the scope that is so far out.
    Sync(usize),
    ForEach(usize, Block),
    Blocking(Block),
    /// A closure of its own, and a wait for it.
    Closure(Block),
    /// The same, more urgent.
    UrgentClosure(Block),
    Task(Block),
    Yield,
    /// In a child of a scope with another child, which panics.
    BesidePanic(Block),
}

/// Makes programs.
struct Maker {
    random: Random,
    leaves: usize,
}

impl Maker {
    /// A block of about `size` steps.
    fn block(&mut self, mut size: u64) -> Block {
        let mut steps = Vec::new();
        while size > 0 {
            let part = 1 + self.random.below(size);
            size -= part;
            steps.push(self.step(part));
        }
        steps.into()
    }

    fn step(&mut self, size: u64) -> Step {
        let rest = size - 1;
        if rest == 0 {
            return match self.random.below(8) {
                0..=2 => Step::Sync(self.random.below(3) as usize),
                3 => Step::Yield,
                _ => {
                    self.leaves += 1;
                    Step::Leaf {
                        number: self.leaves - 1,
                        turns: self.random.below(200),
                    }
                }
            };
        }
        match self.random.below(16) {
            0 | 1 => Step::Join(self.block(rest / 2), self.block(rest - rest / 2)),
            2..=4 => Step::Torn {
                first: self.block(rest / 2),
                second: self.block(rest - rest / 2),
                answers: self.random.below(3) != 0,
            },
            5..=7 => Step::Scope(self.block(rest)),
            8..=10 => Step::Spawn(self.random.below(3) as usize, self.block(rest)),
            11 => Step::ForEach(2 + self.random.below(3) as usize, self.block(rest / 3)),
            12 => Step::Blocking(self.block(rest)),
            13 => match self.random.below(3) {
                0 => Step::Closure(self.block(rest)),
                1 => Step::UrgentClosure(self.block(rest)),
                _ => Step::Task(self.block(rest)),
            },
            14 => Step::BesidePanic(self.block(rest)),
            _ => Step::Spawn(0, self.block(rest)),
        }
    }
}

/// Adds how often each leaf runs, if `block` does `times`.
fn expect(block: &Block, times: u32, runs: &mut [u32]) {
    for step in block.iter() {
        match step {
            Step::Leaf { number, .. } => runs[*number] += times,
            Step::Join(a, b)
            | Step::Torn {
                first: a,
                second: b,
                ..
            } => {
                expect(a, times, runs);
                expect(b, times, runs);
            }
            Step::ForEach(items, inner) => expect(inner, times * *items as u32, runs),
            Step::Scope(inner)
            | Step::Spawn(_, inner)
            | Step::Blocking(inner)
            | Step::Closure(inner)
            | Step::UrgentClosure(inner)
            | Step::Task(inner)
            | Step::BesidePanic(inner) => expect(inner, times, runs),
            Step::Sync(_) | Step::Yield => {}
        }
    }
}

/// What all parts of a program share.
#[derive(Debug)]
struct Run {
    runs: Vec<AtomicU32>,
    workers: usize,
}

/// The scopes around a piece of code, the innermost first.
trait Scopes: Sync {
    /// Spawns `block` into the scope that is `up` further out, or the outermost.
    fn spawn(&self, up: usize, block: Block, run: Arc<Run>);
    fn sync(&self, up: usize);
    /// How many children of the innermost have not ended.
    fn alive(&self) -> usize;
}

#[derive(Clone, Copy)]
struct Inner<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    alive: &'env AtomicUsize,
    outer: Option<&'env (dyn Scopes + 'env)>,
}

impl Scopes for Inner<'_, '_> {
    fn spawn(&self, up: usize, block: Block, run: Arc<Run>) {
        match self.outer {
            Some(outer) if up > 0 => outer.spawn(up - 1, block, run),
            _ => {
                let here = *self;
                here.alive.fetch_add(1, SeqCst);
                self.scope.spawn(move || {
                    go(&block, &run, Some(&here), false);
                    here.alive.fetch_sub(1, SeqCst);
                });
            }
        }
    }

    fn sync(&self, up: usize) {
        match self.outer {
            Some(outer) if up > 0 => outer.sync(up - 1),
            _ => self.scope.sync(),
        }
    }

    fn alive(&self) -> usize {
        self.alive.load(SeqCst)
    }
}

/// Runs `block`. `opened`: in the code that opened the innermost scope, and in nothing that this began.
fn go(block: &Block, run: &Arc<Run>, scopes: Option<&dyn Scopes>, opened: bool) {
    for step in block.iter() {
        match step {
            Step::Leaf { number, turns } => {
                (0..*turns).for_each(|_| hint::spin_loop());
                run.runs[*number].fetch_add(1, SeqCst);
            }
            Step::Join(a, b) => {
                join(|| go(a, run, scopes, false), || go(b, run, scopes, false));
            }
            Step::Torn {
                first,
                second,
                answers,
            } => {
                let begun = AtomicBool::new(run.workers == 1);
                let first = || {
                    let limit = Instant::now() + STEAL;
                    while !begun.load(SeqCst) && Instant::now() < limit {
                        if *answers {
                            scheduling_point();
                        }
                        hint::spin_loop();
                    }
                    go(first, run, scopes, false);
                };
                join(first, || {
                    begun.store(true, SeqCst);
                    go(second, run, scopes, false);
                });
            }
            Step::Scope(inner) => {
                let alive = AtomicUsize::new(0);
                scope(|s| {
                    let here = Inner {
                        scope: s,
                        alive: &alive,
                        outer: scopes,
                    };
                    go(inner, run, Some(&here), true);
                });
                assert_eq!(alive.into_inner(), 0, "a child outlives its scope");
            }
            Step::Spawn(up, inner) => match scopes {
                Some(scopes) => scopes.spawn(*up, inner.clone(), run.clone()),
                None => go(inner, run, None, false),
            },
            Step::Sync(up) => {
                if let Some(scopes) = scopes {
                    scopes.sync(*up);
                    if opened && *up == 0 {
                        assert_eq!(scopes.alive(), 0, "a child is alive after a sync");
                    }
                }
            }
            Step::ForEach(items, inner) => {
                par::for_each(0..*items, |_| go(inner, run, scopes, false))
            }
            Step::Blocking(inner) => blocking(|| go(inner, run, scopes, opened)),
            Step::Closure(inner) => {
                let (inner, run) = (inner.clone(), run.clone());
                let closure = urgency::spawn_fn(move || go(&inner, &run, None, false));
                closure.get().unwrap();
            }
            Step::UrgentClosure(inner) => {
                let (inner, run) = (inner.clone(), run.clone());
                let closure = urgency::at(Urgent).spawn_fn(move || go(&inner, &run, None, false));
                closure.get().unwrap();
            }
            Step::Task(inner) => {
                let (inner, run) = (inner.clone(), run.clone());
                let task = urgency::spawn(async move {
                    yield_now().await;
                    go(&inner, &run, None, false);
                });
                block_on(task).unwrap();
            }
            Step::Yield => block_on(yield_now()),
            Step::BesidePanic(inner) => {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    scope(|s| {
                        s.spawn(|| panic!("on purpose"));
                        s.spawn(|| go(inner, run, scopes, false));
                        s.sync();
                    });
                }));
                assert!(caught.is_err());
            }
        }
    }
}

/// Runs the program of a seed, as a closure and in a plain thread.
fn run_program(runtime: &Arc<Runtime>, workers: usize, seed: u64) {
    let mut random = Random::new(seed);
    let size = 20 + random.below(100);
    let mut maker = Maker { random, leaves: 0 };
    let program = maker.block(size);
    let mut expected = vec![0; maker.leaves];
    expect(&program, 1, &mut expected);
    let new_run = || {
        let runs = (0..maker.leaves).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Run { runs, workers })
    };
    for is_closure in [true, false] {
        let run = new_run();
        if is_closure {
            let (program, run) = (program.clone(), run.clone());
            let closure = runtime
                .at(Usual)
                .spawn_fn(move || go(&program, &run, None, false));
            closure.get().unwrap();
        } else {
            runtime.run(|| go(&program, &run, None, false));
        }
        let runs: Vec<u32> = run.runs.iter().map(|runs| runs.load(SeqCst)).collect();
        assert_eq!(runs, expected, "seed {seed}, {workers} workers");
    }
}

#[test]
fn random_programs_that_use_every_method_of_a_scope_run_each_part_once_and_end() {
    quiet();
    let seeds = if cfg!(debug_assertions) { 100 } else { 2_000 };
    for workers in [1, 2, 8] {
        let runtime = Arc::new(with_levels::<App>(workers));
        for seed in 0..seeds {
            println!("seed {seed}, {workers} workers");
            let theirs = runtime.clone();
            ends(move || run_program(&theirs, workers, seed));
        }
    }
}
