//! The cache under the schedules that the Prompt I-Cilk paper compares (its figures 3 and 6): prompt, Adaptive
//! I-Cilk, adaptive with aging, and adaptive over prompt's central pool (*greedy*), at three loads.
//!
//! The loads are the paper's 242, 362 and 452 thousand requests per second, as shares of the last one. The last one is
//! memcached's highest rate. The paper sweeps the parameters of the adaptive schedules, five sets for *adaptive* and
//! four for its variants, and shows the best set by p99. Which sets these were is not public. Ours go around the
//! source's defaults (a quantum of 1 ms, a utilisation of 0.9, a growth of 2). The table has the set with the least p99
//! at the highest load; the file has all of them.
//!
//! *Running* is the time in user code, *scheduling* the workers' time between two pieces of work, and *waste* their
//! search for work. The paper's running time is the sum of the first two.

use super::calm::calmest;
use super::rows::Latencies;
use super::turns::{Titled, Turns, take};
use super::{Error, Options, Serving, Verdict, check, highest};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use urgency::policy::{Adaptive, AdaptiveError, Kind, Parameters};
use urgency_load::{Arrivals, Pace, Timing};
use urgency_measure::rounds::median;

/// The paper's loads as shares of the highest.
const SHARES: [f64; 3] = [0.535, 0.80, 1.0];

/// A schedule between levels with an order within them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The default.
    Prompt,
    /// Quanta over workers' own deques, the newest first, as in the public source of I-Cilk.
    Adaptive,
    /// The same, where a worker resumes its own deques in the order in which they became resumable.
    AdaptiveAging,
    /// Quanta over the central pool.
    Greedy,
}

const FAMILIES: [Family; 4] = [
    Family::Prompt,
    Family::Adaptive,
    Family::AdaptiveAging,
    Family::Greedy,
];

impl Titled for Family {
    fn title(self) -> &'static str {
        match self {
            Family::Prompt => "prompt",
            Family::Adaptive => "adaptive",
            Family::AdaptiveAging => "adaptive + aging",
            Family::Greedy => "greedy",
        }
    }
}

/// The parameters of an adaptive schedule that are swept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quanta {
    quantum_us: u64,
    utilisation: f64,
    growth: f64,
}

const fn quanta(quantum_us: u64, utilisation: f64, growth: f64) -> Quanta {
    Quanta {
        quantum_us,
        utilisation,
        growth,
    }
}

/// The last one is for *adaptive* only: the paper has four sets for the variants.
const SETS: [Quanta; 5] = [
    quanta(1000, 0.9, 2.0),
    quanta(500, 0.9, 2.0),
    quanta(2000, 0.9, 2.0),
    quanta(1000, 0.8, 2.0),
    quanta(1000, 0.9, 1.5),
];

/// A family with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    family: Family,
    quanta: Option<Quanta>,
}

impl Schedule {
    /// The default of a runtime.
    pub const PROMPT: Schedule = Schedule {
        family: Family::Prompt,
        quanta: None,
    };

    fn all_of(family: Family) -> Vec<Schedule> {
        let sets = match family {
            Family::Prompt => return vec![Schedule::PROMPT],
            Family::Adaptive => &SETS[..],
            Family::AdaptiveAging | Family::Greedy => &SETS[..4],
        };
        let quanta = sets.iter().copied().map(Some);
        quanta.map(|quanta| Schedule { family, quanta }).collect()
    }

    /// The order within a level.
    pub fn pool(self) -> Kind {
        let name = match self.family {
            Family::Prompt | Family::Greedy => return Kind::Aging,
            Family::Adaptive => "proactive-newest",
            Family::AdaptiveAging => "proactive-aging",
        };
        name.parse().expect("a name of the list")
    }

    /// What shares the workers between so many levels.
    pub fn between(self, levels: usize) -> Result<urgency::policy::Schedule, AdaptiveError> {
        let Some(quanta) = self.quanta else {
            return Ok(urgency::policy::Schedule::Prompt);
        };
        let parameters = Parameters {
            quantum: quanta.quantum_us * 1000,
            utilisation: quanta.utilisation,
            growth: quanta.growth,
            ..Parameters::default()
        };
        Ok(Adaptive::new(levels, parameters)?.into())
    }

    fn say(self) -> String {
        let title = self.family.title();
        self.quanta.map_or(title.to_owned(), |quanta| {
            let milliseconds = quanta.quantum_us as f64 / 1000.0;
            let Quanta {
                utilisation,
                growth,
                ..
            } = quanta;
            format!("{title}, {milliseconds} ms, {utilisation}, {growth}")
        })
    }
}

/// One schedule at one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    schedule: Schedule,
    round: u32,
    share: f64,
    offered_per_s: f64,
    latencies: Latencies,
    cpu_share: f64,
    /// The workers' time, each in seconds per second.
    running: f64,
    scheduling: f64,
    searching: f64,
}

/// Measures this part.
pub fn measure(options: &Options) -> Result<Verdict, Error> {
    let base = highest::of_memcached(options)?;
    let Turns { rows, failures } = take(
        options,
        "schedules",
        &FAMILIES,
        |row: &Row| row.schedule.family,
        |round, family| {
            let mut rows = Vec::new();
            for schedule in Schedule::all_of(family) {
                let mut serving = Serving::start_scheduled(options, schedule)?;
                for share in SHARES {
                    let lag = |row: &Row| row.latencies.lag_p99;
                    rows.push(calmest(options, &schedule.say(), lag, || {
                        one(options, &mut serving, (schedule, round, share), base)
                    })?);
                }
            }
            Ok(rows)
        },
    )?;
    print(&rows, base);
    Ok(Verdict {
        bars: Vec::new(),
        failures,
    })
}

