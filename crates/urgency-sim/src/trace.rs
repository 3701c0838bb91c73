//! Computations as JSON.
//!
//! ```json
//! {
//!   "format": "urgency-trace-1",
//!   "threads": [
//!     { "level": 0, "release": 0, "steps": [ { "work": 10 }, { "work": 5, "latency": 1000 }, { "work": 1 } ] },
//!     { "level": 1, "spawned_by": { "thread": 0, "step": 0 }, "steps": [ { "work": 30 } ] }
//!   ],
//!   "edges": [
//!     { "from": { "thread": 1, "step": 0 }, "to": { "thread": 0, "step": 2 } }
//!   ]
//! }
//! ```
//!
//! Times are in nanoseconds. A step's `latency` is how long after the step before it is ready: I/O. A thread
//! has either a `release` time or a spawner, which stands before it in the list. `edges` are all other dependencies;
//! `"sync": true` at a step says that the worker that ends the last awaited thread goes on with the step. `"yields"` is
//! `"near"` or `"far"`. Spawned threads come before the rest of their spawner in serial order.
//!
//! A recording of the runtime (`Runtime::recording`) has more: when each thread was `finished`, and
//! `recorded`, which says with how many workers, under what schedule, until when, and what scheduling cost.
//! [`recorded`] makes a [`Report`] of it, so that the bounds are checked on what really happened.

use crate::{
    Machine, Report, Response,
    alone::alone,
    bounds::{self, Check},
    dag::{Builder, Dag, DagError, NONE, Yields},
};
use serde::{Deserialize, Serialize};
use std::fmt;

const FORMAT: &str = "urgency-trace-1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    format: String,
    threads: Vec<ThreadTrace>,
    #[serde(default)]
    edges: Vec<EdgeTrace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordedTrace>,
}

/// Times in nanoseconds.
#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct RecordedTrace {
    workers: usize,
    /// Whether the schedule was prompt.
    prompt: bool,
    makespan: u64,
    scheduling: u64,
    searching: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadTrace {
    level: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    release: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spawned_by: Option<Place>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished: Option<u64>,
    steps: Vec<Step>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    work: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    latency: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    sync: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    yields: YieldsTrace,
}

