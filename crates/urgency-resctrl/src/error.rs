//! What can be wrong, in which file, with which value, by which rule, and what to do.

use crate::{Bandwidth, Cache, Cpus};
use std::{
    fmt, io,
    path::{Path, PathBuf},
};
use urgency_policy::cores::JobId;

/// Which rule a mask of ways breaks, in an [`Error`].
///
/// ```
/// use urgency_resctrl::{Cache, Error, MaskRule, Resource};
///
/// let ways = 0x7ff;
/// let cache = Cache { resource: Resource::L3, ways, least: 2, shareable: 0, sparse: false, groups: 16 };
/// let rule_of = |mask| match cache.check(mask) {
///     Err(Error::Mask { rule, .. }) => Some(rule),
///     _ => None,
/// };
/// assert_eq!(rule_of(0b0110), None);
/// assert_eq!(rule_of(0b0101), Some(MaskRule::SideBySide));
/// assert_eq!(rule_of(0b0001), Some(MaskRule::Least));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaskRule {
    /// It has a way that the cache does not have.
    Exists,
    /// Its ways lie apart.
    SideBySide,
    /// It has too few ways.
    Least,
}

/// Why cache and bandwidth cannot be partitioned here, or not in this way.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no resctrl, or the processor has nothing that resctrl controls.
    NotSupported,
    /// resctrl is there, and not mounted.
    NotMounted,
    /// resctrl is there, and can give out neither the last-level cache nor bandwidth: it measures only, for instance.
    NothingToGive,
    /// A job was given ways of a last-level cache that cannot be partitioned.
    NoCache,
    /// A job was given a bandwidth, and bandwidth cannot be limited.
    NoBandwidth,
    /// A file or directory could not be read, written, made or removed.
    Io {
        /// What was tried.
        operation: Operation,
        /// Relative to the root of resctrl or of the cgroup.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
        /// What resctrl says of its last command (`info/last_cmd_status`), if it says anything.
        status: Option<String>,
    },
    /// The kernel took a part of a command only.
    Short {
        /// The file.
        path: PathBuf,
        /// The command.
        text: String,
        /// How many of its bytes were taken.
        taken: usize,
    },
    /// A file does not say what the kernel's documentation says.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The text, or the line of it.
        text: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// The cache cannot give these ways.
    Mask {
        /// The ways, as bits.
        mask: u64,
        /// Why.
        rule: MaskRule,
        /// The cache.
        cache: Cache,
    },
    /// The machine cannot limit the bandwidth to this.
    Bandwidth {
        /// The limit.
        value: u32,
        /// What is possible.
        bandwidth: Bandwidth,
    },
    /// More jobs have limits than there can be groups.
    TooManyGroups {
        /// How many have limits.
        asked: usize,
        /// How many groups the machine has for them.
        most: u32,
    },
    /// Two jobs were given the same processor.
    TwoJobs {
        /// The processor.
        cpu: usize,
        /// One job.
        first: JobId,
        /// The other.
        second: JobId,
    },
    /// Two cores of a policy are the same processor.
    TwoCores(usize),
    /// A processor is not there, or belongs to another program's group.
    NotOurs {
        /// The processor.
        cpu: usize,
        /// The ones that can be given.
        ours: Cpus,
    },
    /// A group's name is not usable.
    Prefix(String),
    /// There are groups of this name already: another partition uses them, or left them.
    Leftover(String),
    /// A command was refused, and so was the way back.
    Stuck {
        /// Why the command was refused.
        cause: Box<Error>,
        /// Why the way back was.
        undo: Box<Error>,
    },
    /// An earlier call ended [`Stuck`](Error::Stuck).
    Unknown,
}

/// What is done with a path in [`Error::Io`].
///
/// ```
/// use urgency_resctrl::{Disk, Error, Machine, MountOptions, Operation};
///
/// let nothing = Machine::read(&Disk::new("no-such-directory"), MountOptions::parse("rw"));
/// assert!(matches!(nothing, Err(Error::Io { operation: Operation::Read, .. })));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// A file is read, or a directory listed.
    Read,
    /// This is written.
    Write(String),
    /// A group is made.
    Make,
    /// A group is removed.
    Remove,
}

impl Error {
    pub(crate) fn read(path: &Path, cause: io::Error) -> Self {
        Error::Io {
            operation: Operation::Read,
            path: path.to_owned(),
            cause,
            status: None,
        }
    }

    pub(crate) fn malformed(path: &Path, text: &str, expected: &'static str) -> Self {
        Error::Malformed {
            path: path.to_owned(),
            text: text.trim().to_owned(),
            expected,
        }
    }
}

