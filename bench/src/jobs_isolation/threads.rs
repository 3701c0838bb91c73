//! The same with threads: a rayon pool for the requests, plain threads for the neighbour.

use super::groups::Group;
use super::{COMPUTATIONS, CORES, Config, Scene};
use crate::engines;
use std::io::Read as _;
use std::thread;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};
use urgency_measure::{Sample, class};

/// Without the neighbour.
pub fn alone(config: Config) -> Sample {
    run(config, 0, || (), || ())
}

/// Beside the neighbour, all threads alike.
pub fn beside(config: Config) -> Sample {
    run(config, COMPUTATIONS, || (), || ())
}

/// The neighbour's threads are as nice as the kernel knows.
pub fn beside_nice(config: Config) -> Sample {
    run(config, COMPUTATIONS, || (), class::become_nice)
}

/// The two are in control groups of equal weight.
pub fn beside_in_groups(config: Config) -> Sample {
    let groups = (Group::new("quiet"), Group::new("neighbour"));
    let (Ok(quiet), Ok(neighbour)) = &groups else {
        return Sample::new().with("cgroup_allowed", 0.0);
    };
    let sample = run(config, COMPUTATIONS, || quiet.enter(), || neighbour.enter());
    sample.with("cgroup_allowed", 1.0)
}

fn run(
    config: Config,
    computations: usize,
    quiet: impl Fn() + Send + Sync,
    neighbour: impl Fn() + Send + Sync,
) -> Sample {
    let scene = Scene::new(config);
    let (asked, mut requests) = socket();
    thread::scope(|threads| {
        for _ in 0..computations {
            threads.spawn(|| {
                neighbour();
                scene.compute(&InTurn);
            });
        }
        threads.spawn(|| {
            quiet();
            // Its threads begin in the group of their starter.
            let pool = engines::rayon::pool(CORES);
            let mut bytes = [0; ARRIVAL];
            while requests.read_exact(&mut bytes).is_ok() {
                let (scene, request) = (scene.clone(), arrival(bytes));
                pool.spawn(move || scene.answer(request, &engines::rayon::Join));
            }
        });
        scene.measure(asked)
    })
}

/// One after the other: a plain thread has nobody to fork for.
struct InTurn;

impl engines::Join for InTurn {
    fn join(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
        a();
        b();
    }
}
