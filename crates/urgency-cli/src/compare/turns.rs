//! Rounds, in which each contender has a turn. A turn can fail: that is a result of its contender, and the
//! others go on.

use super::{Error, Failure, Options, files};
use serde::Serialize;

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
        match turn(round, contender) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::options::parsed as options;

    impl Titled for &'static str {
        fn title(self) -> &'static str {
            self
        }
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
}
