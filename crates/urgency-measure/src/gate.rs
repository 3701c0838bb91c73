//! When a contender is under load: the one place that says which ticks there are.
//!
//! A *gate* is closed until the experiment opens it for a stretch of time. Each *pulse* (a loop with a period, in the
//! contender's own way: a thread that sleeps, a task that awaits) asks it for its next tick, and is told none while
//! there is no load. Ticks are instants of the monotonic clock, so an event can be compared with what another process
//! saw at that time. A pulse that is told none has finished all its ticks; when all have, the gate is *drained*, and
//! the contender can be stopped without making an open tick late.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a pulse that has no tick waits before it asks again.
pub const NAP: Duration = Duration::from_millis(1);

/// When there is load.
pub struct Gate(Mutex<State>);

struct State {
    start: u64,
    end: u64,
    /// Opened so many times.
    opened: u64,
    /// For each pulse, the opening whose ticks it has finished.
    finished: Vec<u64>,
}

impl Gate {
    /// A closed gate for so many pulses, which are numbered from 0.
    pub fn new(pulses: usize) -> Self {
        Gate(Mutex::new(State {
            start: 0,
            end: 0,
            opened: 0,
            finished: vec![0; pulses],
        }))
    }

    /// Lets ticks happen from `start` until before `end`, in nanoseconds of the monotonic clock.
    pub fn open(&self, start: u64, end: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.start, state.end) = (start, end);
        state.opened += 1;
    }

    /// The first tick of `pulse` after `last`, or none; then `pulse` has finished the ticks that there were.
    pub fn next(&self, pulse: usize, period: Duration, last: u64) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let period = period.as_nanos() as u64;
        let passed = match last.checked_sub(state.start) {
            Some(since) => since / period + 1,
            None => 0,
        };
        let tick = state.start + passed * period;
        if tick < state.end {
            return Some(tick);
        }
        state.finished[pulse] = state.opened;
        None
    }

    /// Whether every pulse has finished the ticks of the last opening.
    pub fn is_drained(&self) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.finished.iter().all(|&opened| opened == state.opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_a_period_apart_from_the_opening_to_its_end() {
        let gate = Gate::new(1);
        let next = |last| gate.next(0, Duration::from_nanos(10), last);
        assert_eq!(next(0), None);
        gate.open(1000, 1025);
        assert_eq!((next(0), next(1000)), (Some(1000), Some(1010)));
        // A pulse that was busy until 1019 goes on with the tick after that.
        assert_eq!((next(1019), next(1020)), (Some(1020), None));
    }

    #[test]
    fn a_gate_is_drained_when_the_last_pulse_has_finished_the_last_opening() {
        let gate = Gate::new(2);
        let next = |pulse, last| gate.next(pulse, Duration::from_nanos(10), last);
        gate.open(1000, 1010);
        assert_eq!((next(0, 1000), gate.is_drained()), (None, false));
        assert_eq!((next(1, 1000), gate.is_drained()), (None, true));
        gate.open(2000, 2010);
        assert!(!gate.is_drained());
    }
}
