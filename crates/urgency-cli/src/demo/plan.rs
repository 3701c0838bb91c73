//! How the seconds that the user gave are spent.
//!
//! The contenders share the time equally, in *rounds*: each round gives each of them one *turn*, so that what
//! happens on the machine in the meantime happens to all. From round to round the order moves on by one. More
//! rounds compare more fairly, but each turn needs a moment to start, so a turn lasts about [`TURN_S`]
//! seconds.
//!
//! A turn, for a contender that computes:
//!
//!     start   settle   compute alone   warm-up   requests beside the compute   compute alone
//!
//! The stand-alone rate of the compute is measured before and after, in the same process, so that a drift of
//! the machine cancels out. Without compute there are only the warm-up and the requests.

use super::contender::Contender;
use std::time::Duration;

/// The length of a turn that rounds aim at, in seconds.
const TURN_S: f64 = 2.5;
/// What starting and ending the processes of a turn takes, in seconds.
const START_S: f64 = 0.06;

/// The whole run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All turns in order.
    pub turns: Vec<Turn>,
}

/// One contender's turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Whose turn it is.
    pub contender: Contender,
    /// Which round it belongs to, from 0.
    pub round: u64,
    /// From the start of the compute until it is metered.
    pub settle: Duration,
    /// Compute alone, before the requests and again after.
    pub alone: Duration,
    /// Requests that are not recorded.
    pub warm_up: Duration,
    /// Requests that are.
    pub load: Duration,
}

impl Plan {
    /// Shares `seconds` among `contenders`.
    pub fn new(contenders: &[Contender], seconds: f64) -> Self {
        let count = contenders.len();
        let rounds = (seconds / (count as f64 * TURN_S)).round().max(1.0);
        let turn_s = seconds / (count as f64 * rounds);
        let turns = (0..rounds as u64).flat_map(|round| {
            let order = (0..count).map(move |i| contenders[(i + round as usize) % count]);
            order.map(move |contender| Turn::new(contender, round, turn_s))
        });
        Plan {
            turns: turns.collect(),
        }
    }
}

impl Turn {
    fn new(contender: Contender, round: u64, turn_s: f64) -> Self {
        let usable = (turn_s - START_S).max(turn_s / 2.0);
        let share = |part: f64| Duration::from_secs_f64(usable * part);
        let (settle, alone) = match contender.computes() {
            true => (share(0.04), share(0.14)),
            false => (Duration::ZERO, Duration::ZERO),
        };
        let warm_up = share(0.06);
        Turn {
            contender,
            round,
            settle,
            alone,
            warm_up,
            load: Duration::from_secs_f64(usable) - settle - 2 * alone - warm_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_seconds_give_four_contenders_two_turns_each_in_another_order() {
        let plan = Plan::new(&Contender::REQUESTS, 20.0);
        let order: Vec<_> = plan.turns.iter().map(|turn| turn.contender).collect();
        use Contender::{Idle, Threads, TokioRayon, Urgency};
        assert_eq!(
            order,
            [
                Idle, Urgency, TokioRayon, Threads, Urgency, TokioRayon, Threads, Idle
            ]
        );
    }

    #[test]
    fn turns_take_the_time_that_was_given_and_no_more() {
        for seconds in [1.0, 3.0, 20.0, 100.0] {
            for contenders in [&Contender::REQUESTS[..1], &Contender::REQUESTS] {
                let plan = Plan::new(contenders, seconds);
                let planned: Duration = plan
                    .turns
                    .iter()
                    .map(|turn| turn.settle + 2 * turn.alone + turn.warm_up + turn.load)
                    .sum();
                assert!(planned.as_secs_f64() <= seconds);
                assert!(planned.as_secs_f64() >= seconds * 0.5);
                assert!(plan.turns.iter().all(|turn| !turn.load.is_zero()));
            }
        }
    }
}
