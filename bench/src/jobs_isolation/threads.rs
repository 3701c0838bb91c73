//! The same with threads: a rayon pool for the requests, plain threads for the neighbour.

use super::groups::Group;
use super::{COMPUTATIONS, CORES, Load, Scene};
use crate::engines;
use std::io::Read as _;
use std::thread;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};
use urgency_measure::{Sample, class};

/// Without the neighbour.
pub fn alone(load: Load) -> Sample {
    run(load, 0, || (), || ())
}

/// Beside the neighbour, all threads alike.
pub fn beside(load: Load) -> Sample {
    run(load, COMPUTATIONS, || (), || ())
}

/// The neighbour's threads are as nice as the kernel knows.
pub fn beside_nice(load: Load) -> Sample {
    run(load, COMPUTATIONS, || (), class::become_nice)
}

/// The two are in control groups of equal weight.
pub fn beside_in_groups(load: Load) -> Sample {
    let groups = (Group::new("quiet"), Group::new("neighbour"));
    let (Ok(quiet), Ok(neighbour)) = &groups else {
        return Sample::new().with("cgroup_allowed", 0.0);
    };
    let sample = run(load, COMPUTATIONS, || quiet.enter(), || neighbour.enter());
    sample.with("cgroup_allowed", 1.0)
}

fn run(
    load: Load,
    computations: usize,
    quiet: impl Fn() + Send + Sync,
    neighbour: impl Fn() + Send + Sync,
) -> Sample {
    let scene = Scene::new(load);
    let (asked, mut requests) = socket();
    thread::scope(|threads| {
        for _ in 0..computations {
            threads.spawn(|| {
                neighbour();
                scene.compute(InTurn);
            });
        }
        threads.spawn(|| {
            quiet();
            // Its threads begin in the group of their starter.
            let pool = engines::rayon::pool(CORES);
            let mut bytes = [0; ARRIVAL];
            while requests.read_exact(&mut bytes).is_ok() {
                let (scene, request) = (scene.clone(), arrival(bytes));
                pool.spawn(move || scene.answer(request, engines::rayon::Join));
            }
        });
        scene.measure(asked)
    })
}

/// One after the other: a plain thread has nobody to fork for.
#[derive(Clone, Copy)]
struct InTurn;

impl engines::Join for InTurn {
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        (a(), b())
    }
}
