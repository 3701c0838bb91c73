//! What a contender under load logs: events, each with its intended time and its latency.
//!
//! Kept one by one, not in a histogram: only so can what happened while the host had the processor be left out
//! afterwards, for all contenders alike. They go into a file `series,due_ns,latency_ns`.

use crate::latencies::Latencies;
use crate::machine::now_ns;
use crate::sample::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How the name of a series of requests ends that had no reply. They are in the series without this ending as well.
pub const UNANSWERED: &str = "_unanswered";

/// How the name of a series of requests ends whose latencies are the server's own: from the client's sending until the
/// kernel had the reply. They are in the series without this ending as well, as the client sees them.
pub const SERVED: &str = "_served";

/// One request, frame or callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was due, in nanoseconds of the monotonic clock.
    pub due: u64,
    /// How much later it was done, in nanoseconds.
    pub latency: u64,
}

/// Events by series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Events(BTreeMap<String, Vec<Event>>);

impl Events {
    /// Adds a series, or events to it.
    pub fn add(&mut self, series: &str, events: impl IntoIterator<Item = Event>) {
        let all = self.0.entry(series.to_owned()).or_default();
        all.extend(events);
    }

    /// Adds all series of `other`.
    pub fn append(&mut self, other: Events) {
        for (series, events) in other.0 {
            self.add(&series, events);
        }
    }

    /// The events of a series; none if there is no such series.
    pub fn of(&self, series: &str) -> &[Event] {
        self.0.get(series).map_or(&[], Vec::as_slice)
    }

    /// Percentiles of a series, as [`Latencies::sample`] with `<series>_` as prefix; the same by the server's own
    /// times, if there are any, with `<series>_served_`; and how many are `unanswered`.
    pub fn sample(&self, series: &str) -> Sample {
        self.sample_as(series, &format!("{series}_"))
    }

    /// The same with another prefix.
    pub fn sample_as(&self, series: &str, prefix: &str) -> Sample {
        let silent = self.of(&format!("{series}{UNANSWERED}")).len();
        let sample = self
            .latencies(series)
            .sample(prefix)
            .with(format!("{prefix}unanswered"), silent as f64);
        let served = self.latencies(&format!("{series}{SERVED}"));
        match served.asked() {
            0 => sample,
            _ => sample.with_all("", &served.sample(&format!("{prefix}served_"))),
        }
    }

    /// The share of a series that was done within `limit`.
    pub fn share_within(&self, series: &str, limit: Duration) -> f64 {
        let events = self.of(series);
        let in_time = |event: &&Event| Duration::from_nanos(event.latency) <= limit;
        events.iter().filter(in_time).count() as f64 / events.len().max(1) as f64
    }

    fn latencies(&self, series: &str) -> Latencies {
        let mut latencies = Latencies::new();
        for event in self.of(series) {
            latencies.record(Duration::from_nanos(event.latency));
        }
        latencies
    }

    /// How many events of a closed loop are done per second in which one is under way. What was left out of the events
    /// is left out of the time as well.
    pub fn per_s(&self, series: &str) -> f64 {
        let mut events = self.of(series).to_vec();
        events.sort_unstable_by_key(|event| event.due);
        let (mut busy, mut until) = (0, 0);
        for Event { due, latency } in &events {
            let end = due + latency;
            busy += end.saturating_sub(until.max(*due));
            until = until.max(end);
        }
        events.len() as f64 * 1e9 / busy.max(1) as f64
    }

    /// Names of the series.
    pub fn series(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Names of the series in which each event stands once: neither as unanswered nor by the server's own time.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.series()
            .filter(|name| !name.ends_with(UNANSWERED) && !name.ends_with(SERVED))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are, of all kinds.
    pub fn len(&self) -> usize {
        self.kinds().map(|kind| self.of(kind).len()).sum()
    }

    /// Only the events that `keeps` admits, and how many it does not.
    pub fn only(&self, keeps: impl Fn(&Event) -> bool) -> (Events, usize) {
        let mut kept = Events::default();
        for (series, events) in &self.0 {
            let admitted = events.iter().copied().filter(&keeps).collect();
            kept.0.insert(series.clone(), admitted);
        }
        let left_out = self.len() - kept.len();
        (kept, left_out)
    }

    /// Writes them into a file.
    pub fn write(&self, mut file: &File) -> io::Result<()> {
        let mut text = String::from("series,due_ns,latency_ns\n");
        for (series, events) in &self.0 {
            for Event { due, latency } in events {
                writeln!(text, "{series},{due},{latency}").expect("a string takes any text");
            }
        }
        file.write_all(text.as_bytes())
    }

    /// Reads what [`write`](Self::write) wrote.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut events = Events::default();
        for line in std::fs::read_to_string(path)?.lines().skip(1) {
            let wrong = || io::Error::other(format!("{line:?} is no event"));
            let mut cells = line.split(',');
            let series = cells.next().ok_or_else(wrong)?;
            let mut number = || cells.next()?.parse().ok();
            let (due, latency) = (number(), number());
            let (due, latency) = due.zip(latency).ok_or_else(wrong)?;
            events.add(series, [Event { due, latency }]);
        }
        Ok(events)
    }
}

/// Events of one kind, logged by any thread.
#[derive(Default)]
pub struct Log(Mutex<Vec<Event>>);

impl Log {
    /// Adds what was due at `due` and is done now.
    pub fn done(&self, due: u64) {
        let latency = now_ns().saturating_sub(due);
        self.add(Event { due, latency });
    }

    /// Adds an event.
    pub fn add(&self, event: Event) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_closed_loop_is_of_the_time_in_which_something_is_under_way() {
        let event = |due, latency| Event { due, latency };
        let mut events = Events::default();
        events.add(
            "echo",
            [event(5_000, 500), event(1_000, 500), event(1_200, 700)],
        );
        // From 1000 to 1900 and from 5000 to 5500.
        assert_eq!(events.per_s("echo"), 3.0 * 1e9 / 1400.0);
        assert_eq!(events.per_s("none"), 0.0);
    }

    #[test]
    fn an_event_that_stands_in_several_series_counts_once() {
        let event = Event { due: 1, latency: 2 };
        let mut events = Events::default();
        for series in ["echo", "echo_unanswered", "page", "page_served"] {
            events.add(series, [event]);
        }
        assert_eq!(events.kinds().collect::<Vec<_>>(), ["echo", "page"]);
        assert_eq!(events.len(), 2);
        let (kept, left_out) = events.only(|_| false);
        assert_eq!((kept.len(), left_out), (0, 2));
    }

    #[test]
    fn a_file_of_events_reads_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("urgency-events-{}", std::process::id()));
        let event = |due, latency| Event { due, latency };
        let mut events = Events::default();
        events.add("health", [event(1, 2), event(u64::MAX, 0)]);
        events.add("search", [event(3, 4)]);
        events.write(&File::create(&path).unwrap()).unwrap();
        let read = Events::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), events);
    }
}
