//! The search for the highest rate that meets a quality of service.
//!
//! A quality is a quantile and a bound: `p95<10ms` means that 95 % of the requests are answered within 10 ms
//! of the time at which they were due. A rate *meets* it if a run at this rate, open loop, keeps the bound,
//! answers every request (none unanswered after the grace), achieves 99 % of what was offered, and shows no
//! wrong value and no error of the server, which may well refuse faster than it could serve.
//!
//! 1. A closed-loop run gives the most that the server does when it is asked as fast as it answers. The open
//!    loop can hardly do more: the search begins with the range from nothing to a tenth above it.
//! 2. The range is halved, geometrically once a lower end is known: a rate that meets the quality becomes the
//!    lower end, one that does not the upper.
//! 3. When the ends are within the precision (3 % unless asked otherwise), the lower end is confirmed by
//!    further runs. If one of them fails, the rate goes down by the precision, and is confirmed again; not
//!    more than ten times.
//!
//! All trials are kept, so that a surprising end can be looked into. The decisions are pure code here; the
//! trials themselves come from outside.

use crate::{Error, Outcome};
use serde::Serialize;
use std::{fmt, str::FromStr};

/// A quality of service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct Quality {
    /// The share of the requests, above 0 and below 1.
    pub share: f64,
    /// Milliseconds.
    pub bound_ms: f64,
}

impl FromStr for Quality {
    type Err = String;

    /// `pQ<TIME`, as in `p95<10ms`, `p99.9<500us`, `p50<1s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (quantile, bound) = text.strip_prefix('p')?.split_once('<')?;
            let quantile: f64 = quantile.trim().parse().ok()?;
            let bound = bound.trim();
            let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
            let (number, factor) = units
                .iter()
                .find_map(|(unit, factor)| Some((bound.strip_suffix(unit)?, factor)))?;
            let bound_ms = number.trim().parse::<f64>().ok()? * factor;
            let allowed =
                quantile > 0.0 && quantile < 100.0 && bound_ms > 0.0 && bound_ms <= 3_600_000.0;
            allowed.then_some(Quality {
                share: quantile / 100.0,
                bound_ms,
            })
        };
        parse().ok_or_else(|| {
            "allowed: a quantile and a time in us, ms or s, as in \"p95<10ms\" or \"p99.9<1ms\" (quote it: < means something to the shell)".to_owned()
        })
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded because a share of 0.999 is not exactly 99.9 hundredths.
        let quantile = (self.share * 1e8).round() / 1e6;
        write!(f, "p{quantile}<{}ms", self.bound_ms)
    }
}

impl From<Quality> for String {
    fn from(quality: Quality) -> String {
        quality.to_string()
    }
}

impl Quality {
    /// Why an open-loop outcome does not meet the quality, or none if it does.
    pub fn verdict(&self, outcome: &Outcome) -> Option<String> {
        let latency = outcome.latency.at(self.share);
        let counts = &outcome.counts;
        if counts.faults() > 0 {
            return Some(format!("{} wrong values", counts.faults()));
        }
        if counts.server_errors > 0 {
            return Some(format!("{} errors of the server", counts.server_errors));
        }
        if counts.unanswered > 0 {
            return Some(format!("{} requests without a reply", counts.unanswered));
        }
        if latency >= self.bound_ms {
            return Some(format!("{latency:.3} ms"));
        }
        let due = counts.requests as f64;
        if (counts.answered as f64) < 0.99 * due {
            return Some(format!("{} of {due} requests answered", counts.answered));
        }
        None
    }
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The range is being halved.
    Halve,
    /// The rate found is tried again.
    Confirm,
}

/// One rate that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Requests per second.
    pub per_s: f64,
    /// Why.
    pub purpose: Purpose,
    /// Why the quality was not met; none if it was.
    pub failure: Option<String>,
}

/// The search's rules.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The ends of the range are so near each other when the search ends, as a share.
    pub precision: f64,
    /// Runs that confirm the rate found.
    pub confirmations: u32,
}

/// What a search found.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The highest rate that met the quality in all its confirmations, per second.
    pub per_s: f64,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
}

/// Steps down at most so often while confirming.
const STEPS_DOWN: u32 = 10;
/// The lowest rate worth trying is this share of the closed loop's.
const LOWEST: f64 = 0.01;

