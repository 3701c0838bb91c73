//! What a simulation found.

use crate::dag::Thread;
use serde::Serialize;

/// A stretch of time in which a worker ran a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The worker's number.
    pub worker: u32,
    /// The thread.
    pub thread: Thread,
    /// The rank of its level.
    pub level: u8,
    /// When it began, in nanoseconds.
    pub start: u64,
    /// When it ended, in nanoseconds.
    pub end: u64,
}

/// When a thread became ready and when its last vertex had run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Response {
    /// The thread.
    pub thread: Thread,
    /// The rank of its level.
    pub level: u8,
    /// When its first vertex became ready, in nanoseconds; the release, for a root.
    pub ready: u64,
    /// When its last vertex had run.
    pub done: u64,
    /// Whether it is a root.
    pub root: bool,
    /// For a root the least time that it could take with all workers to itself, in nanoseconds: the longer
    /// one of its job's span and work / P. 0 for other threads.
    pub alone: u64,
}

impl Response {
    /// How long it took, in nanoseconds.
    pub fn time(&self) -> u64 {
        self.done - self.ready
    }

    /// Of a root: how many times as long it took as it could have taken alone, at the least. 1 or more.
    pub fn stretch(&self) -> Option<f64> {
        (self.alone > 0).then(|| self.time() as f64 / self.alone as f64)
    }
}

/// What happened at one level. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LevelReport {
    /// How long workers ran its work.
    pub busy: u64,
    /// How many roots it had.
    pub roots: usize,
    /// The mean response of its roots.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The slowest.
    pub max: u64,
    /// The mean stretch of its roots ([`Response::stretch`]).
    pub stretch: f64,
    /// The largest.
    pub max_stretch: f64,
    /// When its last vertex had run.
    pub finished: u64,
    /// How long workers ran its work until [`Report::contested`].
    pub contested: u64,
    /// How many rounds had it as their primary level.
    pub rounds: u64,
}

/// What a simulation found. Times are in nanoseconds, counts are of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// How many workers there were.
    pub workers: usize,
    /// When the last vertex had run.
    pub makespan: u64,
    /// The work that was done.
    pub work: u64,
    /// How long workers were at scheduling: queues, steals that succeeded, hand-offs.
    pub scheduling: u64,
    /// How long they looked for work and found none.
    pub searching: u64,
    /// How long they woke up.
    pub waking: u64,
    /// How long they slept.
    pub asleep: u64,
    /// How long they slept or searched while something was ready, in worker-nanoseconds: 0 for a greedy
    /// schedule. A worker whose seat keeps it from what is ready counts, too.
    pub idle_while_ready: u64,
    /// The most latencies (I/O) that were under way at a time.
    pub most_pending: usize,
    /// Looks at other workers.
    pub steal_attempts: u64,
    /// The attempts that found something.
    pub steals: u64,
    /// Whole deques continued by a worker that did not leave them.
    pub mugs: u64,
    /// Stacks left for a more urgent, or the primary, level.
    pub abandonments: u64,
    /// Vertices that did not run right after their serial predecessor, on the same worker.
    pub deviations: u64,
    /// Times that a stack waited.
    pub suspensions: u64,
    /// The most deques at a time, or the longest local queue.
    pub most_deques: usize,
    /// Times that a spawner waited for room in its queue.
    pub stalls: u64,
    /// Entries that were dealt to another worker.
    pub dealt: u64,
    /// Until when every level had work left: when the first had run all of it.
    pub contested: u64,
    /// By level.
    pub levels: Vec<LevelReport>,
    /// A hash of the whole schedule: which vertex ran where and when.
    pub digest: u64,
    /// All responses, by thread.
    #[serde(skip)]
    pub responses: Vec<Response>,
    /// The first spans of the schedule, as many as were to be recorded.
    #[serde(skip)]
    pub schedule: Vec<Span>,
}

impl Report {
    /// Worker time that was neither work nor scheduling nor sleep, in nanoseconds: the papers' waste.
    pub fn waste(&self) -> u64 {
        self.searching + self.waking
    }

    /// Which part of the workers' time was work, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        self.work as f64 / (self.makespan as f64 * self.workers as f64)
    }

    /// The share of a level in all work that was done until `until`, needs a recorded schedule.
    pub fn share_until(&self, level: u8, until: u64) -> f64 {
        let clipped = |span: &Span| span.end.min(until).saturating_sub(span.start);
        let total: u64 = self.schedule.iter().map(clipped).sum();
        let its = self.schedule.iter().filter(|span| span.level == level);
        its.map(clipped).sum::<u64>() as f64 / total.max(1) as f64
    }

    pub(crate) fn summarise(&mut self, levels: usize) {
        self.levels.resize_with(levels, LevelReport::default);
        for (rank, level) in self.levels.iter_mut().enumerate() {
            let its = self
                .responses
                .iter()
                .filter(|r| usize::from(r.level) == rank);
            level.finished = its.clone().map(|r| r.done).max().unwrap_or(0);
            let stretches = its.clone().filter_map(Response::stretch);
            level.max_stretch = stretches.clone().fold(0.0, f64::max);
            let sum: f64 = stretches.clone().sum();
            level.stretch = sum / stretches.count().max(1) as f64;
            let mut times: Vec<u64> = its.filter(|r| r.root).map(Response::time).collect();
            times.sort_unstable();
            level.roots = times.len();
            let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
            level.mean = sum as f64 / times.len().max(1) as f64;
            level.p50 = quantile(&times, 0.5);
            level.p95 = quantile(&times, 0.95);
            level.p99 = quantile(&times, 0.99);
            level.max = times.last().copied().unwrap_or(0);
        }
    }
}

/// The least value that is not below this part of the sorted `times`.
pub(crate) fn quantile(times: &[u64], part: f64) -> u64 {
    let index = (times.len() as f64 * part).ceil() as usize;
    times.get(index.saturating_sub(1)).copied().unwrap_or(0)
}
