//! How decisions are carried out, as the policy says once.
//!
//! | the policy | what a worker does |
//! |---|---|
//! | has a partition, [`Boundary::Point`] | it leaves its job at the next scheduling point, or is revoked |
//! | has a partition, [`Boundary::Steal`] | it leaves when it has no work of its own: its thread has nothing on its stack, and no task in its ring |
//! | has a partition, [`Boundary::Job`] | it stays until its job has no work: a job's number of workers never falls before |
//! | has none | it serves any job; at each look jobs take turns ([`next_turn`]) |
//!
//! A worker that its job may not have any more, though no decision took it, does not wait for the end of the job.

use super::division::{Move, Seen};
use urgency_policy::cores::{Boundary, CorePolicy};

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) boundary: Boundary,
    pub(super) is_partitioned: bool,
    /// A job has at most what the policy gave it.
    pub(super) is_strict: bool,
    /// A demand without least cores may be refused.
    pub(super) refuses: bool,
}

impl Manner {
    pub(super) fn of(policy: &dyn CorePolicy) -> Self {
        let (boundary, is_partitioned) = (policy.boundary(), policy.is_partitioned());
        let may_go_early = policy.is_work_conserving() && boundary != Boundary::Job;
        Manner {
            boundary,
            is_partitioned,
            is_strict: is_partitioned && !may_go_early,
            refuses: policy.refuses(),
        }
    }

    /// Where a worker leaves a job.
    pub(super) fn leaves_at(self) -> Boundary {
        match self.boundary {
            Boundary::Steal => Boundary::Steal,
            // The numbers of a job boundary take a worker away only if it is one too many.
            Boundary::Point | Boundary::Job => Boundary::Point,
        }
    }
}

/// The numbers of jobs that keep what they have until they end: `had` grows towards `wanted`, the first jobs first, as
/// long as there are workers that no job keeps.
pub(super) fn keep_until_end(workers: usize, had: &mut [usize], wanted: &[usize]) {
    let mut free = workers.saturating_sub(had.iter().sum());
    for (had, &wanted) in had.iter_mut().zip(wanted) {
        let more = wanted.saturating_sub(*had).min(free);
        *had += more;
        free -= more;
    }
}

/// Without a partition: the next move of a look, if there is one. `turns` says at which of all moves each job last got
/// a worker, or lost one; the look began after the move `before`.
///
/// A worker goes from the job with the most workers to the job with the fewest that could use one, if that makes them
/// more equal. A job without any gets one in any case, from a job that has had one since before this look. Among equals
/// the turn decides.
pub(super) fn next_turn(seen: &[Seen], turns: &[u64], before: u64) -> Option<Move> {
    let wanting = (0..seen.len()).filter(|&place| seen[place].wants > 0);
    let to = wanting.min_by_key(|&place| (seen[place].workers, turns[place]))?;
    let others = (0..seen.len()).filter(|&place| place != to);
    let fewest_turns = |place: usize| u64::MAX - turns[place];
    let from = others.max_by_key(|&place| (seen[place].workers, fewest_turns(place)))?;
    let (most, fewest) = (seen[from].workers, seen[to].workers);
    let is_its_turn = fewest == 0 && most > 0 && turns[from] <= before;
    (most >= fewest + 2 || is_its_turn).then_some(Move { from, to })
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    /// Takes turns so often; how often each job had a worker at a look.
    fn turns(workers: &[usize], looks: u64) -> Vec<usize> {
        let job = |(job, &workers): (usize, &usize)| Seen {
            life: job as u64,
            changes: 0,
            serving: workers,
            workers,
            wants: 9,
        };
        let mut seen: Vec<_> = workers.iter().enumerate().map(job).collect();
        let (mut last, mut had) = (vec![0; seen.len()], vec![0; seen.len()]);
        let mut moves = 0;
        for _ in 0..looks {
            let before = moves;
            while let Some(Move { from, to }) = next_turn(&seen, &last, before) {
                moves += 1;
                (seen[from].workers, seen[to].workers) =
                    (seen[from].workers - 1, seen[to].workers + 1);
                (last[from], last[to]) = (moves, moves);
            }
            for (had, seen) in had.iter_mut().zip(&seen) {
                *had += seen.workers;
            }
        }
        had
    }

    #[test]
    fn jobs_take_turns_at_all_workers() {
        let had = turns(&[2, 0, 0, 0, 0], 1000);
        assert_eq!(had.iter().sum::<usize>(), 2000);
        assert!(had.iter().all(|had| (390..=410).contains(had)), "{had:?}");
    }

    #[test]
    fn a_job_with_all_workers_gives_half_of_them_to_another() {
        assert_eq!(turns(&[8, 0], 1), [4, 4]);
        assert_eq!(turns(&[8, 0], 100), [400, 400]);
    }

    #[test]
    fn no_worker_moves_that_nobody_wants_or_that_makes_nothing_more_equal() {
        assert_eq!(turns(&[2, 1], 10), [20, 10]);
        assert_eq!(turns(&[3], 10), [30]);
        assert_eq!(turns(&[0, 0], 10), [0, 0]);
    }

    #[test]
    fn what_a_job_has_it_keeps_until_its_end_and_others_get_what_is_free() {
        let mut had = [2, 0, 0];
        keep_until_end(4, &mut had, &[1, 2, 1]);
        assert_eq!(had, [2, 2, 0], "the first one would have to give one up");
        let mut had = [2, 0];
        keep_until_end(4, &mut had, &[2, 1]);
        assert_eq!(had, [2, 1], "the first one has ended");
        let mut had = [3, 2];
        keep_until_end(4, &mut had, &[4, 4]);
        assert_eq!(had, [3, 2], "workers have gone");
    }
}
