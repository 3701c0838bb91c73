//! Random programs with their serial results.

use super::common::Random;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use urgency::{
    JoinHandle, LevelId, Runtime, Shutdown, block_on, blocking, join, net::UnixStream, scope, time,
    yield_now,
};

/// How many levels a program needs.
pub const LEVELS: u64 = 4;

/// A random program: a tree, whose value is defined without a scheduler.
#[derive(Debug, Clone)]
pub enum Program {
    Leaf(u64),
    Join(Box<[Program; 2]>),
    Scope(Vec<Program>),
    /// A closure of its own, waited for with `get`, at most as urgent as the level says.
    Closure(u64, Box<Program>),
    /// A task, waited for in whatever way fits.
    Task(u64, Box<Program>),
    /// Run in its place, after that has given way in some manner.
    GiveWay(u64, Box<Program>),
    /// A task of its own that writes its value into a socket, which is read here.
    Wire(u64, Box<Program>),
    /// A task that nobody waits for: it is cancelled, dropped, or forgotten.
    Stray(u64, Box<Program>),
    /// Panics; caught around it.
    Panics(Box<Program>),
}

use Program::*;

impl Program {
    fn random(random: &mut Random, size: u64) -> Program {
        if size <= 1 {
            return Leaf(random.below(1000));
        }
        let mut sub = |size| Box::new(Program::random(random, size));
        match size % 12 {
            0 | 1 => Join(Box::new([*sub(size / 2), *sub(size - size / 2 - 1)])),
            2 | 3 => Scope((0..4).map(|_| *sub(size / 4)).collect()),
            4 | 5 => Closure(size, sub(size - 1 - size / 16)),
            6 | 7 => Task(size, sub(size - 1 - size / 16)),
            8 => GiveWay(size, sub(size - 1)),
            9 => Stray(size, sub(size - 1)),
            10 => Wire(size, sub(size - 1)),
            _ => Panics(sub(size - 1)),
        }
    }

    /// What it computes.
    fn value(&self) -> u64 {
        match self {
            Leaf(value) => *value,
            Join(both) => both[0]
                .value()
                .wrapping_mul(3)
                .wrapping_add(both[1].value()),
            Scope(children) => children
                .iter()
                .map(Program::value)
                .fold(7, u64::wrapping_add),
            Closure(_, inner) | Task(_, inner) => inner.value().wrapping_add(1),
            GiveWay(_, inner) | Stray(_, inner) | Wire(_, inner) => inner.value(),
            Panics(inner) => inner.value() ^ 1,
        }
    }

    /// Runs it on the calling stack, at level `level`.
    fn run(&self, level: u64) -> u64 {
        match self {
            Leaf(value) => *value,
            Join(both) => {
                let (a, b) = join(|| both[0].run(level), || both[1].run(level));
                a.wrapping_mul(3).wrapping_add(b)
            }
            Scope(children) => {
                let sum = AtomicU64::new(7);
                scope(|s| {
                    for (i, child) in children.iter().enumerate() {
                        let sum = &sum;
                        s.spawn(move || sum.fetch_add(child.run(level), Relaxed));
                        if i % 3 == 2 {
                            s.sync();
                        }
                    }
                });
                sum.into_inner()
            }
            Closure(n, inner) | Task(n, inner) => {
                let is_task = matches!(self, Task(..));
                wait(start(inner, is_task, *n, level), n / LEVELS).wrapping_add(1)
            }
            GiveWay(n, inner) => {
                match n % 5 {
                    0 => blocking(std::thread::yield_now),
                    1 => block_on(yield_now()),
                    2 => block_on(time::sleep(Duration::from_micros(n % 50))),
                    3 => urgency::scheduling_point(),
                    _ => drop(block_on(time::timeout(
                        Duration::ZERO,
                        std::future::pending::<()>(),
                    ))),
                }
                inner.run(level)
            }
            Wire(n, inner) => {
                let (here, there) = UnixStream::pair().unwrap();
                let (program, at) = (inner.clone(), n % (level + 1));
                let write = async move {
                    let value = program.run(at).to_le_bytes();
                    yield_now().await;
                    // If the reader was cancelled, nobody reads.
                    let _ = there.write_all(&value).await;
                };
                urgency::at(LevelId::new(at as u8).unwrap())
                    .spawn(write)
                    .detach();
                let mut value = [0; 8];
                block_on(here.read_exact(&mut value)).unwrap();
                u64::from_le_bytes(value)
            }
            Stray(n, inner) => {
                let stray = start(inner, n % 2 == 0, *n, level);
                match n / 2 % 3 {
                    0 => stray.abort(),
                    1 => stray.detach(),
                    _ => std::mem::forget(stray),
                }
                inner.run(level)
            }
            Panics(inner) => {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    let value = inner.run(level);
                    join(|| panic!("on purpose"), || std::hint::black_box(value))
                }));
                assert!(caught.is_err());
                inner.value() ^ 1
            }
        }
    }
}

