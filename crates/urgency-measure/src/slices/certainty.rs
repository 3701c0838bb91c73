//! How sure a percentile is: a bootstrap over slices.
//!
//! Events of one slice are not independent (a queue makes all of them late), so whole slices are drawn, with
//! repetition, as many as there were, and the percentile is taken of their events. Over 400 such draws the middle
//! 95 % are the interval.
//!
//! The interval narrows with the root of the number of events. So it says how many events a run needs until two
//! runs of the same program agree within 5 %: [`agrees_after`].

use crate::events::Events;
use crate::sample::Sample;
use std::collections::BTreeMap;
use std::time::Duration;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 400;
/// With events in fewer slices than this, draws say nothing about another run.
const FEWEST: usize = 10;
/// What two runs of the same program may differ by.
const AGREEMENT: f64 = 0.05;

/// The middle 95 % of a percentile over resamples.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    low: f64,
    high: f64,
}

/// For each kind of event `<series>_p99_low_ns` and `_high_ns` (p50 and p95 likewise), its `<series>_events`, and, if
/// these are of ten slices or more, `<series>_needed_events`, the number after which two runs agree at p99.
pub fn of(events: &Events, slice: Duration) -> Sample {
    let mut random = fastrand::Rng::with_seed(1);
    let mut sample = Sample::new();
    for series in events.kinds() {
        let mut slices: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for event in events.of(series) {
            // The contender's next slice is further away than one length; one that is cut in two does no harm.
            let number = event.due / slice.as_nanos() as u64;
            slices.entry(number).or_default().push(event.latency);
        }
        let slices: Vec<_> = slices.into_values().collect();
        let count = events.of(series).len();
        sample = sample.with(format!("{series}_events"), count as f64);
        for (name, quantile) in [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)] {
            let Some(interval) = interval(&slices, quantile, &mut random) else {
                continue;
            };
            sample = sample
                .with(format!("{series}_{name}_low_ns"), interval.low)
                .with(format!("{series}_{name}_high_ns"), interval.high);
            if name == "p99" && slices.len() >= FEWEST {
                let needed = agrees_after(count, interval);
                sample = sample.with(format!("{series}_needed_events"), needed);
            }
        }
    }
    sample
}

/// How many events two runs of the same program need so that their percentiles differ by at most [`AGREEMENT`] in 95
/// of 100 cases, by the interval that `count` events gave: a difference of two has the root of two times the error of
/// one.
fn agrees_after(count: usize, Interval { low, high }: Interval) -> f64 {
    let error = (high - low) / (high + low);
    count as f64 * 2.0 * (error / AGREEMENT).powi(2)
}

/// The interval of a quantile; none without events.
fn interval(slices: &[Vec<u64>], quantile: f64, random: &mut fastrand::Rng) -> Option<Interval> {
    if slices.is_empty() {
        return None;
    }
    let mut resample = Vec::new();
    let mut quantiles: Vec<u64> = (0..RESAMPLES)
        .map(|_| {
            resample.clear();
            for _ in slices {
                resample.extend_from_slice(&slices[random.usize(..slices.len())]);
            }
            let at = ((resample.len() - 1) as f64 * quantile).round() as usize;
            *resample.select_nth_unstable(at).1
        })
        .collect();
    quantiles.sort_unstable();
    let at = |share: f64| quantiles[(RESAMPLES as f64 * share) as usize] as f64;
    Some(Interval {
        low: at(0.025),
        high: at(0.975),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_encloses_the_quantile_and_is_narrow_where_all_are_equal() {
        let mut random = fastrand::Rng::with_seed(2);
        let all: Vec<Vec<u64>> = (0..1000).map(|value| vec![value]).collect();
        let Interval { low, high } = interval(&all, 0.5, &mut random).unwrap();
        assert!(
            low < 500.0 && 500.0 < high && high - low < 150.0,
            "{low} {high}"
        );
        let equal = interval(&[vec![7; 5], vec![7; 5]], 0.99, &mut random);
        let (low, high) = (7.0, 7.0);
        assert_eq!(equal, Some(Interval { low, high }));
        assert_eq!(interval(&[], 0.99, &mut random), None);
    }

    #[test]
    fn slices_in_which_all_is_late_make_a_percentile_less_sure_than_events_that_are_late_alone() {
        let latency = |index: u64| if index < 20 { 100 } else { index % 10 };
        let together: Vec<Vec<u64>> = (0..100)
            .map(|slice| (0..10).map(|at| latency(slice * 10 + at)).collect())
            .collect();
        let alone: Vec<Vec<u64>> = (0..1000).map(|at| vec![latency(at)]).collect();
        let width = |slices: &[Vec<u64>]| {
            let mut random = fastrand::Rng::with_seed(3);
            let Interval { low, high } = interval(slices, 0.98, &mut random).unwrap();
            high - low
        };
        assert!(width(&together) >= width(&alone));
        assert!(width(&together) > 90.0);
    }

    #[test]
    fn half_the_error_takes_four_times_the_events() {
        let needed = |low, high| agrees_after(1000, Interval { low, high });
        assert!((needed(90.0, 110.0) - 8000.0).abs() < 1e-6);
        assert!((needed(95.0, 105.0) - 2000.0).abs() < 1e-6);
    }
}