fn one(
    options: &Options,
    serving: &mut Serving,
    (schedule, round, share): (Schedule, u32, f64),
    base: f64,
) -> Result<Row, Error> {
    let timing = Timing {
        ramp: Duration::from_millis(300),
        grace: Duration::from_secs(1),
        ..Timing::seconds(options.seconds())
    };
    let offered_per_s = base * share;
    let (before, cpu) = (serving.process.ask()?, serving.process.cpu_seconds());
    let start = Instant::now();
    let pace = Pace::Open(offered_per_s, Arrivals::Poisson);
    let outcome = serving.client.run(pace, &timing, &mut |_| ())?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_share = (serving.process.cpu_seconds() - cpu) / seconds;
    let after = serving.process.ask()?;
    check(&schedule.say(), &outcome)?;
    let per_s = |name: &str| {
        let of = |account: &super::embedded::Account| account.get(name).copied().unwrap_or(0.0);
        (of(&after) - of(&before)) / seconds
    };
    Ok(Row {
        schedule,
        round,
        share,
        offered_per_s,
        latencies: Latencies::of(&outcome),
        cpu_share,
        running: per_s("running"),
        scheduling: per_s("scheduling"),
        searching: per_s("searching"),
    })
}

/// What some rows have in common, in the median over their rounds.
struct Medians {
    schedule: Schedule,
    latencies: Latencies,
    columns: String,
}

fn medians(rows: &[Row], schedule: Schedule, share: f64) -> Option<Medians> {
    let of_it = |row: &&Row| row.schedule == schedule && row.share == share;
    let here: Vec<_> = rows.iter().filter(of_it).collect();
    let latencies: Vec<_> = here.iter().map(|row| row.latencies).collect();
    let latencies = Latencies::medians(&latencies)?;
    let of = |field: fn(&Row) -> f64| median(here.iter().map(|row| field(row))).unwrap_or(0.0);
    let columns = format!(
        "{} {:6.3} {:8.3} {:11.3} {:6.3}",
        latencies.columns(),
        of(|row| row.cpu_share),
        of(|row| row.running),
        of(|row| row.scheduling),
        of(|row| row.searching),
    );
    Some(Medians {
        schedule,
        latencies,
        columns,
    })
}

/// Of a family's sets, the one with the least p99 at this load.
fn best(rows: &[Row], family: Family, share: f64) -> Option<Medians> {
    let all = Schedule::all_of(family).into_iter();
    let measured = all.filter_map(|schedule| medians(rows, schedule, share));
    measured.min_by(|a, b| a.latencies.p99.total_cmp(&b.latencies.p99))
}

fn print(rows: &[Row], base: f64) {
    say!(
        "\nThe cache under each schedule (quantum, utilisation, growth: the best of a sweep by p99 at the highest load); 100 % is {base:.0}/s:"
    );
    say!(
        "{:40}{}    cpu  running  scheduling  waste",
        "",
        Latencies::HEADING
    );
    let highest = SHARES[SHARES.len() - 1];
    for share in SHARES {
        for family in FAMILIES {
            let best = best(rows, family, highest);
            let Some(here) = best.and_then(|best| medians(rows, best.schedule, share)) else {
                continue;
            };
            let title = here.schedule.say();
            say!("{:5.1} % {title:33}{}", share * 100.0, here.columns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(schedule: Schedule, share: f64, p99: f64) -> Row {
        let latencies = Latencies {
            achieved_per_s: 1.0,
            p50: 0.1,
            p95: 0.2,
            p99,
            p999: 9.0,
            max: 9.0,
            sent_p99: p99,
            lag_p99: 0.0,
            client_busy: 0.5,
        };
        Row {
            schedule,
            round: 0,
            share,
            offered_per_s: 1.0,
            latencies,
            cpu_share: 0.5,
            running: 0.3,
            scheduling: 0.1,
            searching: 0.1,
        }
    }

    #[test]
    fn of_a_swept_family_the_set_with_the_least_p99_at_the_highest_load_counts() {
        let sets = Schedule::all_of(Family::Greedy);
        assert_eq!(sets.len(), 4);
        let rows = [
            row(sets[0], 1.0, 3.0),
            row(sets[1], 1.0, 2.0),
            row(sets[2], 1.0, 4.0),
            row(sets[2], 0.8, 1.0),
        ];
        let best = best(&rows, Family::Greedy, 1.0).expect("three were measured");
        assert_eq!(best.schedule, sets[1]);
    }

    #[test]
    fn every_schedule_is_one_that_a_runtime_takes() {
        for schedule in FAMILIES.into_iter().flat_map(Schedule::all_of) {
            let between = schedule.between(1).expect("parameters in their ranges");
            let builder = urgency::Runtime::builder().workers(1);
            let builder = builder.schedule(between).pool(schedule.pool());
            let runtime = builder.build().expect("a runtime");
            assert_eq!(runtime.run(|| 7), 7, "{}", schedule.say());
        }
    }
}
