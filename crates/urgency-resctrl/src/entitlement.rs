//! What this process may use: so many processors, so much of their time.
//!
//! Three hands limit it: the affinity of its threads (`taskset`, an orchestrator's CPU manager), the cpuset of its
//! cgroup, and the quota of its cgroup or of one above it (`docker --cpus`, a Kubernetes limit). Any of them may change
//! while the process runs, and none tells it.

use crate::{Cgroup, Cpus, Disk, Error, Quota};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

/// What this process may use.
///
/// ```
/// use urgency_resctrl::Entitlement;
///
/// let entitlement = Entitlement::read()?;
/// assert_eq!(entitlement.workers(), std::thread::available_parallelism().unwrap().get());
/// # Ok::<(), urgency_resctrl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entitlement {
    /// The processors that the calling thread may run on.
    pub affinity: Cpus,
    /// The processors of the cgroup, if it has a cpuset.
    pub cpuset: Option<Cpus>,
    /// The time that the cgroup has, or the one above it that has least; `None` without a limit.
    pub quota: Option<Quota>,
    /// The directory of the cgroup of version 2, if there is one.
    pub cgroup: Option<PathBuf>,
}

impl Entitlement {
    /// What the calling thread may use now. It takes some files of the kernel's to be read, about 100 µs.
    ///
    /// # Errors
    ///
    /// If a file of the cgroup does not say what the kernel's documentation says, or the system tells no affinity.
    pub fn read() -> Result<Self, Error> {
        Self::read_at(Path::new("/"), affinity()?)
    }

    /// The same of a thread with this affinity, with the machine's root directory elsewhere.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_at(root: &Path, affinity: Cpus) -> Result<Self, Error> {
        let mut entitlement = Entitlement {
            affinity,
            cpuset: None,
            quota: None,
            cgroup: None,
        };
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        let (mounts, groups) = (read("proc/self/mountinfo"), read("proc/self/cgroup"));
        for mount in mounts.lines().filter_map(Mount::parse) {
            let Some(group) = groups.lines().find_map(|line| mount.group(line)) else {
                continue;
            };
            let top = root.join(mount.at.trim_start_matches('/'));
            let path = top.join(&group);
            if mount.kind == "cgroup2" {
                entitlement.cpuset = Cgroup::new(Disk::new(&path)).cpus()?;
                for above in path.ancestors().take_while(|above| above.starts_with(&top)) {
                    entitlement.limit(Cgroup::new(Disk::new(above)).quota()?);
                }
                entitlement.cgroup = Some(path);
            } else {
                for above in path.ancestors().take_while(|above| above.starts_with(&top)) {
                    entitlement.limit(quota_of_version_1(above));
                }
            }
        }
        Ok(entitlement)
    }

    fn limit(&mut self, quota: Option<Quota>) {
        let quotas = self.quota.into_iter().chain(quota);
        self.quota = quotas.reduce(Quota::tighter);
    }

    /// The processors that all agree on. If they agree on none, because one has changed while the others were read, the
    /// affinity's.
    pub fn cpus(&self) -> Cpus {
        let both = self.cpuset.as_ref().map(|set| self.affinity.both(set));
        both.filter(|both| !both.is_empty())
            .unwrap_or_else(|| self.affinity.clone())
    }

    /// How many workers can run all the time, at least one: as many as [`std::thread::available_parallelism`] says.
    pub fn workers(&self) -> usize {
        let cpus = self.cpus().len();
        let time = self.quota.map_or(usize::MAX, Quota::workers);
        cpus.min(time).max(1)
    }
}

impl fmt::Display for Entitlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "processors {}", self.cpus())?;
        match self.quota {
            Some(quota) => write!(f, ", {quota}"),
            None => f.write_str(", without a quota"),
        }
    }
}

/// A mounted hierarchy of cgroups.
struct Mount<'a> {
    kind: &'a str,
    /// Which cgroup is at the mount point.
    shows: &'a str,
    at: &'a str,
    controllers: &'a str,
}

impl<'a> Mount<'a> {
    /// From a line of `/proc/self/mountinfo`, if it is a hierarchy that can limit processor time.
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut system = system.split(' ');
        let (kind, controllers) = (system.next()?, system.nth(1)?);
        let mount = Mount {
            kind,
            shows: mount.next()?,
            at: mount.next()?,
            controllers,
        };
        let limits_time = mount
            .controllers
            .split(',')
            .any(|controller| controller == "cpu");
        (kind == "cgroup2" || kind == "cgroup" && limits_time).then_some(mount)
    }

    /// From a line of `/proc/self/cgroup`: the process's cgroup in this hierarchy, below the mount point.
    fn group(&self, line: &str) -> Option<String> {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_this = match self.kind {
            "cgroup2" => number == "0" && controllers.is_empty(),
            _ => controllers.split(',').any(|controller| controller == "cpu"),
        };
        // A container sees a part of the tree: the mount shows a group, and paths begin above it.
        let below = path.strip_prefix(self.shows).unwrap_or("");
        is_this.then(|| below.trim_start_matches('/').to_owned())
    }
}

/// From the two files of version 1. A negative quota is none.
fn quota_of_version_1(group: &Path) -> Option<Quota> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok();
    let (time, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
    format!("{} {}", time.trim(), period.trim()).parse().ok()
}

#[cfg(target_os = "linux")]
fn affinity() -> Result<Cpus, Error> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None)
        .map_err(|cause| Error::read(Path::new("sched_getaffinity"), cause.into()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Systems without affinity: as many processors as there are.
#[cfg(not(target_os = "linux"))]
fn affinity() -> Result<Cpus, Error> {
    let count = std::thread::available_parallelism()
        .map_err(|cause| Error::read(Path::new("available_parallelism"), cause))?;
    Ok((0..count.get()).collect())
}