/// Starts a program of its own, at a level that the caller may wait for.
fn start(program: &Program, is_task: bool, n: u64, level: u64) -> JoinHandle<u64> {
    let program = program.clone();
    let at = n % (level + 1);
    let id = LevelId::new(at as u8).unwrap();
    match (is_task, n % 3) {
        (true, 0) => urgency::at(id).spawn(async move { program.run(at) }),
        (true, _) => urgency::at(id).spawn(async move {
            yield_now().await;
            let task = start(&program, n % 3 == 1, n / 7, at);
            task.await.unwrap()
        }),
        (false, _) => urgency::at(id).spawn_fn(move || program.run(at)),
    }
}

fn wait(mut handle: JoinHandle<u64>, n: u64) -> u64 {
    match n % 5 {
        0 => block_on(handle).unwrap(),
        1 => handle.share().get().unwrap(),
        2 => loop {
            if let Some(result) = handle.try_get() {
                return result.unwrap();
            }
            if let Ok(result) = block_on(time::timeout(Duration::from_micros(100), &mut handle)) {
                return result.unwrap();
            }
        },
        3 => {
            // Waited for before it is shared.
            let limited = time::timeout(Duration::from_micros(10), &mut handle);
            block_on(limited)
                .unwrap_or_else(|_| handle.share().get())
                .unwrap()
        }
        _ => handle.get().unwrap(),
    }
}

/// Some random programs at once on `runtime`, which has [`LEVELS`] levels, and its shutdown: each has its
/// serial result, and every task is accounted for.
pub fn run_random(runtime: Runtime, seed: u64, size: u64) {
    let mut random = Random::new(seed);
    let programs: Vec<_> = (0..8)
        .map(|_| {
            let size = size / 2 + random.below(size);
            Program::random(&mut random, size)
        })
        .collect();
    let lowest = LEVELS - 1;
    let handles: Vec<_> = programs
        .iter()
        .map(|program| {
            let (program, level) = (program.clone(), random.below(LEVELS));
            let id = LevelId::new(level as u8).unwrap();
            runtime.at(id).spawn_fn(move || program.run(level))
        })
        .collect();
    for (handle, program) in handles.into_iter().zip(&programs) {
        assert_eq!(
            handle.get().unwrap(),
            program.value(),
            "seed {seed}: {program:?}"
        );
    }
    for program in &programs {
        assert_eq!(
            runtime.run(|| program.run(lowest)),
            program.value(),
            "seed {seed}"
        );
    }
    let report = runtime.shutdown(Shutdown::Drain);
    assert_eq!(
        (report.left, report.panicked),
        (0, 0),
        "seed {seed}: {report:?}"
    );
    assert_eq!(
        report.finished + report.cancelled,
        report.spawned,
        "seed {seed}: {report:?}"
    );
}
