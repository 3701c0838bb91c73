//! What a core policy decides becomes groups.
//!
//! A [`Decision`] gives the owner of each core, and says which cache ways and bandwidths *change*. This file keeps what
//! earlier decisions said, numbers cores as the kernel numbers processors, and makes a [`Plan`] of it.

use crate::{Error, Files, Limits, Partition, Plan, Share, Unit};
use std::collections::BTreeMap;
use urgency_policy::cores::{BandwidthControl, CacheControl, Decision, JobId};

/// A partition that follows a core policy.
///
/// ```no_run
/// use urgency_policy::cores::{Cores, Demand, Event, JobId, Shares};
/// use urgency_resctrl::{JobPartition, Limits, Partition, mounted};
///
/// // Workers 0 and 1 are pinned to processors 2 and 3.
/// let (files, options) = mounted()?;
/// let partition = Partition::open(files, options, "service")?;
/// let mut partition = JobPartition::new(partition, vec![2, 3])?;
/// let (cache, bandwidth) = partition.controls();
/// let mut cores = Cores::new(2).with_controls(cache, bandwidth);
/// let mut policy = Shares::default();
/// cores.start(&mut policy, JobId(1), Demand::default())?;
/// let decision = cores.decide(&mut policy, Event::Start(JobId(1)))?;
/// // All that is not a job with limits has two ways of the cache.
/// partition.set_rest(Limits { ways: Some(0b11), ..Limits::default() });
/// partition.apply(decision)?;
///
/// cores.exit(JobId(1))?;
/// let decision = cores.decide(&mut policy, Event::Exit(JobId(1)))?;
/// partition.exit(JobId(1));
/// partition.apply(decision)?;
/// partition.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JobPartition<F: Files> {
    partition: Partition<F>,
    /// By core of the policy: the kernel's processor.
    cpus: Vec<usize>,
    /// What a policy's 100 percent are, in the machine's unit.
    full_bandwidth: Option<u32>,
    rest: Limits,
    /// Of the jobs that have any.
    limits: BTreeMap<JobId, Limits>,
}

impl<F: Files> JobPartition<F> {
    /// Core i of the policy is the processor `cpus[i]`. Its worker must be pinned to it, or a job's threads run with
    /// another job's limits.
    ///
    /// # Errors
    ///
    /// If the partition cannot give one of these processors, or one is named twice.
    pub fn new(partition: Partition<F>, cpus: Vec<usize>) -> Result<Self, Error> {
        for (core, &cpu) in cpus.iter().enumerate() {
            if cpus[..core].contains(&cpu) {
                return Err(Error::TwoCores(cpu));
            }
            if !partition.cpus().contains(cpu) {
                let ours = partition.cpus().clone();
                return Err(Error::NotOurs { cpu, ours });
            }
        }
        let bandwidth = partition.machine().bandwidth.as_ref();
        let is_percent = bandwidth.is_some_and(|bandwidth| bandwidth.unit == Unit::Percent);
        let full_bandwidth = is_percent.then_some(100).or(partition.full_bandwidth);
        Ok(JobPartition {
            partition,
            cpus,
            full_bandwidth,
            rest: Limits::default(),
            limits: BTreeMap::new(),
        })
    }

    /// What a policy may ask for, for [`Cores::with_controls`](urgency_policy::cores::Cores::with_controls).
    pub fn controls(&self) -> (Option<CacheControl>, Option<BandwidthControl>) {
        let machine = self.partition.machine();
        let bandwidth = machine.bandwidth.as_ref().zip(self.full_bandwidth);
        let bandwidth = bandwidth.map(|(bandwidth, _)| match bandwidth.unit {
            Unit::Percent => BandwidthControl {
                least: bandwidth.least.clamp(1, 100) as u8,
                step: bandwidth.step.clamp(1, 100) as u8,
            },
            // The kernel's steps are finer than one percent.
            Unit::EighthGigabytes | Unit::Mebibytes => BandwidthControl { least: 1, step: 1 },
        });
        (machine.cache_control(), bandwidth)
    }

    /// The groups.
    pub fn partition(&self) -> &Partition<F> {
        &self.partition
    }

    /// The limits of everything that is not a job with limits, from the next [`apply`](Self::apply) on.
    pub fn set_rest(&mut self, rest: Limits) {
        self.rest = rest;
    }

    /// Makes the machine's groups what the decision says.
    ///
    /// # Errors
    ///
    /// As [`Partition::apply`]. Then the decision has changed nothing here.
    pub fn apply(&mut self, decision: &Decision) -> Result<(), Error> {
        let owners: Vec<_> = (0..self.cpus.len())
            .map(|core| decision.owner(core))
            .collect();
        self.carry_out(&owners, decision.cache_ways(), decision.bandwidths())
    }

    /// The same as [`apply`](Self::apply), for a mechanism that decides itself which cores each job has: `owners` says
    /// so by core. `ways` and `bandwidths` say what changes, the bandwidth in percent.
    ///
    /// # Errors
    ///
    /// As [`Partition::apply`]. Then nothing has changed here.
    pub fn carry_out(
        &mut self,
        owners: &[Option<JobId>],
        ways: &[(JobId, u64)],
        bandwidths: &[(JobId, u8)],
    ) -> Result<(), Error> {
        let mut limits = self.limits.clone();
        for &(job, ways) in ways {
            limits.entry(job).or_default().ways = Some(ways);
        }
        for &(job, percent) in bandwidths {
            let bandwidth = self.bandwidth(percent)?;
            limits.entry(job).or_default().bandwidth = Some(bandwidth);
        }
        let mut jobs: BTreeMap<JobId, Share> = BTreeMap::new();
        for (&owner, &cpu) in owners.iter().zip(&self.cpus) {
            if let Some(owner) = owner {
                jobs.entry(owner).or_default().cpus.insert(cpu);
            }
        }
        for (job, share) in &mut jobs {
            share.limits = limits.get(job).copied().unwrap_or_default();
        }
        let rest = self.rest;
        self.partition.apply(&Plan { rest, jobs })?;
        self.limits = limits;
        Ok(())
    }

    /// A job has ended: forgets its limits. Its group goes with the decision that follows.
    pub fn exit(&mut self, job: JobId) {
        self.limits.remove(&job);
    }

    /// Removes all groups: [`Partition::release`].
    ///
    /// # Errors
    ///
    /// The first refusal.
    pub fn release(self) -> Result<(), Error> {
        self.partition.release()
    }

    fn bandwidth(&self, percent: u8) -> Result<u32, Error> {
        let machine = self.partition.machine().bandwidth.as_ref();
        let (machine, full) = machine.zip(self.full_bandwidth).ok_or(Error::NoBandwidth)?;
        let value = u64::from(full) * u64::from(percent) / 100;
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        // Of a machine that says it has no limit at all the partition refuses this one.
        Ok(value.max(machine.least.max(1)).min(machine.most))
    }
}
