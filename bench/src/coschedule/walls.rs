//! What keeps the stream from the sorts' cache and bandwidth, where the machine has resctrl.
//!
//! A core policy gives the stream its limits, and the set of its cores carries them out. The sorts have no group of
//! their own: under *DREP* there may be more of them than the machine has groups. So they may fill the ways of the
//! stream as well.

use std::thread;
use std::time::Duration;
use urgency::jobs::{CoreSet, CoreSetBuilder};
use urgency::policy::cores::{CorePolicy, Cores, Decision, DecisionError, Event, Shares};
use urgency_resctrl::{Disk, Error, JobPartition, Partition, mounted};

/// What of the machine is partitioned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Walls {
    cache: bool,
    bandwidth: bool,
}

/// *Shares*, with walls around each job of the set.
#[derive(Clone)]
struct Walled(Shares, Walls);

impl CorePolicy for Walled {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.0.decide(event, cores, decision)?;
        let cache = cores.cache().filter(|_| self.1.cache);
        let bandwidth = cores.bandwidth().filter(|_| self.1.bandwidth);
        for job in cores.jobs() {
            if let Some(cache) = cache {
                // It uses nothing twice.
                decision.set_cache_ways(job.id(), (1 << cache.least.max(1)) - 1)?;
            }
            if let Some(bandwidth) = bandwidth {
                let tenth = bandwidth.least.max(10);
                let tenth = tenth.next_multiple_of(bandwidth.step.max(1));
                decision.set_bandwidth(job.id(), tenth)?;
            }
        }
        Ok(())
    }
}

impl Walls {
    /// Around the cache, the bandwidth, or both.
    pub const fn new(cache: bool, bandwidth: bool) -> Walls {
        Walls { cache, bandwidth }
    }

    /// Whether these are among them.
    pub fn has(self, walls: Walls) -> bool {
        (self.cache || !walls.cache) && (self.bandwidth || !walls.bandwidth)
    }

    /// A set of cores whose jobs are within these walls.
    pub fn build(self, cores: CoreSetBuilder) -> CoreSet {
        let cores = cores.core_policy(Walled(Shares::default(), self));
        let cores = match self == Walls::default() {
            true => cores,
            false => cores.partition(open().expect("resctrl was there before")),
        };
        cores
            .build()
            .expect("the processors are this process's own")
    }
}

/// Waits until the walls of the set are in force, if it has any; panics if the kernel refuses them.
pub fn wait(set: &CoreSet) {
    while let Some(report) = set.partition() {
        assert!(
            report.refused.is_none() && !report.panicked,
            "the machine could not be partitioned: {report:?}"
        );
        if report.plans > 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The walls that this machine can build, and what is to be said of them.
pub fn possible() -> (Walls, String) {
    let controls =
        open().and_then(|partition| Ok(JobPartition::new(partition, vec![])?.controls()));
    let (cache, bandwidth) = match controls {
        Ok((cache, bandwidth)) => (cache.is_some(), bandwidth.is_some()),
        Err(missing) => {
            return (
                Walls::default(),
                format!("neither cache nor bandwidth is partitioned: {missing}"),
            );
        }
    };
    let said = match (cache, bandwidth) {
        (true, true) => "cache and bandwidth can be partitioned",
        (true, false) => "the bandwidth is not partitioned: the machine has no limit in percent",
        (false, true) => "the cache is not partitioned: the machine has no ways to give",
        (false, false) => "neither cache nor bandwidth is partitioned: the machine has no limits",
    };
    (Walls { cache, bandwidth }, said.into())
}

fn open() -> Result<Partition<Disk>, Error> {
    let (files, options) = mounted()?;
    Partition::open(files, options, "urgency-bench")
}

#[cfg(test)]
mod tests {
    use super::*;
    use urgency::policy::cores::{BandwidthControl, CacheControl, Demand, JobId};

    /// The ways and the bandwidth that a job gets within the walls.
    fn limits(walls: Walls, least: u8, step: u8) -> (Vec<u64>, Vec<u8>) {
        let cache = CacheControl {
            ways: 11,
            least: 2,
            sparse: false,
        };
        let bandwidth = BandwidthControl { least, step };
        let mut cores = Cores::new(2).with_controls(Some(cache), Some(bandwidth));
        let mut policy = Walled(Shares::default(), walls);
        let job = JobId(1);
        cores.start(&mut policy, job, Demand::default()).unwrap();
        let decision = cores.decide(&mut policy, Event::Start(job)).unwrap();
        assert_eq!(decision.cores_of(job), 2);
        let ways = decision.cache_ways().iter().map(|&(_, ways)| ways);
        let bandwidths = decision.bandwidths().iter().map(|&(_, percent)| percent);
        (ways.collect(), bandwidths.collect())
    }

    #[test]
    fn within_its_walls_the_stream_has_the_fewest_ways_and_a_tenth_or_the_next_more_that_there_is()
    {
        let both = Walls::new(true, true);
        assert_eq!(limits(both, 10, 10), (vec![0b11], vec![10]));
        assert_eq!(limits(both, 1, 4), (vec![0b11], vec![12]));
        assert_eq!(limits(both, 20, 20), (vec![0b11], vec![20]));
        assert_eq!(
            limits(Walls::new(true, false), 10, 10),
            (vec![0b11], vec![])
        );
        assert_eq!(limits(Walls::new(false, true), 10, 10), (vec![], vec![10]));
        assert_eq!(limits(Walls::default(), 10, 10), (vec![], vec![]));
    }

    #[test]
    fn a_machine_has_the_walls_that_it_can_build_and_all_less_than_these() {
        let (both, cache, none) = (
            Walls::new(true, true),
            Walls::new(true, false),
            Walls::default(),
        );
        assert!(both.has(cache) && cache.has(cache) && none.has(none));
        assert!(!cache.has(both) && !none.has(cache) && !cache.has(Walls::new(false, true)));
    }
}
