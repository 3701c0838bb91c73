//! What was recorded so far, and how it is written.

use crate::{
    sys::{
        clock,
        mutex::{Mutex, MutexGuard},
    },
    tasks::Id,
};
use std::{collections::HashMap, fmt::Write, sync::Arc};

/// A step of a thread, by their numbers.
pub(super) type Place = (u32, u32);

/// The log of one runtime.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    log: Arc<Mutex<Log>>,
    /// When the recording began, in ticks.
    origin: u64,
    /// Whether the calling thread runs a task, which the scheduler knows.
    pub(super) runs_task: fn() -> bool,
}

/// What a recording says of the runtime besides its tasks.
pub(crate) struct Machine {
    pub(crate) workers: usize,
    /// Whether the schedule is the prompt one.
    pub(crate) prompt: bool,
    /// For how long workers were in the scheduler, in ticks.
    pub(crate) scheduling: u64,
    /// For how long they looked for work, in ticks.
    pub(crate) searching: u64,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) threads: Vec<Thread>,
    edges: Vec<(Place, Place)>,
    /// The thread of each task that is alive, and of some that were.
    names: HashMap<Id, u32>,
    steps: usize,
    limit: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    level: u8,
    start: Start,
    steps: Vec<Step>,
    /// When its last step ended, in ticks, if it has.
    done: Option<u64>,
    /// Of the step that runs now, or comes next, in ticks.
    pub(super) latency: u64,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    /// In ticks.
    Released(u64),
    SpawnedBy(Place),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// In nanoseconds.
    work: u64,
    /// In ticks.
    latency: u64,
    yields: bool,
}

impl Recorder {
    pub(super) fn new(limit: usize, runs_task: fn() -> bool) -> Self {
        let log = Log {
            limit,
            ..Log::default()
        };
        Recorder {
            log: Arc::new(Mutex::new(log)),
            origin: clock::now(),
            runs_task,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    pub(super) fn is_same(&self, other: &Recorder) -> bool {
        Arc::ptr_eq(&self.log, &other.log)
    }

    /// What the runtime ran until now.
    pub(crate) fn recording(&self, machine: Machine) -> Recording {
        let log = self.lock();
        Recording {
            threads: log.threads.clone(),
            edges: log.edges.clone(),
            steps: log.steps,
            limit: log.limit,
            origin: self.origin,
            ticks: clock::ticks_per_nanosecond(),
            workers: machine.workers,
            prompt: machine.prompt,
            scheduling: machine.scheduling,
            searching: machine.searching,
        }
    }
}

impl Log {
    /// A thread begins. `None`: the limit is reached.
    pub(super) fn begin(&mut self, level: u8, by: Option<Place>) -> Option<u32> {
        if self.steps >= self.limit {
            return None;
        }
        self.threads.push(Thread {
            level,
            start: by.map_or_else(|| Start::Released(clock::now()), Start::SpawnedBy),
            steps: Vec::new(),
            done: None,
            latency: 0,
        });
        self.steps += 1;
        u32::try_from(self.threads.len() - 1).ok()
    }

    pub(super) fn name(&mut self, task: Id, thread: u32) {
        self.names.insert(task, thread);
    }

    pub(super) fn named(&self, task: Id) -> Option<u32> {
        self.names.get(&task).copied()
    }

    pub(super) fn thread(&mut self, number: u32) -> &mut Thread {
        &mut self.threads[number as usize]
    }

    /// The step of a thread that runs now, or comes next.
    pub(super) fn next_step(&self, thread: u32) -> Place {
        (thread, self.threads[thread as usize].steps.len() as u32)
    }

    /// The last step of a thread that has ended.
    pub(super) fn last_step(&self, thread: u32) -> Option<Place> {
        let steps = self.threads[thread as usize].steps.len();
        Some((thread, u32::try_from(steps.checked_sub(1)?).ok()?))
    }

    pub(super) fn edge(&mut self, from: Place, to: Place) {
        // Where the recording is full a thread has no steps to come, but for the first of each.
        let will_be = self.steps < self.limit || self.threads[to.0 as usize].steps.is_empty();
        if will_be && from.0 != to.0 && self.edges.last() != Some(&(from, to)) {
            self.edges.push((from, to));
        }
    }

    /// A step ends, after `work` nanoseconds.
    pub(super) fn end_step(&mut self, number: u32, work: u64, yields: bool) -> Place {
        let is_full = self.steps >= self.limit;
        let thread = &mut self.threads[number as usize];
        let latency = std::mem::take(&mut thread.latency);
        let step = Step {
            work,
            latency,
            yields,
        };
        match thread.steps.last_mut() {
            Some(last) if is_full => last.work += work,
            Some(_) => {
                thread.steps.push(step);
                self.steps += 1;
            }
            // Counted when the thread began.
            None => thread.steps.push(step),
        }
        (number, thread.steps.len() as u32 - 1)
    }

    pub(super) fn done(&mut self, number: u32) {
        self.threads[number as usize].done = Some(clock::now());
    }
}

/// What a runtime ran: a snapshot; see [`Runtime::recording`](crate::Runtime::recording).
///
/// ```
/// use urgency::{Recording, Runtime};
///
/// let runtime = Runtime::builder().workers(1).record(1000).build()?;
/// runtime.spawn(async {}).get()?;
/// let recording: Recording = runtime.recording().expect("it was asked for");
/// assert_eq!((recording.threads(), recording.is_complete()), (1, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recording {
    threads: Vec<Thread>,
    edges: Vec<(Place, Place)>,
    steps: usize,
    limit: usize,
    origin: u64,
    ticks: f64,
    workers: usize,
    prompt: bool,
    scheduling: u64,
    searching: u64,
}

impl Recording {
    /// How many tasks were recorded.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// How many steps they had.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Whether everything was recorded: the limit was not reached.
    pub fn is_complete(&self) -> bool {
        self.steps < self.limit
    }

