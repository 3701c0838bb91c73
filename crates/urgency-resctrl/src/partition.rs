//! Groups of processors with limits: all of a plan, or nothing of it.
//!
//! resctrl gives limits to a *group*: a directory with a file `schemata` (the limits) and a file `cpus_list` (the
//! processors). The root is the default group. A thread of the default group has the limits of the processor that it
//! runs on. This crate moves processors between groups and leaves all threads in the default group, since jobs have
//! disjoint processors, and a job's threads change far more often than its processors.
//!
//! # Rules
//!
//! 1. Nothing is written before the whole plan is checked against the machine.
//! 2. A group gets its limits before its processors.
//! 3. A processor that goes from one group to another is one write: the kernel takes it out of its old group.
//! 4. After a refused command, all groups get what they had before the call. If that is refused as well, the partition
//!    can be released and nothing else.
//! 5. A group that no job needs stays, without processors, for the next job: making one can fail for minutes after
//!    another was removed, while the cache still holds lines that are counted for it. [`Partition::release`] removes
//!    all.

use crate::{
    Cpus, Error, Files, Machine, MountOptions, Resource, error::Operation, schemata::Schemata,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};
use urgency_policy::cores::JobId;

/// What a group may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The ways of the last-level cache that it fills, of each such cache; bit i is way i. `None`: all that a new group
    /// gets from the kernel, which is what no other group has for itself.
    pub ways: Option<u64>,
    /// Its bandwidth to memory, of each last-level cache, in the machine's [`Unit`](crate::Unit). `None`: no limit.
    pub bandwidth: Option<u32>,
}

/// What one job has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Its processors.
    pub cpus: Cpus,
    /// What it may use from these.
    pub limits: Limits,
}

/// What each job has, and what the rest of the machine has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The limits of everything else on the machine, and of jobs without limits of their own. A job's ways are its own
    /// only if neither the rest nor another job has them.
    pub rest: Limits,
    /// The jobs. One without limits or without processors needs no group.
    pub jobs: BTreeMap<JobId, Share>,
}

/// A group of ours.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    /// The job that it is for.
    job: Option<JobId>,
    cpus: Cpus,
    limits: Bounds,
}

/// The limits of a group, or of the default group.
#[derive(Clone, Debug)]
struct Bounds {
    /// As the kernel had it when we came.
    found: Schemata,
    now: Schemata,
}

impl Bounds {
    fn new(found: Schemata) -> Self {
        let now = found.clone();
        Bounds { found, now }
    }

    /// What the kernel is to show for these limits.
    fn target(&self, limits: Limits) -> Schemata {
        let chosen = self.found.map(|resource, _| match resource {
            Resource::Bandwidth => limits.bandwidth.map(u64::from),
            resource if resource.is_l3() => limits.ways,
            _ => None,
        });
        self.found.with(&chosen)
    }

    /// What this crate ever writes.
    fn written(&self) -> Schemata {
        self.now.map(|resource, value| {
            (resource.is_l3() || resource == Resource::Bandwidth).then_some(value)
        })
    }
}

/// The groups of one program in resctrl. Dropping it releases them, as far as the kernel lets it.
///
/// The processors of the default group belong to the partition from [`open`](Self::open) on.
///
/// ```no_run
/// use urgency_policy::cores::JobId;
/// use urgency_resctrl::{Limits, Partition, Plan, Share, mounted};
///
/// let (files, options) = mounted()?;
/// let mut partition = Partition::open(files, options, "service")?;
/// // Requests get ways 4 to 7 and processors 2 and 3; all else has ways 0 to 3.
/// let requests = Share { cpus: "2-3".parse()?, limits: Limits { ways: Some(0xf0), bandwidth: None } };
/// let rest = Limits { ways: Some(0x0f), bandwidth: None };
/// partition.apply(&Plan { rest, jobs: [(JobId(1), requests)].into() })?;
/// partition.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Partition<F: Files> {
    files: F,
    machine: Machine,
    prefix: String,
    rest: Bounds,
    ours: Cpus,
    groups: Vec<Group>,
    /// A way back has failed.
    is_unknown: bool,
    pub(crate) full_bandwidth: Option<u32>,
}

