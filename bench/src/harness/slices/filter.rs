//! What is left out because the host had a processor, and how sure the rest is.
//!
//! An event is left out by when it was *due*, never by how long it took: if it was due less than the
//! experiment's *reach* before a spoilt interval, in it, or less than the reach after its end. A rule that looked
//! at the latency would leave out more of a contender whose events take long, and flatter it.

use super::canary::Spoilt;
use crate::harness::Sample;
use crate::harness::events::Events;
use std::time::Duration;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 400;

/// The events that the host did not spoil, and how many it did.
pub fn unspoilt(events: &Events, spoilt: &[Spoilt], reach: Duration) -> (Events, usize) {
    let reach = reach.as_nanos() as u64;
    let mut windows: Vec<(u64, u64)> = spoilt
        .iter()
        .map(|one| (one.start.saturating_sub(reach), one.end + reach))
        .collect();
    windows.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in windows {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    events.only(|event| {
        let after = merged.partition_point(|&(start, _)| start <= event.due);
        after == 0 || event.due > merged[after - 1].1
    })
}

/// 95 % bootstrap intervals of p50, p95 and p99 of each series, as `<series>_p99_low_ns` and `_high_ns`.
pub fn intervals(events: &Events) -> Sample {
    let mut random = fastrand::Rng::with_seed(1);
    let mut sample = Sample::new();
    for series in events.series() {
        let latencies: Vec<u64> = events
            .of(series)
            .iter()
            .map(|event| event.latency)
            .collect();
        for (name, quantile) in [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)] {
            if let Some((low, high)) = interval(&latencies, quantile, &mut random) {
                sample = sample
                    .with(format!("{series}_{name}_low_ns"), low)
                    .with(format!("{series}_{name}_high_ns"), high);
            }
        }
    }
    sample
}

/// The middle 95 % of a quantile over resamples; none of an empty series.
fn interval(latencies: &[u64], quantile: f64, random: &mut fastrand::Rng) -> Option<(f64, f64)> {
    if latencies.is_empty() {
        return None;
    }
    let mut resample = vec![0; latencies.len()];
    let mut quantiles: Vec<u64> = (0..RESAMPLES)
        .map(|_| {
            resample.fill_with(|| latencies[random.usize(..latencies.len())]);
            let at = ((latencies.len() - 1) as f64 * quantile).round() as usize;
            *resample.select_nth_unstable(at).1
        })
        .collect();
    quantiles.sort_unstable();
    let at = |share: f64| quantiles[(RESAMPLES as f64 * share) as usize] as f64;
    Some((at(0.025), at(0.975)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::events::Event;

    fn events(due: &[u64]) -> Events {
        let mut events = Events::default();
        let event = |&due| Event { due, latency: due };
        events.add("series", due.iter().map(event));
        events
    }

    #[test]
    fn what_was_due_near_a_spoilt_interval_is_left_out_however_long_it_took() {
        let spoilt = [
            Spoilt {
                start: 300,
                end: 320,
            },
            Spoilt {
                start: 100,
                end: 200,
            },
        ];
        let reach = Duration::from_nanos(10);
        let (kept, left_out) = unspoilt(
            &events(&[1, 89, 90, 210, 211, 289, 305, 331]),
            &spoilt,
            reach,
        );
        let due: Vec<_> = kept.of("series").iter().map(|event| event.due).collect();
        assert_eq!((due, left_out), (vec![1, 89, 211, 289, 331], 3));
    }

    #[test]
    fn an_interval_encloses_the_quantile_and_is_narrow_where_all_are_equal() {
        let mut random = fastrand::Rng::with_seed(2);
        let all: Vec<u64> = (0..1000).collect();
        let (low, high) = interval(&all, 0.5, &mut random).unwrap();
        assert!(
            low < 500.0 && 500.0 < high && high - low < 150.0,
            "{low} {high}"
        );
        assert_eq!(interval(&[7; 10], 0.99, &mut random), Some((7.0, 7.0)));
        assert_eq!(interval(&[], 0.5, &mut random), None);
    }
}
