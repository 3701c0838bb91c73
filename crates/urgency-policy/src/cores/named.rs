//! The built-in core policies by name.

use super::{
    AtBoundary, Boundary, CorePolicy, Drep, Elastic, Feedback, Shares, StaticEqual, Unpartitioned,
};
use alloc::boxed::Box;
use core::fmt;

/// A core policy of whatever type.
pub type BoxedPolicy = Box<dyn CorePolicy + Send>;

/// All names, with what they stand for.
///
/// ```
/// use urgency_policy::cores::{NAMED, named};
///
/// for (name, what) in NAMED {
///     assert!(named(name, 1, 2).is_ok(), "{name}: {what}");
/// }
/// ```
pub const NAMED: [(&str, &str); 8] = [
    (
        "shares",
        "weight, priority, least and most cores, measured desire (the default)",
    ),
    (
        "drep",
        "lots: a new job draws each core with probability 1/n",
    ),
    (
        "elastic",
        "real-time tasks with elastic periods; the rest by weight",
    ),
    ("feedback", "equal parts of the measured parallelism"),
    ("static", "a fixed number of equal parts"),
    ("none", "no partition: every core serves every job"),
    (
        "steal-boundary",
        "as drep, but a core leaves only where it would steal",
    ),
    (
        "job-boundary",
        "as elastic, but a core leaves only where an iteration ends",
    ),
];

/// There is no core policy of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no core policy of this name; there are")?;
        for (number, (name, _)) in NAMED.iter().enumerate() {
            write!(f, "{} {name}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPolicy {}

/// The policy of this name with its default numbers: lots from `seed`, `parts` static parts.
///
/// It cannot be cloned. What wants a clone of a policy, as a set of jobs does, takes the policy's own type.
///
/// ```
/// use urgency_policy::cores::{CorePolicy, named};
///
/// assert!(named("shares", 1, 2)?.is_work_conserving());
/// assert!(named("fair", 1, 2).err().unwrap().to_string().contains("shares, drep"));
/// # Ok::<(), urgency_policy::cores::UnknownPolicy>(())
/// ```
///
/// # Errors
///
/// If there is none.
pub fn named(name: &str, seed: u64, parts: usize) -> Result<BoxedPolicy, UnknownPolicy> {
    Ok(match name {
        "shares" => Box::new(Shares::default()),
        "drep" => Box::new(Drep::new(seed)),
        "elastic" => Box::new(Elastic::default()),
        "feedback" => Box::new(Feedback::default()),
        "static" => Box::new(StaticEqual::new(parts.max(1)).expect("a number above 0")),
        "none" => Box::new(Unpartitioned),
        "steal-boundary" => Box::new(AtBoundary::new(Drep::new(seed), Boundary::Steal)),
        "job-boundary" => Box::new(AtBoundary::new(Elastic::default(), Boundary::Job)),
        _ => return Err(UnknownPolicy),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Cores, Demand, Event, JobId, Request};
    use super::*;

    #[test]
    fn where_least_cores_exceed_the_available_ones_the_more_urgent_jobs_and_of_equals_the_oldest_have_theirs()
     {
        for (name, _) in NAMED {
            if name == "none" {
                continue;
            }
            let mut policy = named(name, 1, 3).unwrap();
            let mut cores = Cores::new(3);
            for (id, priority) in [(1, 1), (2, 0), (3, 0)] {
                let demand = Demand {
                    priority,
                    min_cores: 1,
                    ..Demand::default()
                };
                cores.start(&mut policy, JobId(id), demand).unwrap();
                let start = Event::Start(JobId(id));
                cores.decide(&mut policy, start).unwrap();
            }
            assert_eq!(cores.counts(), [1, 1, 1], "{name}");
            for (core, left) in [(1, [0, 1, 1]), (2, [0, 1, 0])] {
                cores.set_available(core, false).unwrap();
                let gone = Event::Request(Request::Cores);
                cores.decide(&mut policy, gone).unwrap();
                assert_eq!(cores.counts(), left, "{name}");
            }
        }
    }
}
