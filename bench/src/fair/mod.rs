//! The evaluation of *Fairness in Responsive Parallelism* (section 6.2) on the runtime: three levels, an
//! interactive one on top, an endless, massively parallel sink in the middle, and one of five compute kernels
//! at the bottom.
//!
//! - `fair-<kernel>-<workers>` (Tables 1 and 4, Figures 8 and 9): a contender is a fairness criterion, in per
//!   cent for high, middle and low. `time_ns` is the kernel's time, `time_probes` the same in units of a
//!   serial fib(22) that is run on all processors meanwhile (`pace.rs`: the machine's speed changes by half).
//!   The *stretch* is the latter over that under 0-0-100 in the same round, and should be one over the
//!   kernel's share. A network echo, 50 requests a second, open loop, from a client in a process of its own,
//!   gives the response times. The shares are from the runtime's own accounting. The top level uses little,
//!   and the sink gets what it leaves.
//! - `fair-alone-<kernel>-<workers>` (Tables 2 and 3): the kernel without the sink, under the default policy
//!   and under a fair one, alone and beside the echo. `again` is the default policy once more: what it
//!   differs from itself is noise.
//!   `rayon` is the same program on rayon's pool, for the kernels that are no more than forks (fib, UTS).
//! - `fair-winner-<workers>` (section 6.2.4): fib below the echo under winner-take-all, the scheduler for two levels
//!   with which the paper compares, beside prompt and fair rounds.
//! - `fair-shares-<workers>`: a minute of two levels that compute without end and the echo on top.
//! - `fair-schedules-<workers>`: the same for 8 s under other schedules: prompt, and the adaptive family, whose shares
//!   are not set.
//! - `fair-peers-<workers>` (Table 5): fib and the echo, without a sink, on ours, rayon, Tokio and Go; see `peers/`.
//!
//! In the experiments without a criterion for the paper's numbers of cores, 1 and 2 workers stand for its 70.

mod peers;

#[cfg(feature = "ours")]
mod bfs;
#[cfg(feature = "ours")]
mod kernel;
#[cfg(feature = "ours")]
mod ours;
#[cfg(feature = "ours")]
mod pace;
#[cfg(feature = "ours")]
mod sample_sort;
#[cfg(feature = "ours")]
mod strassen;

use std::net::SocketAddr;
use std::time::Duration;
use urgency_measure::Sample;
use urgency_measure::client::Arrivals;
use urgency_measure::client::lanes::{Client, Lane, Lanes, Pace};
use urgency_measure::machine::now_ns;
use urgency_measure::{Experiment, Scale};

/// Echo requests per second.
const PER_S: f64 = 50.0;

/// The series of the echo.
const ECHO: &str = "echo";
/// Longer than any kernel takes.
const LONGEST: Duration = Duration::from_secs(600);

/// The echo's load, until it is ended.
struct EchoLoad(Client);

impl EchoLoad {
    /// Starts a client of this server.
    fn start(server: SocketAddr) -> Self {
        let lane = Lane::of_echoes(ECHO, Pace::Open(PER_S, Arrivals::Poisson), 8);
        let lanes = Lanes::new(server, vec![lane]);
        let client = Client::start("the echo's client", "--lanes", &lanes);
        let mut client = client.expect("the load client can be started");
        let now = now_ns();
        let opened = client.open(now, now + LONGEST.as_nanos() as u64);
        opened.expect("the load client reads its orders");
        EchoLoad(client)
    }

    /// Lets the client send no more; what it measured when the last reply has come.
    fn end(self) -> Sample {
        let done = self.0.end().unwrap_or_else(|error| panic!("{error}"));
        let sample = done.events.sample_as(ECHO, "");
        sample.with("client_real_time", f64::from(u8::from(done.is_real_time)))
    }
}

/// All experiments of the paper.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    #[cfg(feature = "ours")]
    let mut all = tables::experiments(scale);
    #[cfg(not(feature = "ours"))]
    let mut all = Vec::new();
    all.extend(peers::experiments(scale));
    all
}

#[cfg(feature = "ours")]
mod tables {
    //! Which criteria, and their bars.

    use super::kernel::Which;
    use super::ours;
    use crate::engines::WORKERS;
    use urgency_measure::{Bar, Experiment, Scale};

    /// Criteria by name: shares of the high, the middle and the low level.
    const CRITERIA: [(&str, [f64; 3]); 5] = [
        ("0-0-100", [0.0, 0.0, 1.0]),
        ("50-0-50", [0.5, 0.0, 0.5]),
        ("50-25-25", [0.5, 0.25, 0.25]),
        ("25-25-50", [0.25, 0.25, 0.5]),
        ("5-45-50", [0.05, 0.45, 0.5]),
    ];

    const COLUMNS: [&str; 9] = [
        "time_probes",
        "time_ns",
        "probe_ns",
        "mean_ns",
        "p99_ns",
        "high_share",
        "middle_share",
        "low_share",
        "unanswered",
    ];

