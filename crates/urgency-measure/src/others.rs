//! How much of the machine other programs used meanwhile: a table of latencies from a busy machine says
//! little, and the reader should know.
//!
//! From `/proc`: the time for which the processors were busy with anything, less what this process, its children and
//! the children that these have waited for used, over all the time there was. All are counted in the same ticks, so
//! their length does not matter. Time that a hypervisor gave to other machines counts as used by others; where only
//! other programs are asked for, neither that nor interrupts count.

use std::fs;

/// A moment, to be compared with a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Of all processors.
    all: u64,
    /// Not idle.
    busy: u64,
    /// In programs: user, nice, system.
    programs: u64,
    /// In this process and its children.
    own: u64,
}

impl Moment {
    /// Now. Where the system does not say, [`is_known`](Self::is_known) is false.
    pub fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let now = Self::parse(&read("/proc/stat"), &read("/proc/self/stat"));
        now.map_or_else(Moment::default, |now| Moment {
            own: now.own + children(),
            ..now
        })
    }

    /// Whether the system says anything.
    pub fn is_known(self) -> bool {
        self.all > 0
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        let ticks = machine.lines().next()?.strip_prefix("cpu ")?;
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let ticks: Option<Vec<u64>> = ticks.split_whitespace().map(|n| n.parse().ok()).collect();
        let ticks = ticks?;
        let ticks = ticks.get(..8)?;
        let all: u64 = ticks.iter().sum();
        Some(Moment {
            all,
            busy: all - ticks[3] - ticks[4],
            programs: ticks[..3].iter().sum(),
            own: with_waited(process)?,
        })
    }

    /// The share of all processors (0 to 1) that others used since `self`, the host included.
    pub fn share_until(self, later: Moment) -> f64 {
        let others = since(later.busy, self.busy) - since(later.own, self.own);
        (others / since(later.all, self.all).max(1.0)).clamp(0.0, 1.0)
    }

    /// How many of so many processors other programs used since `self`, in the mean.
    pub fn programs_until(self, later: Moment, processors: usize) -> f64 {
        let others = since(later.programs, self.programs) - since(later.own, self.own);
        (others / since(later.all, self.all).max(1.0)).max(0.0) * processors as f64
    }
}

fn since(now: u64, then: u64) -> f64 {
    now.saturating_sub(then) as f64
}

/// The fields of a process after its name, which may have spaces.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace())
}

/// User and system time of a process and of the children that it has waited for: fields 14 to 17 of proc(5).
fn with_waited(stat: &str) -> Option<u64> {
    let times: Vec<u64> = fields(stat)?
        .skip(11)
        .take(4)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// User and system time of a process, in seconds, without its children; 0 if it has ended.
pub fn cpu_seconds(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let times = fields(&stat).into_iter().flatten().skip(11).take(2);
    // Counted in hundredths of a second.
    let ticks: u64 = times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

/// The same with waited-for children, of all children that live.
fn children() -> u64 {
    let parent = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let mine = stats.filter(|stat| fields(stat).and_then(|mut f| f.nth(1)) == Some(&parent));
    mine.filter_map(|stat| with_waited(&stat)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "cpu  100 10 40 800 20 5 5 20 7 0\ncpu0 1 2 3\n";
    const PROCESS: &str = "42 (a b) c) S 1 2 3 4 5 6 7 8 9 10 30 20 15 5 0 0 99";

    #[test]
    fn a_moment_is_read_from_what_the_kernel_says() {
        assert_eq!(
            Moment::parse(MACHINE, PROCESS),
            Some(Moment {
                all: 1000,
                busy: 180,
                programs: 150,
                own: 70
            })
        );
        assert_eq!(Moment::parse("", PROCESS), None);
        assert_eq!(Moment::parse(MACHINE, "42 (a b"), None);
    }

    #[test]
    fn what_others_used_is_what_was_used_less_what_we_used() {
        let then = Moment {
            all: 1000,
            busy: 180,
            programs: 150,
            own: 70,
        };
        let later = Moment {
            all: 2000,
            busy: 780,
            programs: 650,
            own: 470,
        };
        assert_eq!(then.share_until(later), 0.2);
        assert_eq!(then.programs_until(later, 2), 0.2);
        assert_eq!(then.share_until(then), 0.0);
    }
}
