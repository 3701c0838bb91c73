//! Measurements that were disturbed are made again.
//!
//! Two processors are few: one compiler beside the measurement, or a thread of the kernel on the client's processor,
//! makes latencies that no server caused. Two signs of a disturbance do not depend on the server. The first is the
//! processor time that other programs used: the machine's, less the time of this process and its children. The second
//! is the *lag* of the client: it has a processor of its own, and yet came late to requests that were due. A client
//! that loses its processor for one tick of the kernel, 4 ms, adds 4 ms to all requests of that time, whichever server
//! serves them, and sends them as a burst. Measured here, such runs have ten times the median and the p95 of calm runs,
//! with each server.
//!
//! So a measurement is repeated while either sign is above its limit, as often as the options allow, after a wait for
//! other programs to end; if none was calm, the one with the least lag counts. The limits are the same for all
//! contenders, and the latencies themselves decide nothing. The lag of the measurement that counts stands in the
//! tables, and a bar goes only by rounds in which the client was in time for both sides. A wrong reply is no
//! disturbance: it ends the measurement, whatever else ran.

use super::{Error, Options};
use std::thread;
use std::time::{Duration, Instant};
use urgency_measure::others::Moment;

/// The most that others may use, in processors.
const CALM: f64 = 0.05;
/// The most that the client may be late, for 99 % of the requests, in milliseconds.
pub const LATE: f64 = 0.25;
/// How long calm is waited for before a measurement is repeated.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures until nothing disturbs it, or as often as the options allow; then the calmest. `lag` is the
/// client's p99, in milliseconds.
///
/// # Errors
///
/// The error of a measurement that was calm, or of the last one; and [`Error::Wrong`] of any.
pub fn calmest<T>(
    options: &Options,
    title: &str,
    lag: impl Fn(&T) -> f64,
    mut measure: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut again = if options.quick { 0 } else { options.retries };
    let mut best: Option<(f64, T)> = None;
    loop {
        let before = Moment::now();
        let result = measure();
        let others = others(before);
        let is_last = again == 0;
        let measured = match result {
            Err(error @ Error::Wrong { .. }) => return Err(error),
            Err(error) if others <= CALM || is_last => return Err(error),
            result => result.ok(),
        };
        let late = measured.as_ref().map_or(0.0, &lag);
        let is_calm = others <= CALM && late <= LATE;
        if let Some(measured) = measured
            && (is_calm || best.as_ref().is_none_or(|(least, _)| late < *least))
        {
            best = Some((late, measured));
        }
        if !is_calm && !options.quick {
            eprintln!(
                "{title}: the client was late by {late:.2} ms, other processes used {others:.2} processors"
            );
        }
        match best {
            Some((_, best)) if is_calm || is_last => return Ok(best),
            rest => best = rest,
        }
        again = again.saturating_sub(1);
        wait_for_calm();
    }
}

fn wait_for_calm() {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let before = Moment::now();
        thread::sleep(Duration::from_millis(500));
        if others(before) <= CALM {
            break;
        }
    }
}

/// How many processors other programs use, since `before`. Interrupts belong to nobody.
fn others(before: Moment) -> f64 {
    before.programs_until(Moment::now(), machine_processors())
}

/// Processors of the machine, whatever this process is bound to.
fn machine_processors() -> usize {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    stat.lines().filter(is_one).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::options::parsed as options;

    #[test]
    fn of_measurements_in_which_the_client_was_late_the_least_late_counts() {
        let mut lags = [3.0, 2.0, 4.0].into_iter();
        let mut tries = 0;
        let counts = calmest(
            &options("compare --retries 2"),
            "a server",
            |lag| *lag,
            || {
                tries += 1;
                Ok(lags.next().expect("no more than two repetitions"))
            },
        );
        assert_eq!((tries, counts.ok()), (3, Some(2.0)));
    }

    #[test]
    fn a_wrong_reply_is_no_disturbance_that_is_measured_away() {
        let mut tries = 0;
        let counts = calmest(
            &options("compare --retries 2"),
            "a server",
            |lag| *lag,
            || {
                tries += 1;
                // The machine is not calm, for others compute beside this process.
                burn_beside();
                match tries {
                    1 => Err(Error::Wrong {
                        title: "a server".into(),
                        fault: "another value".into(),
                    }),
                    _ => Ok(9.0),
                }
            },
        );
        assert!(matches!(counts, Err(Error::Wrong { .. })), "{counts:?}");
        assert_eq!(tries, 1);
    }

    /// Processor time of a process that this one has not waited for, and that is no child of it.
    fn burn_beside() {
        let script = "timeout 0.3 sh -c 'while :; do :; done' & ";
        let shell = std::process::Command::new("sh")
            .args(["-c", script])
            .status();
        assert!(shell.expect("a shell starts").success());
        thread::sleep(Duration::from_millis(300));
    }

    #[test]
    fn a_quick_measurement_is_made_once() {
        let mut tries = 0;
        let counts = calmest(
            &options("compare --quick"),
            "a server",
            |lag| *lag,
            || {
                tries += 1;
                Ok(9.0)
            },
        );
        assert_eq!((tries, counts.ok()), (1, Some(9.0)));
    }
}