    pub fn experiments(scale: Scale) -> Vec<Experiment> {
        let mut all = Vec::new();
        for which in Which::ALL {
            for workers in WORKERS {
                all.push(stretched(scale, which, workers));
            }
        }
        for which in Which::ALL {
            for workers in WORKERS {
                all.push(alone(scale, which, workers));
            }
        }
        all.extend(WORKERS.map(|workers| winner(scale, workers)));
        all.extend(WORKERS.map(|workers| shares(scale, workers)));
        all.extend(WORKERS.map(|workers| schedules(scale, workers)));
        all
    }

    fn stretched(scale: Scale, which: Which, workers: usize) -> Experiment {
        let mut experiment = Experiment::new(
            format!("fair-{}-{workers}", which.name()),
            format!(
                "{} below an endless sink and an echo, by fairness criterion, {workers} worker(s)",
                which.name()
            ),
        )
        .table("0-0-100", &COLUMNS);
        let tolerance = if which.is_memory_bound() { 0.25 } else { 0.05 };
        for (name, shares) in CRITERIA {
            experiment =
                experiment.contender(name, move || ours::stretched(scale, which, workers, shares));
            let [high, _, low] = shares;
            if high > 0.0 {
                let (least, most) = ((1.0 - tolerance) / low, (1.0 + tolerance) / low);
                experiment = experiment
                    .bar(Bar::times_at_most(name, "time_probes", most, &["0-0-100"]))
                    .bar(Bar::times_at_least(
                        name,
                        "time_probes",
                        least,
                        &["0-0-100"],
                    ))
                    .bar(Bar::at_most(name, "mean_ns", 1e6));
            }
        }
        experiment
    }

    fn alone(scale: Scale, which: Which, workers: usize) -> Experiment {
        let experiment = Experiment::new(
            format!("fair-alone-{}-{workers}", which.name()),
            format!(
                "{} without a sink, default policy and 50-25-25, {workers} worker(s)",
                which.name()
            ),
        )
        .table(
            "prompt",
            &[
                "time_probes",
                "time_ns",
                "probe_ns",
                "mean_ns",
                "p99_ns",
                "unanswered",
            ],
        )
        .contender("prompt", move || ours::alone(scale, which, workers, false))
        .contender("fair", move || ours::alone(scale, which, workers, true))
        .contender("again", move || ours::alone(scale, which, workers, false))
        .contender("prompt-echo", move || {
            ours::beside_echo(scale, which, workers, false)
        })
        .contender("fair-echo", move || {
            ours::beside_echo(scale, which, workers, true)
        })
        .bar(Bar::times_at_most("fair", "time_probes", 1.02, &["prompt"]))
        .bar(Bar::times_at_most(
            "fair-echo",
            "time_probes",
            1.02,
            &["prompt-echo"],
        ))
        .bar(Bar::at_most("prompt-echo", "mean_ns", 1e6))
        .bar(Bar::at_most("fair-echo", "mean_ns", 1e6));
        match which {
            Which::Fib | Which::Uts => {
                experiment.contender("rayon", move || ours::on_rayon(scale, which, workers))
            }
            Which::Matmul | Which::Bfs | Which::Sort => experiment,
        }
    }

    fn winner(scale: Scale, workers: usize) -> Experiment {
        let of = |schedule| move || ours::two_levels(scale, workers, schedule);
        Experiment::new(
            format!("fair-winner-{workers}"),
            format!("fib below an echo, two levels, by schedule, {workers} worker(s)"),
        )
        .table(
            "prompt",
            &["time_probes", "time_ns", "mean_ns", "p99_ns", "unanswered"],
        )
        .contender("prompt", of(ours::TwoLevels::Prompt))
        .contender("winner-take-all", of(ours::TwoLevels::WinnerTakeAll))
        .contender("50-50", of(ours::TwoLevels::Fair))
    }

    fn shares(scale: Scale, workers: usize) -> Experiment {
        Experiment::new(
            format!("fair-shares-{workers}"),
            format!("two endless levels and an echo for a minute, 20-50-30, {workers} worker(s)"),
        )
        .table(
            "20-50-30",
            &[
                "most_off_share",
                "high_share",
                "middle_share",
                "low_share",
                "mean_ns",
                "p99_ns",
                "unanswered",
            ],
        )
        .contender("20-50-30", move || {
            ours::shares(scale, workers, [0.2, 0.5, 0.3])
        })
        .bar(Bar::at_most("20-50-30", "most_off_share", 0.02))
        .bar(Bar::at_most("20-50-30", "mean_ns", 1e6))
    }

    fn schedules(scale: Scale, workers: usize) -> Experiment {
        let adaptive = |pool| move || ours::scheduled(scale, workers, Some(pool), None);
        Experiment::new(
            format!("fair-schedules-{workers}"),
            format!("two endless levels and an echo for 8 s, by schedule, {workers} worker(s)"),
        )
        .table(
            "prompt",
            &[
                "high_share",
                "middle_share",
                "low_share",
                "mean_ns",
                "p99_ns",
                "unanswered",
            ],
        )
        .contender("prompt", move || {
            ours::scheduled(scale, workers, None, None)
        })
        .contender("20-50-30", move || {
            ours::scheduled(scale, workers, None, Some([0.2, 0.5, 0.3]))
        })
        .contender("adaptive", adaptive("proactive-newest"))
        .contender("adaptive-aging", adaptive("proactive-aging"))
        .contender("adaptive-greedy", adaptive("aging"))
    }
}
