//! Jobs that rest: they have no work and no worker, and are in no decision.
//!
//! A look comes up to four milliseconds late to a job that has become quiet, or comes only when the job has work again.
//! So the worker that leaves a job last notes when that is ([`Standing`](super::super::Standing)), and the policy hears
//! of the end as if it had been asked then: it may count for how long the job has rested. A job that has work again is
//! told apart from one that always had by a pause of a relief period at least: two decisions for each brief wait would
//! cost more than the wait.

use super::{Division, Known};
use urgency_policy::cores::{Event, Job};

impl Division {
    /// Jobs of these lives have had no work since these times, in nanoseconds. A look comes late to that: they may have
    /// some again.
    pub(in super::super) fn have_rested(&mut self, mut rested: Vec<(u64, u64)>) {
        rested.sort_unstable();
        for (since, life) in rested {
            if let Some(place) = self.known.iter().position(|known| known.life == life) {
                self.account(since.max(self.looked));
                let known = self.known.remove(place);
                self.let_rest(known);
            }
        }
    }

    /// The job has no work any more, or has ended: nothing tells these apart yet.
    pub(super) fn let_rest(&mut self, known: Known) {
        let id = known.id;
        let first = self.cores.job(id).map_or(id, Job::first);
        let _ = self.cores.rest(id);
        self.resting.push(Known { id: first, ..known });
        self.ask(Event::Exit(id));
        if let Some(limits) = &mut self.limits {
            limits.end(id);
        }
    }

    /// These are the jobs that have no work. A job that rests and is none of them has ended. That is found out when
    /// more jobs rest than can: a look at jobs that are quiet costs nothing otherwise.
    pub(in super::super) fn forget_ended(
        &mut self,
        quiet: impl ExactSizeIterator<Item = u64> + Clone,
    ) {
        if self.resting.len() > quiet.len() {
            let cores = &mut self.cores;
            self.resting.retain(|known| {
                let stays = quiet.clone().any(|life| life == known.life);
                if !stays {
                    cores.forget(known.id);
                }
                stays
            });
        }
    }
}
