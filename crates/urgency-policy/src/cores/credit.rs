//! Fractions of a core over time.
//!
//! Three equal jobs on two cores have two thirds of a core each, and a core has one owner. So they take turns. A job
//! has a *credit*: the core time that its share entitled it to and that it did not get. The cores that remain after the
//! whole ones go to the jobs with the largest credit. Over time each job gets its share but for one core during one
//! interval, and no job with a share goes without a core for good.
//!
//! A turn lasts until the interval ends. When a job starts or ends meanwhile, the jobs that have a turn keep it. The
//! job that starts takes a turn at once if its credit is among the largest; the others that wait get a core that is
//! free. (When each start and each end gave all turns anew, each piece of a millisecond was interrupted by the next
//! start.)
//!
//! What a job's threads ran beside its cores ([`Usage::beside`](super::Usage::beside)) is core time that it got. (It
//! was not: of four equal jobs on two cores one with pieces of 40 ms had 92 % of what was computed, on 72 threads. Each
//! turn of it began one more piece.)
//!
//! A job that rests keeps what it owes, and pays as if it waited for a core: by the share that it had. (When it owed
//! nothing after a pause, a job with pieces of 20 ms and pauses between them had 0.44 of a core of which a quarter was
//! its share, beside three jobs that paused as well.) Otherwise it saves up core time at that rate, for a burst
//! (`burst.rs`).
//!
//! A credit and a debt have a bound: a piece of the greatest length that is counted, on each core. While each job has
//! whole cores nothing is left to take turns at, so nothing is paid. (A job that had run beside its core for 10 s had
//! no core at all for seconds after a third job had come to the two cores, and both others had one each.)

use super::{
    Claim, Cores, Event, Job, JobId, Part, PerJob, Request, Usage,
    burst::{self, Savings},
    divide::{hand_out, sum_of_fractions},
};
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    /// In core-nanoseconds.
    owed: f64,
    /// In cores, since the last decision.
    share: f64,
    /// The cores that it was given then, without bursts.
    had: f64,
    /// When it was accounted last.
    at: u64,
    savings: Savings,
}

impl Credit {
    fn new(now: u64) -> Self {
        Credit {
            at: now,
            ..Credit::default()
        }
    }

    fn settle(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at) as f64;
        self.at = now;
        self.owed += (self.share - self.had) * passed - self.savings.spend(passed);
        if self.share == 0.0 {
            // What it had beyond a share of nothing was nobody else's.
            self.owed = self.owed.max(0.0);
        }
    }

    /// The job has rested since it was accounted last.
    fn after_rest(self, now: u64) -> Self {
        let mut waited = Credit {
            had: 0.0,
            savings: Savings::default(),
            ..self
        };
        waited.settle(now);
        Credit {
            owed: waited.owed.min(0.0),
            savings: self.savings.after_rest(waited.owed),
            ..Credit::new(now)
        }
    }
}

/// The credits of all jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Credits {
    jobs: PerJob<Credit>,
    /// Which job lends next.
    turn: usize,
    /// Some jobs have more cores than their parts, from others.
    is_lending: bool,
}

impl Credits {
    /// Accounts for the time since the last decision.
    pub(super) fn settle(&mut self, cores: &Cores) {
        let now = cores.now();
        // A job that has just left, too: it had its cores until now.
        self.jobs.values_mut().for_each(|credit| credit.settle(now));
        let enter = |_, kept: Option<Credit>| {
            kept.map_or(Credit::new(now), |credit| credit.after_rest(now))
        };
        self.jobs.keep_up_with(cores, enter);
    }

    /// Accounts for what was measured in the interval that is over. What ran beside the cores took that time from the
    /// jobs that had them.
    pub(super) fn charge(&mut self, cores: &Cores) {
        let jobs = cores.jobs();
        let beside: u64 = jobs.iter().map(|job| job.usage().beside).sum();
        let owned: usize = jobs.iter().map(Job::cores).sum();
        let lost = beside as f64 / owned.max(1) as f64;
        for (credit, job) in self.jobs.values_mut().zip(jobs) {
            credit.owed += lost * job.cores() as f64 - job.usage().beside as f64;
        }
    }

    /// Rounds shares to cores until the interval ends, of which this is the length.
    pub(super) fn round(
        &mut self,
        event: Event,
        parts: &[Part],
        cores: &Cores,
        interval: u64,
    ) -> Vec<usize> {
        let mut counts: Vec<usize> = parts.iter().map(|part| part.whole).collect();
        let most = (cores.count() as u64 * Usage::MOST_BESIDE) as f64;
        let most_saved = cores.count() as f64 * interval as f64;
        let key = |(credit, part): (&mut Credit, &Part)| {
            credit.owed = credit.owed.clamp(-most, most);
            credit.savings.limit(most_saved);
            credit.owed + part.fraction * interval as f64
        };
        let mut keys: Vec<f64> = self.jobs.values_mut().zip(parts).map(key).collect();
        let jobs = cores.jobs();
        let had = |(credit, job): (&Credit, &Job)| credit.savings.owned_of(job.cores());
        let had = self.jobs.values().zip(jobs).map(had);
        let had: Option<Vec<usize>> = self.is_lending.then(|| had.collect());
        let had = |index: usize| had.as_ref().map_or(jobs[index].cores(), |had| had[index]);
        let has_turn = |index: usize| had(index) > parts[index].whole;
        match Turns::of(event) {
            Turns::Anew => hand_out(parts, &mut counts, |index| (true, keys[index])),
            Turns::Kept => hand_out(parts, &mut counts, |index| (has_turn(index), keys[index])),
            Turns::KeptBut(id) => {
                let place = jobs.iter().position(|job| job.id() == id);
                if let Some(place) = place {
                    // Of equals it is the first.
                    keys[place] = keys[place].next_up();
                }
                let would_have_a_turn_anew = |&place: &usize| {
                    let before =
                        |(part, key): &(&Part, &f64)| part.fraction > 0.0 && **key > keys[place];
                    let ahead = parts.iter().zip(&keys).filter(before).count();
                    parts[place].fraction > 0.0 && ahead < sum_of_fractions(parts)
                };
                let takes = place.filter(would_have_a_turn_anew);
                let key = |index| (has_turn(index) || takes == Some(index), keys[index]);
                hand_out(parts, &mut counts, key);
            }
        }
        for ((credit, part), &count) in self.jobs.values_mut().zip(parts).zip(&counts) {
            (credit.share, credit.had) = (part.share(), count as f64);
        }
        counts
    }

    /// Jobs that were quiet have more than that until the interval ends, which is in so many nanoseconds.
    pub(super) fn burst(
        &mut self,
        counts: &mut [usize],
        claims: &[Claim],
        cores: &Cores,
        left: u64,
    ) {
        let pays = |credit: &Credit| credit.savings.pays(left);
        if self.is_lending || self.jobs.values().any(pays) {
            let savings = self.jobs.values_mut().map(|credit| &mut credit.savings);
            let terms = (left, &mut self.turn);
            self.is_lending = burst::lend(counts, claims, savings.collect(), cores, terms);
        }
    }
}

/// Which turns an event ends.
enum Turns {
    /// All.
    Anew,
    /// None.
    Kept,
    /// None but the one that this job takes, if it does.
    KeptBut(JobId),
}

impl Turns {
    fn of(event: Event) -> Self {
        match event {
            Event::Timer => Turns::Anew,
            Event::Start(id) | Event::Request(Request::Demand(id)) => Turns::KeptBut(id),
            Event::Exit(_) | Event::Request(Request::Cores | Request::Own(_)) => Turns::Kept,
        }
    }
}
