//! What is left out because the host had a processor.
//!
//! An event is left out by when it was *due*, never by how long it took: if it was due less than the
//! experiment's *reach* before a spoilt interval, in it, or less than the reach after its end. A rule that looked
//! at the latency would leave out more of a contender whose events take long, and flatter it.

use super::canary::Spoilt;
use crate::events::Events;
use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;

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
}
