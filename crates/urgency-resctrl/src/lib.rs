//! Which part of a machine a job gets: its last-level cache and memory bandwidth, and its processors.
//!
//! | what | where it comes from | here |
//! |---|---|---|
//! | ways of the last-level cache, bandwidth to memory | Linux's resctrl (Intel RDT, AMD QoS, ARM MPAM) | [`Partition`] |
//! | the same, as a core policy decides it | [`urgency_policy::cores`] | [`JobPartition`] |
//! | the processors that this process may use, and how much of their time | affinity, cpusets, `cpu.max` | [`Entitlement`] |
//! | processors and time for other processes, where there is no resctrl | cgroup v2 | [`Cgroup`] |
//!
//! Limits are given to *processors*, not to threads: jobs own disjoint processors, and their threads change. So a core
//! that moves from one job to another costs one write, and a thread that gets another worker costs none. This needs
//! workers that are pinned to their processors.
//!
//! Most machines have no resctrl: virtual machines, desktop processors, kernels built without it. There,
//! [`mounted`] says what is missing and what to do. `urgency doctor` says it for the whole machine.
//!
//! ```
//! use urgency_resctrl::{Entitlement, Error, MountOptions, Partition, mounted};
//!
//! let entitlement = Entitlement::read()?;
//! println!("{entitlement}: {} worker(s)", entitlement.workers());
//! match mounted().and_then(|(files, options)| Partition::open(files, options, "example")) {
//!     Ok(partition) => println!("{} group(s) with limits of their own", partition.machine().groups()),
//!     Err(missing) => println!("{missing}"),
//! }
//! # Ok::<(), Error>(())
//! ```
//!
//! All files are reached through [`Files`], so that a test can be the kernel: `tests/kernel` is a model of its rules.

#![forbid(unsafe_code)]

mod cgroup;
mod cpus;
mod entitlement;
mod error;
mod files;
mod info;
mod jobs;
mod monitor;
mod mount;
mod partition;
mod schemata;

pub use cgroup::{Cgroup, Quota};
pub use cpus::{Cpus, NotCpus};
pub use entitlement::Entitlement;
pub use error::{Error, MaskRule, Operation};
pub use files::{Disk, Files};
pub use info::{Bandwidth, Cache, Machine, Monitoring, MountOptions, Unit};
pub use jobs::JobPartition;
pub use monitor::{Counters, Reading};
pub use mount::{mounted, mounted_at};
pub use partition::{Limits, Partition, Plan, Share};
pub use schemata::Resource;
