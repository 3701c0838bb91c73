//! Processors and their time for a process: cgroup v2's `cpuset.cpus` and `cpu.max`.
//!
//! This is what there is without resctrl. A process in a cgroup of its own keeps off the others' processors, or gets a
//! part of their time. It shares their cache and bandwidth.

use crate::{Cpus, Disk, Error, Files, error::Operation};
use std::{fmt, path::Path, str::FromStr, time::Duration};

/// So much processor time in each period, of all processors together: the file `cpu.max`.
///
/// ```
/// use urgency_resctrl::Quota;
///
/// let quota: Quota = "150000 100000".parse().unwrap();
/// assert_eq!(quota.workers(), 1);
/// assert_eq!(quota.to_string(), "1.50 processors' time, by 100 ms");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// In each period.
    pub time: Duration,
    /// The kernel's default is 100 ms.
    pub period: Duration,
}

impl Quota {
    /// How many workers can run all the time: rounded down, and at least one.
    ///
    /// A worker more would be stopped by the kernel in the middle of its work, and what it holds with it.
    pub fn workers(self) -> usize {
        let whole = self.time.as_micros() / self.period.as_micros().max(1);
        usize::try_from(whole).unwrap_or(usize::MAX).max(1)
    }

    /// Which of two leaves less time.
    pub(crate) fn tighter(self, other: Self) -> Self {
        let scaled = |a: Self, b: Self| a.time.as_micros() * b.period.as_micros();
        if scaled(other, self) < scaled(self, other) {
            other
        } else {
            self
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processors = self.time.as_secs_f64() / self.period.as_secs_f64();
        write!(
            f,
            "{processors:.2} processors' time, by {} ms",
            self.period.as_millis()
        )
    }
}

impl FromStr for Quota {
    type Err = ();

    /// Two numbers of microseconds, as in `cpu.max`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers = text.split_whitespace().map(str::parse);
        match numbers.collect::<Result<Vec<u64>, _>>().as_deref() {
            Ok(&[time, period]) if time > 0 && period > 0 => Ok(Quota {
                time: Duration::from_micros(time),
                period: Duration::from_micros(period),
            }),
            _ => Err(()),
        }
    }
}

/// A cgroup of version 2, that somebody has made and given to this process.
///
/// ```
/// use urgency_resctrl::{Cgroup, Disk};
///
/// let group = Cgroup::new(Disk::new("/sys/fs/cgroup/no-such-group"));
/// let error = group.set_cpus(&"0-1".parse()?).unwrap_err();
/// assert!(error.to_string().contains("cgroup.subtree_control"), "{error}");
/// assert!(group.set_quota(None).is_err());
/// # Ok::<(), urgency_resctrl::NotCpus>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cgroup<F = Disk> {
    files: F,
}

impl<F: Files> Cgroup<F> {
    /// The cgroup with these files.
    pub fn new(files: F) -> Self {
        Cgroup { files }
    }

    /// The processors that its processes may use; `None` if it does not say (no controller `cpuset`).
    ///
    /// # Errors
    ///
    /// If the file does not say what the kernel's documentation says.
    pub fn cpus(&self) -> Result<Option<Cpus>, Error> {
        let path = Path::new("cpuset.cpus.effective");
        let Ok(text) = self.files.read(path) else {
            return Ok(None);
        };
        let cpus = text.parse();
        cpus.map(Some)
            .map_err(|_| Error::malformed(path, &text, "a list of processors like 0-3,8"))
    }

    /// The time that its processes may use; `None` if there is no limit.
    ///
    /// # Errors
    ///
    /// If the file does not say what the kernel's documentation says.
    pub fn quota(&self) -> Result<Option<Quota>, Error> {
        let path = Path::new("cpu.max");
        match self.files.read(path) {
            Err(_) => Ok(None),
            Ok(text) if text.trim_start().starts_with("max") => Ok(None),
            Ok(text) => text.parse().map(Some).map_err(|()| {
                Error::malformed(
                    path,
                    &text,
                    "\"max\" or a number of microseconds, and a period",
                )
            }),
        }
    }

    /// Its processes run on these processors only.
    ///
    /// # Errors
    ///
    /// If the kernel refuses: the file is missing unless the parent's `cgroup.subtree_control` has `cpuset`.
    pub fn set_cpus(&self, cpus: &Cpus) -> Result<(), Error> {
        self.put("cpuset.cpus", format!("{cpus}\n"))
    }

    /// Its processes get this much time, or any amount.
    ///
    /// # Errors
    ///
    /// If the kernel refuses: the file is missing unless the parent's `cgroup.subtree_control` has `cpu`.
    pub fn set_quota(&self, quota: Option<Quota>) -> Result<(), Error> {
        self.put(
            "cpu.max",
            match quota {
                Some(quota) => format!("{} {}\n", quota.time.as_micros(), quota.period.as_micros()),
                None => "max\n".to_owned(),
            },
        )
    }

    fn put(&self, name: &str, text: String) -> Result<(), Error> {
        let path = Path::new(name);
        match self.files.write(path, &text) {
            Ok(taken) if taken == text.len() => Ok(()),
            Ok(taken) => Err(Error::Short {
                path: path.to_owned(),
                text,
                taken,
            }),
            Err(cause) => Err(Error::Io {
                operation: Operation::Write(text),
                path: path.to_owned(),
                status: (cause.kind() == std::io::ErrorKind::NotFound).then(|| {
                    let controller = name.split('.').next().unwrap_or(name);
                    format!("no such file; the parent's cgroup.subtree_control needs +{controller}")
                }),
                cause,
            }),
        }
    }
}
