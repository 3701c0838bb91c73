//! Which job gives a worker to which: equal parts.
//!
//! Pure decisions over what was seen of the jobs; the mechanism around them is in the module above.
//!
//! 1. An equal part is the number of workers over the number of jobs. A job that could use more workers, and has fewer
//!    than an equal part rounded down, gets a worker from a job that has more than this.
//! 2. What does not divide evenly goes round: a job below the part rounded up gets a worker of a job that has run for
//!    [`TURN`] longer, in time of workers since both have had work.
//!
//! A job that uses less than its part does not keep other jobs from the rest. A job that comes late is owed nothing for
//! the time before.

/// By how much one job may be ahead of another, in nanoseconds of workers' time.
pub(super) const TURN: u64 = 4_000_000;

/// What was seen of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Its number, for as long as it lives.
    pub(super) job: usize,
    /// How many workers it has, or will have when all moves are done.
    pub(super) workers: usize,
    /// How many more it could use at once.
    pub(super) wants: usize,
}

/// A worker of one job goes to another; both jobs are places in what was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct EqualParts {
    /// For how long each job that had work at the last look has run, in nanoseconds of workers' time.
    ran: Vec<(usize, u64)>,
    /// When that was, in nanoseconds.
    looked: u64,
}

impl EqualParts {
    /// Decides at `now`, in nanoseconds. All jobs that have work or workers are in `seen`.
    pub(super) fn decide(&mut self, now: u64, seen: &mut [Seen]) -> Vec<Move> {
        self.account(now, seen);
        let workers: usize = seen.iter().map(|job| job.workers).sum();
        let (low, high) = (
            workers / seen.len().max(1),
            workers.div_ceil(seen.len().max(1)),
        );
        let mut moves = Vec::new();
        while let Some(next) = self.next(seen, low, high) {
            seen[next.from].workers -= 1;
            seen[next.to].workers += 1;
            seen[next.to].wants -= 1;
            moves.push(next);
        }
        moves
    }

    fn next(&self, seen: &[Seen], low: usize, high: usize) -> Option<Move> {
        let ran = |place: usize| self.ran[place].1;
        let places = || 0..seen.len();
        let from = places().max_by_key(|&place| (seen[place].workers, ran(place)))?;
        let wanting = places().filter(|&place| seen[place].wants > 0 && place != from);
        let to = wanting.min_by_key(|&place| (seen[place].workers, ran(place)))?;
        let (has, gets) = (seen[from].workers, seen[to].workers);
        let is_below = gets < low && has > low;
        let is_its_turn = gets < high && has > gets && ran(from) >= ran(to) + TURN;
        (is_below || is_its_turn).then_some(Move { from, to })
    }

    /// Adds the time since the last look. Afterwards `ran` is in the order of `seen`.
    fn account(&mut self, now: u64, seen: &[Seen]) {
        let passed = now.saturating_sub(self.looked).min(TURN);
        self.looked = now;
        let before = std::mem::take(&mut self.ran);
        let of = |job: usize| before.iter().find(|(known, _)| *known == job);
        let known = seen.iter().filter_map(|job| of(job.job));
        let least = known.map(|(_, ran)| *ran).min().unwrap_or(0);
        self.ran = seen
            .iter()
            .map(|job| match of(job.job) {
                Some((_, ran)) => (job.job, ran + passed * job.workers as u64),
                None => (job.job, least),
            })
            .collect();
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    fn seen(jobs: &[(usize, usize)]) -> Vec<Seen> {
        let jobs = jobs.iter().enumerate();
        jobs.map(|(job, &(workers, wants))| Seen {
            job,
            workers,
            wants,
        })
        .collect()
    }

    #[test]
    fn a_job_without_workers_gets_its_part_at_once() {
        let mut jobs = seen(&[(8, 9), (0, 9)]);
        let moves = EqualParts::default().decide(0, &mut jobs);
        assert_eq!(moves, vec![Move { from: 0, to: 1 }; 4]);
        assert!(EqualParts::default().decide(0, &mut jobs).is_empty());
    }

    #[test]
    fn a_job_gets_no_more_workers_than_it_can_use() {
        let moves = EqualParts::default().decide(0, &mut seen(&[(8, 9), (0, 1)]));
        assert_eq!(moves, [Move { from: 0, to: 1 }]);
        assert!(
            EqualParts::default()
                .decide(0, &mut seen(&[(8, 9), (0, 0)]))
                .is_empty()
        );
    }

    #[test]
    fn what_does_not_divide_goes_round() {
        let mut equal = EqualParts::default();
        let mut had = [0, 0, 0];
        let mut jobs = seen(&[(1, 1), (0, 1), (0, 1)]);
        for look in 0..3_000 {
            equal.decide(look * 1_000_000, &mut jobs);
            for (job, had) in jobs.iter_mut().zip(&mut had) {
                *had += job.workers;
                job.wants = 1;
            }
        }
        assert!(had.iter().all(|had| (900..1100).contains(had)), "{had:?}");
    }
}
