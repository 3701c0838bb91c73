//! Rounds, in which each contender has a turn.
//!
//! A turn can fail: that is a result of its contender, and the others go on. And it can be disturbed, by other processes that use the processors: one compiler makes
//! all latencies on two processors mean nothing. So the processor time of the whole machine is compared with that of this process and its children. A turn that was disturbed is
//! dropped and taken again, after a wait for others to end; the last of these tries counts whatever happened, and is reported.

use super::{Error, Failure, Options, files};
use serde::Serialize;
use std::thread;
use std::time::{Duration, Instant};

/// Who takes turns.
pub trait Titled: Copy {
    /// As it is called in tables.
    fn title(self) -> &'static str;
}

/// What all turns gave.
#[derive(Debug)]
pub struct Turns<R> {
    /// The rows of those that did not fail.
    pub rows: Vec<R>,
    /// Those that did.
    pub failures: Vec<Failure>,
}

/// The most that others may use, in processors.
const CALM: f64 = 0.1;
/// How long calm is waited for before a turn is repeated.
const PATIENCE: Duration = Duration::from_secs(20);

/// Gives each contender its turns and keeps the rows that they give, also in the file of `part`.
///
/// # Errors
///
/// If the file cannot be written.
pub fn take<C: Titled, R: Serialize>(
    options: &Options,
    part: &str,
    contenders: &[C],
    mut turn: impl FnMut(u32, C) -> Result<Vec<R>, Error>,
) -> Result<Turns<R>, Error> {
    let mut turns = Turns {
        rows: Vec::new(),
        failures: Vec::new(),
    };
    for (round, contender) in order(options.rounds, contenders) {
        let title = contender.title();
        match undisturbed(options, title, || turn(round, contender)) {
            Ok(rows) => {
                eprintln!("{part}, round {round}, {title}: done");
                turns.rows.extend(rows);
                files::save(options, part, &turns.rows)?;
            }
            Err(error) => {
                eprintln!("{part}, round {round}, {title}: FAILED: {error}");
                turns.failures.push(Failure {
                    title,
                    round,
                    error,
                });
            }
        }
    }
    Ok(turns)
}

/// Each of `contenders` once in every round, in an order shuffled afresh: slow drifts of the machine hit all alike.
fn order<C: Copy>(rounds: u32, contenders: &[C]) -> Vec<(u32, C)> {
    let mut random = fastrand::Rng::with_seed(u64::from(rounds));
    let mut turns = Vec::new();
    for round in 0..rounds {
        let mut order = contenders.to_vec();
        random.shuffle(&mut order);
        turns.extend(order.into_iter().map(|contender| (round, contender)));
    }
    turns
}

/// Repeats a turn while others disturb it, as often as the options allow.
fn undisturbed<T>(
    options: &Options,
    title: &str,
    mut turn: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut again = if options.quick { 0 } else { options.retries };
    loop {
        let before = Spent::now();
        let result = turn();
        let others = before.others();
        if others <= CALM || options.quick {
            return result;
        }
        eprintln!("{title}: other processes used {others:.2} processors meanwhile");
        if again == 0 {
            return result;
        }
        again -= 1;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let before = Spent::now();
            thread::sleep(Duration::from_millis(500));
            if before.others() <= CALM {
                break;
            }
        }
    }
}

/// Processor time spent so far, in the kernel's ticks of a hundredth of a second.
struct Spent {
    at: Instant,
    all: f64,
    ours: f64,
}

impl Spent {
    fn now() -> Self {
        Spent {
            at: Instant::now(),
            all: all(&std::fs::read_to_string("/proc/stat").unwrap_or_default()),
            ours: ours(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default()),
        }
    }

    /// Processors that others have used since, in the mean. Children must have been waited for.
    fn others(&self) -> f64 {
        let now = Spent::now();
        let ticks = (now.all - self.all) - (now.ours - self.ours);
        (ticks / 100.0 / (now.at - self.at).as_secs_f64()).max(0.0)
    }
}

/// User, nice and system time of the machine. Interrupts belong to nobody.
fn all(stat: &str) -> f64 {
    let line = stat.lines().next().unwrap_or_default();
    let fields = line.split_whitespace().skip(1).take(3);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

/// User and system time of a process and of the children that it has waited for.
fn ours(stat: &str) -> f64 {
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(4);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    impl Titled for &'static str {
        fn title(self) -> &'static str {
            self
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Options {
        Line::parse_from(line.split_whitespace()).options
    }

    #[test]
    fn who_fails_is_noted_and_the_others_take_their_turns() {
        let save = std::env::temp_dir().join(format!("urgency-turns-{}", std::process::id()));
        let line = format!("compare --quick --rounds 2 --save {}", save.display());
        let turns = take(
            &options(&line),
            "part",
            &["a", "b"],
            |round, who| match who {
                "a" => Err(Error::Silent { title: who.into() }),
                _ => Ok(vec![(who, round)]),
            },
        );
        let saved = std::fs::read_to_string(save.join("part.json")).expect("the rows are saved");
        std::fs::remove_dir_all(&save).expect("the directory is ours");
        let turns = turns.expect("the file can be written");
        assert_eq!(turns.rows, [("b", 0), ("b", 1)]);
        let failed: Vec<_> = turns.failures.iter().map(|f| (f.title, f.round)).collect();
        assert_eq!(failed, [("a", 0), ("a", 1)]);
        assert!(turns.failures[0].say().contains("a does not answer"));
        assert_eq!(saved, "[\n[\"b\",0],\n[\"b\",1]\n]\n");
    }

    #[test]
    fn the_time_of_the_machine_and_of_a_process_is_read() {
        let stat = "cpu  10 20 30 4000 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(all(stat), 60.0);
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 9 8 7";
        assert_eq!(ours(stat), 127.0);
    }
}
