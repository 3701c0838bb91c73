//! A round of an experiment in slices: all contenders are alive, and alternate.

use super::options::Options;
use super::rounds::{self, Row};
use super::{Experiment, one};
use crate::others::Moment;
use crate::rounds::in_round;
use crate::slices::{Canaries, Member, Pool, Slices, said, unspoilt};

/// One round of all contenders in slices.
pub fn round(
    experiment: &Experiment,
    slices: &Slices,
    options: &Options,
    round: u32,
    order: &[&'static str],
    pool: &mut Pool,
) -> Vec<Row> {
    let (canaries, before) = (Canaries::start(), Moment::now());
    let mut members: Vec<(&'static str, Result<Member, String>)> = order
        .iter()
        .map(|&name| {
            rounds::progress(experiment.name(), round, options.rounds, name);
            let mut command = one::command(experiment.name(), name, round, options);
            command.arg("--sliced");
            let events = options.events_file(experiment.name(), name, round);
            let member = Member::start(name, command, events);
            (name, member.map_err(|error| error.to_string()))
        })
        .collect();
    for slice in 0..slices.count {
        for name in in_round(slice, order) {
            let found = members.iter_mut().find(|(other, _)| *other == name);
            let (_, member) = found.expect("every contender was started");
            let failed = member
                .as_mut()
                .map_or(None, |alive| alive.slice(slices.length).err());
            if let Some(error) = failed {
                *member = Err(error.to_string());
            }
        }
    }
    let ended: Vec<_> = members
        .into_iter()
        .map(|(name, member)| (name, member.and_then(Member::end)))
        .collect();
    let foreign = before.share_until(Moment::now());
    let spoilt = canaries.spoilt();
    let rows = ended.into_iter().map(|(contender, ended)| Row {
        round,
        contender,
        outcome: ended.map(|(sample, events)| {
            let (kept, left_out) = unspoilt(&events, &spoilt, slices.reach);
            let sample = said(&sample, &kept, left_out, slices).with("thefts", spoilt.len() as f64);
            pool.add(contender, kept);
            sample
        }),
        foreign,
    });
    rows.collect()
}