/// What a way back needs.
struct Before {
    rest: Schemata,
    groups: Vec<(Option<JobId>, Schemata, Cpus)>,
}

impl<F: Files> Partition<F> {
    /// Looks at the machine; changes nothing. The names of groups begin with `prefix`.
    ///
    /// # Errors
    ///
    /// If the machine can give out neither cache nor bandwidth, a file cannot be read, or groups of this name exist.
    pub fn open(files: F, options: MountOptions, prefix: &str) -> Result<Self, Error> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !(1..=64).contains(&prefix.len()) || !prefix.bytes().all(is_plain) {
            return Err(Error::Prefix(prefix.to_owned()));
        }
        let machine = Machine::read(&files, options)?;
        if machine.l3().next().is_none() && machine.bandwidth.is_none() {
            return Err(Error::NothingToGive);
        }
        let mut partition = Partition {
            files,
            machine,
            prefix: format!("{prefix}-"),
            rest: Bounds::new(Schemata::default()),
            ours: Cpus::new(),
            groups: Vec::new(),
            is_unknown: false,
            full_bandwidth: None,
        };
        if let Some(name) = partition.directories()?.into_iter().min() {
            return Err(Error::Leftover(name));
        }
        partition.rest = Bounds::new(partition.schemata("")?);
        let path = Path::new("cpus_list");
        let text = partition.read(path)?;
        let list = "a list of processors like 0-3,8";
        partition.ours = text
            .parse()
            .map_err(|_| Error::malformed(path, &text, list))?;
        Ok(partition)
    }

    /// What 100 percent of the bandwidth are on a machine that limits it in other units: policies speak of percent.
    /// Without this, policies on such a machine cannot limit bandwidth. It does nothing where the unit is percent.
    #[must_use]
    pub fn with_full_bandwidth(mut self, full: u32) -> Self {
        self.full_bandwidth = Some(full);
        self
    }

    /// What the machine can do.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The processors that can be given to jobs.
    pub fn cpus(&self) -> &Cpus {
        &self.ours
    }

    /// The name of the job's group, if it has one.
    pub fn group(&self, job: JobId) -> Option<&str> {
        let group = self.groups.iter().find(|group| group.job == Some(job))?;
        Some(&group.name)
    }

    /// Makes the machine's groups what the plan says. A job that is not in it loses its group.
    ///
    /// # Errors
    ///
    /// If the plan breaks a rule of the machine, or the kernel refuses a command. Then all is as before, but after
    /// [`Error::Stuck`].
    pub fn apply(&mut self, plan: &Plan) -> Result<(), Error> {
        if self.is_unknown {
            return Err(Error::Unknown);
        }
        self.check(plan)?;
        let before = self.before();
        let made = self.assign(plan).and_then(|()| self.change(plan));
        made.map_err(|cause| match self.undo(before) {
            Ok(()) => cause,
            Err(undo) => {
                self.is_unknown = true;
                Error::Stuck {
                    cause: Box::new(cause),
                    undo: Box::new(undo),
                }
            }
        })
    }

    /// Removes all groups, and gives the default group the limits that it had.
    ///
    /// # Errors
    ///
    /// The first refusal; all else is tried nevertheless.
    pub fn release(mut self) -> Result<(), Error> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), Error> {
        // By their names on the machine: after a failed way back, that is all that is known.
        let names = self.directories();
        let (names, mut result) = match names {
            Ok(names) => (names, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        for name in names {
            let path = Path::new(&name);
            let removed = self.files.remove_dir(path);
            let removed = removed.map_err(|cause| self.refused(Operation::Remove, path, cause));
            result = result.and(removed);
        }
        self.groups.clear();
        let found = self.rest.found.clone();
        if std::mem::take(&mut self.is_unknown) || !self.rest.now.changes_to(&found).is_empty() {
            self.rest.now = found;
            let written = self.rest.written();
            result = result.and(self.put("schemata", &written.to_string()));
        }
        result
    }

    fn check(&self, plan: &Plan) -> Result<(), Error> {
        let mut owners = BTreeMap::new();
        for (&job, share) in &plan.jobs {
            for cpu in share.cpus.iter() {
                if !self.ours.contains(cpu) {
                    let ours = self.ours.clone();
                    return Err(Error::NotOurs { cpu, ours });
                }
                if let Some(first) = owners.insert(cpu, job) {
                    let second = job;
                    return Err(Error::TwoJobs { cpu, first, second });
                }
            }
        }
        let limits = plan.jobs.values().map(|share| share.limits);
        for limits in limits.chain([plan.rest]) {
            if let Some(ways) = limits.ways {
                self.machine.l3().next().ok_or(Error::NoCache)?;
                self.machine.l3().try_for_each(|cache| cache.check(ways))?;
            }
            if let Some(value) = limits.bandwidth {
                let bandwidth = self.machine.bandwidth.as_ref();
                bandwidth.ok_or(Error::NoBandwidth)?.check(value)?;
            }
        }
        let (asked, most) = (with_groups(plan).count(), self.machine.groups());
        if asked > most as usize {
            return Err(Error::TooManyGroups { asked, most });
        }
        Ok(())
    }

    fn before(&self) -> Before {
        let of = |group: &Group| (group.job, group.limits.now.clone(), group.cpus.clone());
        Before {
            rest: self.rest.now.clone(),
            groups: self.groups.iter().map(of).collect(),
        }
    }

    /// Each job that needs a group has one.
    fn assign(&mut self, plan: &Plan) -> Result<(), Error> {
        let wanted: BTreeSet<JobId> = with_groups(plan).map(|(job, _)| job).collect();
        for group in &mut self.groups {
            group.job = group.job.filter(|job| wanted.contains(job));
        }
        for job in wanted {
            if self.group(job).is_some() {
                continue;
            }
            match self.groups.iter_mut().find(|group| group.job.is_none()) {
                Some(group) => group.job = Some(job),
                None => self.make(job)?,
            }
        }
        Ok(())
    }

    fn make(&mut self, job: JobId) -> Result<(), Error> {
        let name = format!("{}{}", self.prefix, self.groups.len());
        let path = Path::new(&name);
        let made = self.files.make_dir(path);
        made.map_err(|cause| self.refused(Operation::Make, path, cause))?;
        let found = self.schemata(&name).inspect_err(|_| {
            // It has no processors, so it limits nothing. If it stays, the next call finds it in its way and says so.
            let _ = self.files.remove_dir(path);
        })?;
        self.groups.push(Group {
            name,
            job: Some(job),
            cpus: Cpus::new(),
            limits: Bounds::new(found),
        });
        Ok(())
    }

    fn change(&mut self, plan: &Plan) -> Result<(), Error> {
        let target = self.rest.target(plan.rest);
        self.limit(None, target)?;
        let share = |job: Option<JobId>| job.and_then(|job| plan.jobs.get(&job));
        let mut wanted = Vec::new();
        for index in 0..self.groups.len() {
            let share = share(self.groups[index].job);
            if let Some(share) = share {
                let target = self.groups[index].limits.target(share.limits);
                self.limit(Some(index), target)?;
            }
            wanted.push(share.map_or_else(Cpus::new, |share| share.cpus.clone()));
        }
        // A group that gains a processor takes it from the group that loses it.
        for (index, cpus) in wanted.iter().enumerate() {
            if cpus
                .iter()
                .any(|cpu| !self.groups[index].cpus.contains(cpu))
            {
                self.move_cpus(index, cpus)?;
            }
        }
        for (index, cpus) in wanted.iter().enumerate() {
            if self.groups[index].cpus != *cpus {
                self.move_cpus(index, cpus)?;
            }
        }
        Ok(())
    }

    /// Sets the limits of one group, or of the default one.
    fn limit(&mut self, index: Option<usize>, target: Schemata) -> Result<(), Error> {
        let changes = match index {
            Some(index) => self.groups[index].limits.now.changes_to(&target),
            None => self.rest.now.changes_to(&target),
        };
        if changes.is_empty() {
            return Ok(());
        }
        let name = index.map_or("", |index| self.groups[index].name.as_str());
        let path = Path::new(name).join("schemata");
        let result = self.put(path, &changes.to_string());
        // Also after a refusal: the kernel may have taken a part, and the way back writes what differs from before.
        match index {
            Some(index) => self.groups[index].limits.now = target,
            None => self.rest.now = target,
        }
        result
    }

    fn move_cpus(&mut self, index: usize, cpus: &Cpus) -> Result<(), Error> {
        let path = Path::new(&self.groups[index].name).join("cpus_list");
        let result = self.put(path, &format!("{cpus}\n"));
        for group in &mut self.groups {
            cpus.iter().for_each(|cpu| {
                group.cpus.remove(cpu);
            });
        }
        // Also after a refusal, as above.
        self.groups[index].cpus.clone_from(cpus);
        result
    }

    /// All groups get what they had before.
    fn undo(&mut self, before: Before) -> Result<(), Error> {
        let empty = Cpus::new();
        let had = |index: usize| before.groups.get(index).map_or(&empty, |(_, _, cpus)| cpus);
        let moved = (0..self.groups.len()).any(|index| self.groups[index].cpus != *had(index));
        for index in 0..self.groups.len() {
            let (job, limits) = match before.groups.get(index) {
                Some((job, limits, _)) => (*job, limits.clone()),
                None => (None, self.groups[index].limits.found.clone()),
            };
            self.groups[index].job = job;
            self.limit(Some(index), limits)?;
        }
        self.limit(None, before.rest.clone())?;
        // Each group is told its whole set: where a command was taken in part, it is not known which group has what.
        for index in (0..self.groups.len()).filter(|_| moved) {
            self.move_cpus(index, had(index))?;
        }
        Ok(())
    }

    fn directories(&self) -> Result<Vec<String>, Error> {
        let root = Path::new("");
        let names = self.files.directories(root);
        let names = names.map_err(|cause| Error::read(root, cause))?;
        let is_ours = |name: &String| name.starts_with(&self.prefix);
        Ok(names.into_iter().filter(is_ours).collect())
    }

    fn schemata(&self, group: &str) -> Result<Schemata, Error> {
        let path = Path::new(group).join("schemata");
        Schemata::parse(&path, &self.read(&path)?)
    }

    pub(crate) fn read(&self, path: &Path) -> Result<String, Error> {
        let text = self.files.read(path);
        text.map_err(|cause| Error::read(path, cause))
    }

    pub(crate) fn files(&self) -> &F {
        &self.files
    }

    fn put(&self, path: impl Into<PathBuf>, text: &str) -> Result<(), Error> {
        let path = path.into();
        match self.files.write(&path, text) {
            Ok(taken) if taken == text.len() => Ok(()),
            Ok(taken) => Err(Error::Short {
                path,
                text: text.to_owned(),
                taken,
            }),
            Err(cause) => Err(self.refused(Operation::Write(text.to_owned()), &path, cause)),
        }
    }

    /// The error, with what resctrl says of its last command.
    fn refused(&self, operation: Operation, path: &Path, cause: io::Error) -> Error {
        let status = self.files.read(Path::new("info/last_cmd_status"));
        let status = status.map(|status| status.trim().to_owned()).ok();
        Error::Io {
            operation,
            path: path.to_owned(),
            cause,
            status: status.filter(|status| !status.is_empty() && status != "ok"),
        }
    }
}

impl<F: Files> Drop for Partition<F> {
    fn drop(&mut self) {
        if !self.groups.is_empty() || self.is_unknown || self.rest.now != self.rest.found {
            // A refusal leaves groups, which the next `open` names.
            let _ = self.give_back();
        }
    }
}

/// The jobs that need a group.
fn with_groups(plan: &Plan) -> impl Iterator<Item = (JobId, &Share)> {
    let jobs = plan.jobs.iter().map(|(&job, share)| (job, share));
    jobs.filter(|(_, share)| share.limits != Limits::default() && !share.cpus.is_empty())
}
