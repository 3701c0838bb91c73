//! The job that streams: it loads, modifies and stores an array on each of its cores until it is told to stop.

use super::walls::{self, Walls};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use urgency::jobs::{CoreSet, JobHandle};
use urgency::{scheduling_point, spawn_fn};

/// Numbers between two scheduling points.
const BLOCK: usize = 1 << 15;

/// The stream, which ends when this is dropped.
pub struct Stream {
    set: CoreSet,
    job: Option<JobHandle<()>>,
    tally: Arc<Tally>,
}

/// What it has done so far.
#[derive(Default)]
pub struct Tally {
    modified: AtomicU64,
    stop: AtomicBool,
}

impl Stream {
    /// Starts it on these processors with so many numbers on each, and returns when it has gone over them once. Then
    /// its walls are in force.
    pub fn start(cpus: &[usize], numbers: usize, walls: Walls) -> Stream {
        let builder = CoreSet::builder().pinned_to(cpus.iter().copied());
        let set = walls.build(builder);
        let tally = Arc::new(Tally::default());
        let (cores, theirs) = (cpus.len(), tally.clone());
        let job = set.spawn_fn(move || {
            let others = (1..cores).map(|_| {
                let tally = theirs.clone();
                spawn_fn(move || tally.stream(numbers))
            });
            let others: Vec<_> = others.collect();
            theirs.stream(numbers);
            for other in others {
                other.get().expect("each number is what it was made");
            }
        });
        let stream = Stream {
            set,
            job: Some(job.expect("a job may run")),
            tally,
        };
        while stream.tally.modified() < (cores * numbers) as u64 {
            thread::sleep(Duration::from_millis(1));
        }
        walls::wait(&stream.set);
        stream
    }

    /// What it has done so far.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Ends it; panics if a number is wrong, or the kernel refused a wall meanwhile.
    pub fn end(mut self) {
        walls::wait(&self.set);
        self.tally.stop.store(true, Ordering::Relaxed);
        let job = self.job.take().expect("it ends once");
        job.get().expect("each number is what it was made");
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.tally.stop.store(true, Ordering::Relaxed);
        self.set.drain();
        self.set.release_partition();
    }
}

impl Tally {
    /// How many numbers were modified.
    pub fn modified(&self) -> u64 {
        self.modified.load(Ordering::Relaxed)
    }

    /// One core's part.
    fn stream(&self, numbers: usize) {
        let (mut array, mut turns) = (vec![0.0f64; numbers], 0.0);
        while !self.stop.load(Ordering::Relaxed) {
            for block in array.chunks_mut(BLOCK) {
                block.iter_mut().for_each(|number| *number += 1.0);
                self.modified
                    .fetch_add(block.len() as u64, Ordering::Relaxed);
                scheduling_point();
            }
            turns += 1.0;
        }
        assert!(array.iter().all(|&number| number == turns));
    }
}