impl Search {
    /// Searches below `most`, the closed loop's rate; `trial` runs one rate and says why it does not meet the quality.
    ///
    /// # Errors
    ///
    /// The errors of `trial`; [`Error::Search`] if not even a hundredth of `most` meets the quality.
    pub fn run(
        &self,
        quality: &Quality,
        most: f64,
        mut trial: impl FnMut(f64, Purpose) -> Result<Option<String>, Error>,
    ) -> Result<Found, Error> {
        let mut trials = Vec::new();
        let mut attempt = |per_s: f64, purpose| -> Result<bool, Error> {
            let failure = trial(per_s, purpose)?;
            let met = failure.is_none();
            trials.push(Trial {
                per_s,
                purpose,
                failure,
            });
            Ok(met)
        };
        let lowest = (most * LOWEST).max(1.0);
        let (mut low, mut high) = (None, most * 1.1);
        loop {
            let per_s = match low {
                None if high <= lowest => {
                    let quality = quality.to_string();
                    return Err(Error::Search { quality, lowest });
                }
                None => (high / 2.0).max(lowest),
                Some(low) if high / low <= 1.0 + self.precision => break,
                Some(low) => f64::sqrt(low * high),
            };
            match attempt(per_s, Purpose::Halve)? {
                true => low = Some(per_s),
                false => high = per_s,
            }
        }
        let mut per_s = low.unwrap_or(lowest);
        for _ in 0..STEPS_DOWN {
            let mut confirmed = true;
            for _ in 0..self.confirmations {
                confirmed = confirmed && attempt(per_s, Purpose::Confirm)?;
            }
            if confirmed {
                return Ok(Found { per_s, trials });
            }
            per_s /= 1.0 + self.precision;
        }
        Err(Error::Search {
            quality: quality.to_string(),
            lowest: per_s,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Counts, Record};
    use crate::{Arrivals, Pace};
    use std::time::Duration;

    fn quality(text: &str) -> Quality {
        text.parse().expect(text)
    }

    #[test]
    fn qualities_are_read_and_written() {
        for (text, share, bound_ms) in [
            ("p95<10ms", 0.95, 10.0),
            ("p99.9<500us", 0.999, 0.5),
            ("p50 < 1s", 0.5, 1000.0),
        ] {
            let quality = quality(text);
            assert!((quality.share - share).abs() < 1e-12);
            assert!((quality.bound_ms - bound_ms).abs() < 1e-12);
        }
        assert_eq!(quality("p99.9<500us").to_string(), "p99.9<0.5ms");
        for text in [
            "", "95<10ms", "p0<1ms", "p100<1ms", "p95<10", "p95<0ms", "p95>1ms",
        ] {
            let refusal = text.parse::<Quality>().expect_err(text);
            assert!(refusal.contains("allowed"), "{text}");
        }
    }

    #[test]
    fn a_run_in_which_the_server_refused_a_request_does_not_meet_the_quality() {
        let second = Duration::from_secs(1);
        let run = |counts| {
            let pace = Pace::Open(1.0, Arrivals::Uniform);
            let mut record = Record::new();
            record.counts = counts;
            Outcome::of(pace, second, second, vec![record])
        };
        let served = Counts {
            requests: 100,
            answered: 100,
            ..Counts::default()
        };
        let quality = quality("p95<10ms");
        assert_eq!(quality.verdict(&run(served.clone())), None);
        let refused = Counts {
            server_errors: 1,
            ..served
        };
        let verdict = quality.verdict(&run(refused)).expect("it was refused");
        assert!(verdict.contains("1 errors of the server"), "{verdict}");
    }

    #[test]
    fn the_search_ends_within_its_precision_below_the_limit() {
        let search = Search {
            precision: 0.02,
            confirmations: 2,
        };
        for limit in [1500.0, 40_000.0, 99_000.0] {
            let found = search
                .run(&quality("p95<10ms"), 100_000.0, |per_s, _| {
                    Ok((per_s > limit).then(|| "slow".to_owned()))
                })
                .expect("there is a rate");
            assert!(
                found.per_s <= limit && found.per_s > limit * 0.97,
                "{found:?}"
            );
            assert!(found.trials.len() < 20);
        }
    }

    #[test]
    fn a_rate_that_is_not_confirmed_is_lowered() {
        let search = Search {
            precision: 0.05,
            confirmations: 1,
        };
        let found = search
            .run(&quality("p95<10ms"), 1000.0, |per_s, purpose| {
                let limit = match purpose {
                    Purpose::Halve => 800.0,
                    Purpose::Confirm => 650.0,
                };
                Ok((per_s > limit).then(|| "slow".to_owned()))
            })
            .expect("there is a rate");
        assert!((600.0..650.0).contains(&found.per_s), "{}", found.per_s);
    }

    #[test]
    fn a_server_that_never_meets_the_quality_ends_the_search() {
        let search = Search {
            precision: 0.05,
            confirmations: 1,
        };
        let failure = search
            .run(&quality("p95<10ms"), 1000.0, |_, _| Ok(Some("slow".into())))
            .expect_err("no rate meets it");
        assert!(failure.to_string().contains("p95<10ms"), "{failure}");
    }
}
