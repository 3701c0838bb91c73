//! How much of the machine other programs used meanwhile: a table of latencies from a busy machine says
//! little, and the reader should know.
//!
//! From `/proc`: the time for which the processors were busy with anything, less what this process and its
//! ended children used, over all the time there was. All three are counted in the same ticks, so their length
//! does not matter. Time that a hypervisor gave to other machines counts as used by others.

use std::fs;

/// A moment, to be compared with a later one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    all: u64,
    busy: u64,
    own: u64,
}

impl Moment {
    /// Now; `None` where the system does not say.
    pub fn now() -> Option<Self> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let process = fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&machine, &process)
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        let ticks = numbers(machine.lines().next()?.strip_prefix("cpu ")?)?;
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let ticks = ticks.get(..8)?;
        let all: u64 = ticks.iter().sum();
        // The name of the program, in parentheses, may contain anything.
        let (_, fields) = process.rsplit_once(')')?;
        let fields: Vec<_> = fields.split_whitespace().collect();
        // Own and ended children's user and system time, fields 14 to 17 of proc(5).
        let own = numbers(&fields.get(11..15)?.join(" "))?;
        Some(Moment {
            all,
            busy: all - ticks[3] - ticks[4],
            own: own.iter().sum(),
        })
    }

    /// The share of all processors (0 to 1) that others used since `self`.
    pub fn share_until(self, later: Moment) -> f64 {
        let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let others = since(later.busy, self.busy) - since(later.own, self.own);
        (others / since(later.all, self.all).max(1.0)).clamp(0.0, 1.0)
    }
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace().map(|n| n.parse().ok()).collect()
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
            own: 70,
        };
        let later = Moment {
            all: 2000,
            busy: 780,
            own: 470,
        };
        assert_eq!(then.share_until(later), 0.2);
        assert_eq!(then.share_until(then), 0.0);
    }
}
