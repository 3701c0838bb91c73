//! What is refused before anything is made for it: numbers that make no computation, computations that do not fit into
//! memory, runs that do not end in reason.

use super::{
    Stop,
    options::{Options, Shape},
    wrong,
};
use crate::{
    dag::{Dag, LONGEST},
    generate::{MOST_LOAD, MOST_RATE, Sizes, Stream},
};
use std::fmt;

/// A stream has so many vertices at most. They take some 2 GB while they are made and run.
const MOST_VERTICES: f64 = 1e7;

/// So many slices of vertices, or quanta, are simulated at most.
const MOST_EVENTS: f64 = 1e7;

/// The gap between the requests of the experiment with three levels, in nanoseconds.
pub(super) const REQUEST_GAP: u64 = 20_000_000;

/// A computation of which too many vertices are expected: all of them are in memory before any is run.
#[derive(Debug)]
struct TooLarge {
    shape: Shape,
    /// The options that say how many there are, with their values.
    given: String,
    vertices: f64,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} make a {} of some {:.0} vertices, all of them in memory; it can have {MOST_VERTICES}: lower one of these",
            self.given,
            self.shape.name(),
            self.vertices
        )
    }
}

/// A run that takes too many steps to be simulated.
#[derive(Debug)]
struct TooManyEvents {
    option: &'static str,
    nanos: u64,
    what: &'static str,
    events: f64,
}

impl fmt::Display for TooManyEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} ns makes {:.0} {} of this computation; there can be {MOST_EVENTS}: raise it",
            self.option, self.nanos, self.events, self.what
        )
    }
}

impl Options {
    /// Whether the numbers of a generated computation are in their ranges.
    pub(super) fn check(&self, shape: Shape) -> Result<(), Stop> {
        let most = match shape {
            Shape::Bing | Shape::Finance => MOST_LOAD * 100.0,
            _ => MOST_RATE,
        };
        if !(0.0..=most).contains(&self.rate) {
            return Err(wrong(format!(
                "--rate {:?} was given for {}; it can be 0 to {most}",
                self.rate,
                shape.name()
            )));
        }
        let (work, time) = (self.work.max(1) as f64, self.time() as f64);
        let requests = time / REQUEST_GAP as f64;
        let longest = match shape {
            // Sink and kernel, of at least a leaf each, and the requests.
            Shape::ThreeLevels => time * self.workers as f64 * 1.125 + work * (3.0 + requests),
            Shape::JobServer | Shape::Memcached | Shape::Bing | Shape::Finance => 0.0,
            // At most twelve vertices for each of what is asked for, and some of 100 ns.
            _ => (f64::from(self.size) + 1.0) * 12.0 * (work + self.latency as f64 + 100.0),
        };
        // Work and the longest path may be the same.
        if 2.0 * (longest + time) > LONGEST as f64 {
            return Err(wrong(format!(
                "--size {}, --work {}, --latency {} and --time-ms {} make a {} of up to {:.0} s; work and longest path \
                 together can be {:.0} s",
                self.size,
                self.work,
                self.latency,
                self.time_ms,
                shape.name(),
                2e-9 * (longest + time),
                1e-9 * LONGEST as f64
            )));
        }
        let (rate, load, time) = (self.rate, self.rate / 100.0, self.time());
        let vertices = match shape {
            // The kernel's tree is an eighth of the sink's.
            Shape::ThreeLevels => {
                3.0 * 1.125 * (time as f64 * self.workers as f64 / work) + requests
            }
            Shape::JobServer => Stream::JobServer(rate).vertices(time),
            Shape::Memcached => Stream::Memcached(rate).vertices(time),
            Shape::Bing => Stream::Jobs(Sizes::BING, self.workers, load).vertices(time),
            Shape::Finance => Stream::Jobs(Sizes::FINANCE_LIKE, self.workers, load).vertices(time),
            // `--size` has its own range.
            _ => return Ok(()),
        };
        if vertices > MOST_VERTICES {
            let given = match shape {
                Shape::ThreeLevels => format!(
                    "--time-ms {}, --workers {} and --work {}",
                    self.time_ms, self.workers, self.work
                ),
                Shape::Bing | Shape::Finance => format!(
                    "--rate {rate:?} %, --workers {} and --time-ms {}",
                    self.workers, self.time_ms
                ),
                _ => format!("--rate {rate:?} a second and --time-ms {}", self.time_ms),
            };
            return Err(wrong(TooLarge {
                shape,
                given,
                vertices,
            }));
        }
        Ok(())
    }

    /// Whether a run of this computation ends in reason.
    pub(super) fn check_events(&self, dag: &Dag) -> Result<(), Stop> {
        let work = dag.total_work() as f64;
        let quantum = self.quantum_us * 1000;
        let slices = self.check_in.map(|nanos| TooManyEvents {
            option: "--check-in",
            nanos,
            what: "slices",
            events: work / nanos as f64,
        });
        // With one worker, or where everything waits for everything, it takes so long.
        let quanta = (self.schedule == "adaptive").then(|| TooManyEvents {
            option: "--quantum-us",
            nanos: quantum,
            what: "quanta",
            events: (work + dag.span() as f64) / quantum as f64,
        });
        let all = [slices, quanta].into_iter().flatten();
        let mut refused = all.filter(|run| run.events > MOST_EVENTS);
        refused.next().map_or(Ok(()), |run| Err(wrong(run)))
    }
}