/// What else there is where resctrl is missing.
const INSTEAD: &str = "without it, jobs on processors of their own (affinity, or a cgroup's cpuset.cpus and cpu.max) share the cache";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupported => write!(
                f,
                "this machine cannot partition its cache or memory bandwidth: the kernel knows no file system `resctrl`; it \
                 needs CONFIG_X86_CPU_RESCTRL and a processor with rdt_a, cat_l3 or mba in /proc/cpuinfo; {INSTEAD}"
            ),
            Self::NotMounted => write!(
                f,
                "resctrl is not mounted; run as root: mount -t resctrl resctrl /sys/fs/resctrl; {INSTEAD}"
            ),
            Self::NothingToGive => write!(
                f,
                "this machine can give out neither its last-level cache nor bandwidth: resctrl's `info` has no L3 and no MB (a \
                 machine that only measures has L3_MON); {INSTEAD}"
            ),
            Self::NoCache => write!(
                f,
                "a job was given cache ways, and resctrl's `info` has no L3: this processor cannot partition its last-level \
                 cache; ask `Partition::machine` first, or give the job processors only"
            ),
            Self::NoBandwidth => write!(
                f,
                "a job was given a bandwidth, and resctrl's `info` has no MB: this processor cannot limit bandwidth; ask \
                 `Partition::machine` first, or give the job processors only"
            ),
            Self::Io {
                operation,
                path,
                cause,
                status,
            } => {
                let path = path.display();
                match operation {
                    Operation::Read => write!(f, "{path:?} cannot be read: {cause}")?,
                    Operation::Write(text) => write!(
                        f,
                        "{:?} was not taken by {path:?}: {cause}",
                        text.trim_end()
                    )?,
                    Operation::Make => write!(f, "the group {path:?} cannot be made: {cause}")?,
                    Operation::Remove => {
                        write!(f, "the group {path:?} cannot be removed: {cause}")?
                    }
                }
                if let Some(status) = status {
                    write!(f, " (the kernel says: {status})")?;
                }
                f.write_str(advice(operation, cause.kind()))
            }
            Self::Short { path, text, taken } => write!(
                f,
                "{} of {} bytes of {:?} were taken by {:?}; all is as before the call, so try again",
                taken,
                text.len(),
                text.trim_end(),
                path.display()
            ),
            Self::Malformed {
                path,
                text,
                expected,
            } => write!(
                f,
                "{:?} says {text:?}, where {expected} is expected; is this a directory of the kernel's?",
                path.display()
            ),
            Self::Mask { mask, rule, cache } => {
                write!(
                    f,
                    "the ways {mask:#x} of {} cannot be given: ",
                    cache.resource
                )?;
                match rule {
                    MaskRule::Exists => write!(f, "it has the ways {:#x}", cache.ways),
                    MaskRule::SideBySide => write!(
                        f,
                        "they must lie side by side, like 0x6; sparse_masks is not 1 on this machine"
                    ),
                    MaskRule::Least => write!(
                        f,
                        "at least {} must lie side by side (min_cbm_bits)",
                        cache.least.max(1)
                    ),
                }
            }
            Self::Bandwidth { value, bandwidth } => write!(
                f,
                "the bandwidth {value} {} cannot be set; this machine takes {} to {} in steps of {}",
                bandwidth.unit,
                bandwidth.least.max(1),
                bandwidth.most,
                bandwidth.step
            ),
            Self::TooManyGroups { asked, most } => write!(
                f,
                "{asked} jobs have limits of their own, and this machine has groups for {most} (num_closids, less the default \
                 group); leave the limits of {} of them to the rest",
                asked.saturating_sub(*most as usize)
            ),
            Self::TwoJobs { cpu, first, second } => write!(
                f,
                "processor {cpu} was given to {first} and to {second}; a processor is in one group"
            ),
            Self::TwoCores(cpu) => write!(
                f,
                "processor {cpu} stands for two cores of the policy; each core needs a processor of its own"
            ),
            Self::NotOurs { cpu, ours } => write!(
                f,
                "processor {cpu} is not there, or in another program's group; this partition can give {ours}"
            ),
            Self::Prefix(prefix) => write!(
                f,
                "{prefix:?} cannot begin the names of groups; it is 1 to 64 of a-z, A-Z, 0-9, - and _"
            ),
            Self::Leftover(name) => write!(
                f,
                "the group {name:?} exists already; if the program that made it has ended, remove it: rmdir \
                 /sys/fs/resctrl/{name}"
            ),
            Self::Stuck { cause, undo } => write!(
                f,
                "{cause}; and then the way back failed: {undo}. Which processor is in which group is not known now: release \
                 the partition"
            ),
            Self::Unknown => write!(
                f,
                "an earlier command and the way back from it failed, so it is not known which processor is in which group; \
                 release the partition and open it again"
            ),
        }
    }
}

/// What to do, in addition to what the system says.
fn advice(operation: &Operation, kind: io::ErrorKind) -> &'static str {
    match (operation, kind) {
        (_, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            "; run as root, or let root give the directory to this user (chown -R)"
        }
        (Operation::Make, io::ErrorKind::StorageFull) => {
            "; all classes of the processor are in use: remove a group of another program, or give fewer jobs limits"
        }
        (Operation::Make, io::ErrorKind::ResourceBusy) => {
            "; the cache still holds lines of groups that were removed: try again later, or raise \
             info/L3_MON/max_threshold_occupancy"
        }
        _ => "",
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { cause, .. } => Some(cause),
            Self::Stuck { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
