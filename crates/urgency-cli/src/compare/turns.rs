//! Rounds, in which each contender has a turn. A turn can fail: that is a result of its contender, and the
//! others go on.

use super::{Error, Failure, Options, files};
use serde::{Serialize, de::DeserializeOwned};
use urgency_measure::rounds::in_round;

/// A contender that takes turns.
pub trait Titled: Copy {
    /// As it is called in tables.
    fn title(self) -> &'static str;
}

/// What all turns gave.
#[derive(Debug)]
pub struct Turns<R> {
    /// The rows of the turns that did not fail.
    pub rows: Vec<R>,
    /// The turns that failed.
    pub failures: Vec<Failure>,
}

/// Gives each contender its turns and keeps the rows that they give, also in the file of `part`; `whose` says which
/// contender gave a row.
///
/// # Errors
///
/// If the file cannot be written, or is another one.
pub fn take<C: Titled, R: Serialize + DeserializeOwned>(
    options: &Options,
    part: &str,
    contenders: &[C],
    whose: impl Fn(&R) -> C,
    mut turn: impl FnMut(u32, C) -> Result<Vec<R>, Error>,
) -> Result<Turns<R>, Error> {
    take_together(options, part, contenders, whose, |round, order, note| {
        order
            .iter()
            .try_for_each(|&contender| note(contender, turn(round, contender)))
    })
}

/// The same where the contenders of a round are measured together: `round` has their order, and notes what each gave.
///
/// # Errors
///
/// The same, and the errors of `round`.
pub fn take_together<C: Titled, R: Serialize + DeserializeOwned>(
    options: &Options,
    part: &str,
    contenders: &[C],
    whose: impl Fn(&R) -> C,
    mut round: impl FnMut(u32, &[C], &mut Note<'_, C, R>) -> Result<(), Error>,
) -> Result<Turns<R>, Error> {
    let mut turns = Turns {
        rows: Vec::new(),
        failures: Vec::new(),
    };
    let mut earlier = files::earlier(options, part)?;
    for number in 0..options.rounds {
        let mut note = |contender: C, gave: Result<Vec<R>, Error>| {
            let title = contender.title();
            match gave {
                Ok(rows) => {
                    eprintln!("{part}, round {number}, {title}: done");
                    turns.rows.extend(rows);
                    earlier.retain(|kept: &files::Kept<R>| whose(&kept.row).title() != title);
                    files::save(options, part, &earlier, &turns.rows)?;
                }
                Err(error) => {
                    eprintln!("{part}, round {number}, {title}: FAILED: {error}");
                    turns.failures.push(Failure {
                        title,
                        round: number,
                        error,
                    });
                }
            }
            Ok(())
        };
        round(number, &in_round(number, contenders), &mut note)?;
    }
    Ok(turns)
}

/// Notes what a contender gave in a round.
pub type Note<'a, C, R> = dyn FnMut(C, Result<Vec<R>, Error>) -> Result<(), Error> + 'a;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::options::parsed as options;
    use std::time::Duration;
    use urgency_measure::child;

    impl Titled for &'static str {
        fn title(self) -> &'static str {
            self
        }
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Row {
        who: char,
        round: u32,
    }

    fn whose(row: &Row) -> &'static str {
        if row.who == 'a' { "a" } else { "b" }
    }

    #[test]
    fn a_failure_is_noted_the_others_take_their_turns_and_earlier_rows_stay_till_there_are_new_ones()
     {
        let save = std::env::temp_dir().join(format!("urgency-turns-{}", std::process::id()));
        let line = |more: &str| {
            let line = format!("compare --save {} {more}", save.display());
            options(&line).resolved().expect("no processors are named")
        };
        let row = |who, round| Row { who, round };
        let give = |options: &Options, contenders: &[&'static str], fails: &str| {
            let turn = |round, who: &'static str| match who == fails {
                true => Err(child::Error::Silent {
                    who: who.into(),
                    waited: Duration::from_secs(30),
                }
                .into()),
                false => Ok(vec![row(if who == "a" { 'a' } else { 'b' }, round)]),
            };
            take(options, "part", contenders, whose, turn).expect("the file can be written")
        };
        let rows_of = |options: &Options, who| {
            files::load(options, "part", "the rows", |row: &Row| row.who == who)
        };

        let turns = give(&line("--rounds 2"), &["a", "b"], "a");
        assert_eq!(turns.rows, [row('b', 0), row('b', 1)]);
        let failed: Vec<_> = turns.failures.iter().map(|f| (f.title, f.round)).collect();
        assert_eq!(failed, [("a", 0), ("a", 1)]);
        assert!(turns.failures[0].say().contains("a gave no sign of life"));

        // Others' turns, and turns that measure nothing, leave the rows of b.
        give(&line("--rounds 1"), &["a"], "");
        give(&line("--quick"), &["a", "b"], "");
        give(&line("--rounds 2"), &["b"], "b");
        let known = rows_of(&line("--rounds 2"), 'b').expect("they are there");
        assert_eq!(known, [row('b', 0), row('b', 1)]);
        let known = rows_of(&line("--rounds 2"), 'a').expect("they are there");
        assert_eq!(known, [row('a', 0)]);
        // They are none for another load.
        let missing = rows_of(&line("-c 7"), 'b')
            .expect_err("nobody measured it")
            .to_string();
        assert!(
            missing.contains("7 connections and 100000 keys"),
            "{missing}"
        );
        std::fs::remove_dir_all(&save).expect("the directory is ours");
    }
}