    fn nanos(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.ticks) as u64
    }

    fn since_origin(&self, at: u64) -> u64 {
        self.nanos(at.saturating_sub(self.origin))
    }

    /// The computation as JSON, in the format `urgency-trace-1` that `urgency sim --trace` reads. It has the
    /// recorded run beside it: its workers, its end, when each thread ended, and what it cost; the simulator
    /// checks the papers' bounds on that as well.
    pub fn to_json(&self) -> String {
        let mut text = String::from("{\"format\":\"urgency-trace-1\",\n\"threads\":[");
        for (number, thread) in self.threads.iter().enumerate() {
            text.push_str(if number == 0 { "\n" } else { ",\n" });
            self.write_thread(&mut text, thread)
                .expect("a string can be written to");
        }
        text.push_str("],\n\"edges\":[");
        let exists = |place: Place| (place.1 as usize) < self.threads[place.0 as usize].steps.len();
        let mut edges = self.edges.clone();
        edges.retain(|&(from, to)| exists(from) && exists(to));
        edges.sort_unstable();
        edges.dedup();
        for (number, (from, to)) in edges.into_iter().enumerate() {
            text.push_str(if number == 0 { "\n" } else { ",\n" });
            write!(text, "{{\"from\":{},\"to\":{}}}", json(from), json(to))
                .expect("a string can be written to");
        }
        let done = self.threads.iter().filter_map(|thread| thread.done).max();
        let makespan = done.map_or(0, |done| self.since_origin(done));
        write!(
            text,
            "],\n\"recorded\":{{\"workers\":{},\"prompt\":{},\"makespan\":{makespan},\"scheduling\":{},\"searching\":{}}}}}\n",
            self.workers,
            self.prompt,
            self.nanos(self.scheduling),
            self.nanos(self.searching),
        )
        .expect("a string can be written to");
        text
    }

    fn write_thread(&self, text: &mut String, thread: &Thread) -> std::fmt::Result {
        write!(text, "{{\"level\":{},", thread.level)?;
        match thread.start {
            Start::Released(at) => write!(text, "\"release\":{},", self.since_origin(at))?,
            Start::SpawnedBy(place) => write!(text, "\"spawned_by\":{},", json(place))?,
        }
        if let Some(done) = thread.done {
            write!(text, "\"finished\":{},", self.since_origin(done))?;
        }
        text.push_str("\"steps\":[");
        // A thread that was dropped before it ran has one step all the same.
        let none = [Step {
            work: 1,
            latency: 0,
            yields: false,
        }];
        let steps = if thread.steps.is_empty() {
            &none
        } else {
            &*thread.steps
        };
        for (number, step) in steps.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(text, "{comma}{{\"work\":{}", step.work.max(1))?;
            if step.latency > 0 {
                write!(text, ",\"latency\":{}", self.nanos(step.latency))?;
            }
            if step.yields {
                text.push_str(",\"yields\":\"near\"");
            }
            text.push('}');
        }
        text.push_str("]}");
        Ok(())
    }
}

fn json((thread, step): Place) -> String {
    format!("{{\"thread\":{thread},\"step\":{step}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_takes_no_more_edges() {
        let mut log = Log {
            limit: 4,
            ..Log::default()
        };
        let [one, other] = [(); 2].map(|()| log.begin(0, None).unwrap());
        for _ in 0..4 {
            log.end_step(one, 1, false);
            log.end_step(other, 1, false);
        }
        let before = log.edges.len();
        for _ in 0..1000 {
            let (here, there) = (log.next_step(one), log.next_step(other));
            log.edge(here, there);
            log.edge(there, here);
        }
        assert_eq!(log.edges.len(), before);
    }
}
