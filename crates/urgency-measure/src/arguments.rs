//! Values of command lines.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

/// The number that this text is, if it is allowed.
///
/// # Errors
///
/// What is wrong, and which numbers are allowed.
///
/// ```
/// use urgency_measure::arguments::within;
///
/// assert_eq!(within("2", 1..=8, "workers"), Ok(2));
/// assert_eq!(within("9", 1..=8, "workers"), Err("out of range; allowed: 1 to 8 workers".into()));
/// ```
pub fn within<T>(text: &str, allowed: RangeInclusive<T>, unit: &str) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let expected = format!("allowed: {} to {} {unit}", allowed.start(), allowed.end());
    match text.parse() {
        Ok(value) if allowed.contains(&value) => Ok(value),
        Ok(_) => Err(format!("out of range; {expected}")),
        Err(_) => Err(format!("not a number; {expected}")),
    }
}