#[derive(Serialize, Deserialize, Default, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum YieldsTrace {
    #[default]
    No,
    Near,
    Far,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct Place {
    thread: u32,
    step: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeTrace {
    from: Place,
    to: Place,
    #[serde(default, skip_serializing_if = "is_default")]
    latency: u64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Why a text is no computation.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// It is no JSON of this form; the cause names line and column.
    Json(serde_json::Error),
    /// It is of another format.
    Format(String),
    /// A thread has neither a release time nor a spawner, or both.
    Start(u32),
    /// A thread's spawner does not stand before it.
    Spawner(u32),
    /// The run that was recorded had no workers.
    Workers,
    /// The edges form a cycle through this step of a thread.
    Cycle {
        /// The thread.
        thread: u32,
        /// The step.
        step: u32,
    },
    /// Threads and edges are no DAG.
    Dag(DagError),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Json(cause) => write!(f, "the trace cannot be read: {cause}"),
            TraceError::Format(given) => write!(
                f,
                "the trace says format {given:?}; this program reads {FORMAT:?}"
            ),
            TraceError::Start(thread) => write!(
                f,
                "thread {thread} must have either `release` or `spawned_by`"
            ),
            TraceError::Spawner(thread) => write!(
                f,
                "thread {thread} is spawned by a step that does not exist, or by a thread that comes after it; list threads in the \
                 order of their creation"
            ),
            TraceError::Workers => {
                write!(f, "the recorded run has 0 workers; a run has at least one")
            }
            TraceError::Cycle { thread, step } => write!(
                f,
                "step {step} of thread {thread} depends on itself through other steps; an edge may only go to what runs later"
            ),
            TraceError::Dag(cause) => write!(f, "the trace is no computation: {cause}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// Reads a computation.
///
/// # Errors
///
/// If the text is not of the format, or says something that is no DAG.
pub fn read(text: &str) -> Result<Dag, TraceError> {
    build(&parse(text)?).map(|(dag, _)| dag)
}

/// What a recording says of its own run.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What happened. Only what a recording knows is there: workers, makespan, work, scheduling, searching,
    /// responses.
    pub report: Report,
    /// Brent's bound, and for a prompt schedule Theorem 1 for the thread that comes nearest to it.
    pub checks: Vec<Check>,
}

/// What was recorded of the run itself, if the text is a recording.
///
/// # Errors
///
/// As [`read`], and if that run had no workers.
pub fn recorded(text: &str) -> Result<Option<Recorded>, TraceError> {
    let trace = parse(text)?;
    let Some(run) = trace.recorded else {
        return Ok(None);
    };
    if run.workers == 0 {
        return Err(TraceError::Workers);
    }
    let (dag, made) = build(&trace)?;
    let mut responses: Vec<Response> = (0..).zip(dag.threads()).map(unfinished).collect();
    for (response, least) in responses.iter_mut().zip(alone(&dag, run.workers)) {
        response.alone = least;
    }
    // A thread that was spawned is ready when its spawner's step has ended, of which only its own end is
    // known: its response begins with the recorded ancestor's release.
    for (number, thread) in trace.threads.iter().enumerate() {
        let ready = match (thread.release, thread.spawned_by) {
            (Some(release), _) => release,
            (None, Some(by)) => responses[made[by.thread as usize] as usize].ready,
            (None, None) => 0,
        };
        let response = &mut responses[made[number] as usize];
        response.ready = ready;
        response.done = thread.finished.unwrap_or(ready).max(ready);
    }
    let mut report = Report {
        workers: run.workers,
        makespan: run.makespan,
        work: dag.total_work(),
        scheduling: run.scheduling,
        searching: run.searching,
        responses,
        ..Report::default()
    };
    report.summarise(dag.levels());
    let machine = Machine {
        workers: run.workers,
        ..Machine::default()
    };
    let mut checks = vec![bounds::brent(&dag, &machine, &report)];
    if run.prompt {
        checks.extend(bounds::prompt_responses(
            &dag,
            &machine,
            &report,
            |thread| report.responses[thread as usize].root,
        ));
    }
    Ok(Some(Recorded { report, checks }))
}

fn unfinished((thread, info): (u32, &crate::dag::ThreadInfo)) -> Response {
    Response {
        thread,
        level: info.level,
        ready: 0,
        done: 0,
        root: info.release.is_some(),
        alone: 0,
    }
}

fn parse(text: &str) -> Result<Trace, TraceError> {
    let trace: Trace = serde_json::from_str(text).map_err(TraceError::Json)?;
    if trace.format != FORMAT {
        return Err(TraceError::Format(trace.format));
    }
    Ok(trace)
}

/// The computation, and the number in it of each thread of the trace.
fn build(trace: &Trace) -> Result<(Dag, Vec<u32>), TraceError> {
    let threads = &trace.threads;
    let mut children: Vec<Vec<(u32, u32)>> = vec![Vec::new(); threads.len()];
    for (number, thread) in threads.iter().enumerate() {
        let number = number as u32;
        if thread.release.is_some() == thread.spawned_by.is_some() {
            return Err(TraceError::Start(number));
        }
        if thread.steps.is_empty() {
            return Err(TraceError::Dag(DagError::EmptyThread(number)));
        }
        // The DAG numbers threads otherwise.
        if thread.level > 63 {
            let level = thread.level;
            return Err(TraceError::Dag(DagError::Level {
                thread: number,
                level,
            }));
        }
        if let Some(by) = thread.spawned_by {
            let spawner = threads[..number as usize].get(by.thread as usize);
            if spawner.is_none_or(|spawner| by.step as usize >= spawner.steps.len()) {
                return Err(TraceError::Spawner(number));
            }
            children[by.thread as usize].push((by.step, number));
        }
    }
    let mut dag = Builder::new();
    let mut made = vec![NONE; threads.len()];
    let mut vertices: Vec<Vec<u32>> = vec![Vec::new(); threads.len()];
    let add = |dag: &mut Builder, made: u32, step: &Step| {
        let vertex = dag.step_after(made, step.latency, step.work);
        if step.sync {
            dag.as_sync(vertex);
        }
        let how = match step.yields {
            YieldsTrace::No => Yields::No,
            YieldsTrace::Near => Yields::Near,
            YieldsTrace::Far => Yields::Far,
        };
        dag.yields(vertex, how);
        vertex
    };
    for (number, thread) in threads.iter().enumerate() {
        if let Some(release) = thread.release {
            made[number] = dag.root(thread.level, release);
        }
        for (index, step) in thread.steps.iter().enumerate() {
            if vertices[number].len() == index {
                let vertex = add(&mut dag, made[number], step);
                vertices[number].push(vertex);
            }
            // The first step of what is spawned here comes before the next step here.
            for &(_, child) in children[number].iter().filter(|c| c.0 as usize == index) {
                let child = child as usize;
                made[child] = dag.spawn(vertices[number][index], threads[child].level);
                let vertex = add(&mut dag, made[child], &threads[child].steps[0]);
                vertices[child].push(vertex);
            }
        }
    }
    for edge in &trace.edges {
        let vertex = |place: Place| {
            let steps = vertices.get(place.thread as usize);
            let vertex = steps.and_then(|steps| steps.get(place.step as usize));
            vertex.copied().ok_or(TraceError::Dag(DagError::Unknown {
                what: "step of a thread",
                number: place.thread,
            }))
        };
        dag.edge(vertex(edge.from)?, vertex(edge.to)?, edge.latency);
    }
    let in_trace = |error| match error {
        DagError::Cycle(vertex) => {
            let step_of = |steps: &Vec<u32>| steps.iter().position(|&step| step == vertex);
            let found = (0..)
                .zip(&vertices)
                .find_map(|(n, s)| Some((n, step_of(s)?)));
            let (thread, step) = found.expect("each vertex is a step of the trace");
            let step = step as u32;
            TraceError::Cycle { thread, step }
        }
        other => TraceError::Dag(other),
    };
    let dag = dag.build().map_err(in_trace)?;
    Ok((dag, made))
}

/// Writes a computation. Threads keep their order if spawners come before what they spawn, as the generators
/// and [`Builder`] have it.
pub fn write(dag: &Dag) -> String {
    let mut place = vec![Place { thread: 0, step: 0 }; dag.len()];
    let mut threads: Vec<ThreadTrace> = Vec::new();
    for (number, info) in dag.threads().iter().enumerate() {
        let mut steps = Vec::new();
        let mut vertex = info.first;
        while vertex != NONE {
            place[vertex as usize] = Place {
                thread: number as u32,
                step: steps.len() as u32,
            };
            let yields = match dag.yields[vertex as usize] {
                Yields::No => YieldsTrace::No,
                Yields::Near => YieldsTrace::Near,
                Yields::Far => YieldsTrace::Far,
            };
            steps.push(Step {
                work: dag.work(vertex),
                latency: 0,
                sync: dag.is_sync[vertex as usize],
                yields,
            });
            vertex = dag.next[vertex as usize];
        }
        threads.push(ThreadTrace {
            level: info.level,
            release: info.release,
            spawned_by: None,
            finished: None,
            steps,
        });
    }
    let mut edges = Vec::new();
    for from in 0..dag.len() as u32 {
        for edge in dag.edges(from) {
            let to = place[edge.to as usize];
            let thread = &mut threads[to.thread as usize];
            if dag.next[from as usize] == edge.to {
                thread.steps[to.step as usize].latency = edge.latency;
            } else if to.step == 0 && thread.release.is_none() && thread.spawned_by.is_none() {
                thread.spawned_by = Some(place[from as usize]);
                thread.steps[0].latency = edge.latency;
            } else {
                edges.push(EdgeTrace {
                    from: place[from as usize],
                    to,
                    latency: edge.latency,
                });
            }
        }
    }
    let trace = Trace {
        format: FORMAT.to_owned(),
        threads,
        edges,
        recorded: None,
    };
    serde_json::to_string(&trace).expect("numbers and names are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, generate, run};

    #[test]
    fn what_is_written_is_read_back_and_scheduled_in_the_same_way() {
        for dag in [
            generate::fork_join(4, 2, 3),
            generate::map_reduce(20, 100, 7, 1),
        ] {
            let again = read(&write(&dag)).unwrap();
            let machine = Machine {
                workers: 3,
                ..Machine::default()
            };
            let of = |dag: &Dag| {
                let report = run(dag, &machine).unwrap();
                (
                    report.makespan,
                    report.deviations,
                    dag.span(),
                    report.steals,
                )
            };
            assert_eq!(of(&dag), of(&again));
        }
    }

    #[test]
    fn what_is_wrong_with_a_trace_is_named() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("{").contains("line 1"));
        assert!(error(r#"{"format":"x","threads":[]}"#).contains("urgency-trace-1"));
        let start = r#"{"format":"urgency-trace-1","threads":[{"level":0,"steps":[{"work":1}]}]}"#;
        assert!(error(start).contains("thread 0 must have either"));
        let spawner = r#"{"format":"urgency-trace-1","threads":[
            {"level":0,"spawned_by":{"thread":1,"step":0},"steps":[{"work":1}]}]}"#;
        assert!(error(spawner).contains("thread 0 is spawned by a step"));
        assert!(
            error(r#"{"format":"urgency-trace-1","threads":[]}"#).contains("at least one vertex")
        );
        // Threads are named as the trace numbers them; in the DAG the third comes second.
        let three = |level: u8, edges: &str| {
            format!(
                r#"{{"format":"urgency-trace-1","threads":[
                {{"level":0,"release":0,"steps":[{{"work":1}}]}},
                {{"level":0,"release":0,"steps":[{{"work":1}},{{"work":1}}]}},
                {{"level":{level},"spawned_by":{{"thread":0,"step":0}},"steps":[{{"work":1}},{{"work":1}}]}}],
                "edges":[{edges}]}}"#
            )
        };
        let level = error(&three(64, ""));
        assert!(
            level.contains("thread 2 has the level of rank 64"),
            "{level}"
        );
        let back = r#"{"from":{"thread":2,"step":1},"to":{"thread":2,"step":0}}"#;
        let cycle = error(&three(0, back));
        assert!(
            cycle.contains("step 0 of thread 2 depends on itself"),
            "{cycle}"
        );
        let nobody = r#"{"format":"urgency-trace-1","threads":[{"level":0,"release":0,"steps":[{"work":1}]}],
            "recorded":{"workers":0,"prompt":true,"makespan":1,"scheduling":0,"searching":0}}"#;
        let nobody = recorded(nobody).unwrap_err().to_string();
        assert!(nobody.contains("0 workers"), "{nobody}");
    }
}
