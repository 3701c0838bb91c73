//! The built-in core policies by name.

use super::{
    AtBoundary, Boundary, CorePolicy, Drep, Elastic, Feedback, Shares, StaticEqual, Unpartitioned,
};
use alloc::boxed::Box;
use core::fmt;

/// A core policy of whatever type.
pub type BoxedPolicy = Box<dyn CorePolicy + Send>;

/// All names, with what they stand for.
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
