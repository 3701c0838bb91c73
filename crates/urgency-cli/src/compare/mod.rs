//! `urgency load compare`: the cache server beside memcached, and beside the same server code on Tokio.
//!
//! What is fair on few processors: the servers get the processors of `--server-cpus`, the same for each and
//! one at a time, and as many worker threads as these are. The client, this process, has processors of its
//! own and spins there; a client that shared them would take from the server what the server is measured by,
//! and on a virtual machine each of its wake-ups costs more than a request. On a machine with two processors
//! each server has one.
//!
//! The parts: `highest` (the search for the highest rate at which 95 % of the requests are answered within 10
//! ms, the quality of service of the Prompt I-Cilk paper, section 5), `curves` (its figures 1 and 3:
//! latencies against the offered rate; and figure 6: running and waste), `batch` (the same load beside a
//! parallel batch job: at a lower level of the cache's own runtime, against a process of its own beside
//! memcached), `background` (while the table grows and the crawler runs), `schedules` (the cache under prompt
//! and the adaptive schedules: the paper's variants), `memory` (what an item costs beyond its key and its
//! value). Each part saves its rows as JSON and ends with its bars.

/// Says a line of the tables. Results are kept in files: an output that is closed, or full, ends no measurement.
macro_rules! say {
    ($($line:tt)*) => {
        let _ = urgency_measure::output::say(format_args!("{}\n", format_args!($($line)*)));
    };
}

mod background;
mod batch;
mod calm;
mod contender;
mod curves;
mod embedded;
mod error;
mod files;
mod highest;
mod memory;
mod options;
mod picture;
mod process;
mod rows;
mod schedules;
mod slices;
mod turns;

pub use embedded::{Scheduled, Spec, main as embedded};
pub use error::Error;
pub use options::Options;

use contender::Contender;
use options::Part;
use process::Process;
use schedules::Schedule;
use std::process::{Command, ExitCode};
use turns::Titled as _;
use urgency_load::{Client, Outcome};

/// A limit that was compared with what was measured.
#[derive(Debug)]
pub struct Bar {
    what: String,
    limit: f64,
    /// Whether the value has to be above the limit; else below.
    at_least: bool,
    value: Option<f64>,
}

impl Bar {
    fn at_most(limit: f64, what: &str, value: Option<f64>) -> Self {
        Bar {
            what: what.to_owned(),
            limit,
            at_least: false,
            value,
        }
    }

    fn at_least(limit: f64, what: &str, value: Option<f64>) -> Self {
        Bar {
            at_least: true,
            ..Bar::at_most(limit, what, value)
        }
    }

    fn is_kept(&self) -> bool {
        self.value.is_some_and(|value| match self.at_least {
            true => value >= self.limit,
            false => value <= self.limit,
        })
    }

    fn say(&self) -> String {
        let verdict = if self.is_kept() { "kept" } else { "MISSED" };
        let sign = if self.at_least { ">=" } else { "<=" };
        match self.value {
            Some(value) => {
                let (what, limit) = (&self.what, self.limit);
                format!("{verdict:>6}  {what}: {value:.2} (bar {sign} {limit})")
            }
            None => format!(
                "{:>6}  {}: not measured, or never calm",
                "MISSED", self.what
            ),
        }
    }
}

/// A contender that could not be measured in a round.
#[derive(Debug)]
pub struct Failure {
    title: &'static str,
    round: u32,
    error: Error,
}

impl Failure {
    fn say(&self) -> String {
        let Failure {
            title,
            round,
            error,
        } = self;
        format!("FAILED  {title}, round {round}: {error}")
    }
}

/// What a part ends with.
#[derive(Debug, Default)]
pub struct Verdict {
    bars: Vec<Bar>,
    failures: Vec<Failure>,
}

impl Verdict {
    fn has_any(&self) -> bool {
        !self.bars.is_empty() || !self.failures.is_empty()
    }
}

/// Runs the comparison. It fails if a contender could not be measured, and with `--check` if a bar is missed.
pub fn run(options: &Options) -> ExitCode {
    let options = match options.resolved() {
        Ok(options) => options,
        Err(refusal) => {
            eprintln!("urgency load compare: {refusal}");
            return ExitCode::from(2);
        }
    };
    let mut verdict = Verdict::default();
    let executed = execute(&options, &mut verdict);
    // What an error ends has a verdict on the parts before it.
    if executed.is_ok() || verdict.has_any() {
        say!("\nBars:");
    }
    for line in verdict.failures.iter().map(Failure::say) {
        say!("{line}");
    }
    for bar in &verdict.bars {
        say!("{}", bar.say());
    }
    if let Err(error) = &executed {
        eprintln!("urgency load compare: {error}");
    }
    let judged = options.check && !options.quick;
    let missed = judged && !verdict.bars.iter().all(Bar::is_kept);
    match missed || executed.is_err() || !verdict.failures.is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Fails now with what would fail after minutes: files that cannot be written, a scale that is not known.
fn probe(options: &Options) -> Result<(), Error> {
    for (part, name) in [
        (Part::Highest, highest::part(options).as_str()),
        (Part::Curves, "curves"),
        (Part::Batch, "batch"),
        (Part::Background, "background"),
        (Part::Schedules, "schedules"),
        (Part::Memory, "memory"),
    ] {
        if options.wants(part) {
            files::probe(options, name)?;
        }
    }
    if options.wants(Part::Curves) {
        files::probe_file("the picture", "--picture", &options.picture)?;
    }
    let scaled = [Part::Curves, Part::Batch, Part::Background, Part::Schedules];
    if scaled.into_iter().any(|part| options.wants(part)) && !highest::gives_scale(options) {
        highest::of_memcached(options)?;
    }
    Ok(())
}

fn execute(options: &Options, verdict: &mut Verdict) -> Result<(), Error> {
    probe(options)?;
    // Servers inherit both.
    urgency_load::allow_descriptors(options.connections, options.client_on().numbers().len())?;
    // The client's threads bind themselves.
    options.servers_on().bind().map_err(Error::Bind)?;
    say!(
        "servers on processors {}, one at a time, {} worker threads; client on {}; {} connections",
        options.servers_on(),
        threads(options),
        options.client_on(),
        options.connections
    );
    for (part, measure) in [
        (
            Part::Highest,
            highest::measure as fn(&Options) -> Result<Verdict, Error>,
        ),
        (Part::Curves, curves::measure),
        (Part::Batch, batch::measure),
        (Part::Background, background::measure),
        (Part::Schedules, schedules::measure),
        (Part::Memory, memory::measure),
    ] {
        if options.wants(part) {
            let part = measure(options)?;
            verdict.bars.extend(part.bars);
            verdict.failures.extend(part.failures);
        }
    }
    Ok(())
}

/// Worker threads of each server.
fn threads(options: &Options) -> usize {
    options.servers_on().numbers().len()
}

/// Megabytes of each cache: more than the load fills, so that nothing is evicted and every get finds its value.
const MEGABYTES: u64 = 1024;

/// Starts a contender from its command line, after the words `before`, and waits until it accepts.
fn start(
    options: &Options,
    contender: Contender,
    megabytes: u64,
    before: &[&str],
) -> Result<(Process, u16), Error> {
    let port = process::free_port();
    let command = contender.command(port, threads(options), megabytes);
    let mut command = command.map_err(|cause| Error::Start {
        title: contender.title().to_owned(),
        cause,
    })?;
    if let Some((program, arguments)) = before.split_first() {
        let mut outer = Command::new(program);
        outer.args(arguments).arg(command.get_program());
        outer.args(command.get_args());
        command = outer;
    }
    let mut process = Process::start(contender.title(), &command, 0)?;
    process.wait_for(port)?;
    Ok((process, port))
}

/// A server with its keys filled, and the client of it.
struct Serving {
    process: Process,
    client: Client,
    port: u16,
}

impl Serving {
    /// Starts a contender from its command line.
    fn start(options: &Options, contender: Contender) -> Result<Self, Error> {
        Serving::start_after(options, contender, &[])
    }

    /// As [`start`](Serving::start), with words before the command: how it is to be scheduled.
    fn start_after(
        options: &Options,
        contender: Contender,
        before: &[&str],
    ) -> Result<Self, Error> {
        let (process, port) = start(options, contender, MEGABYTES, before)?;
        Serving::fill(options, process, port)
    }

    /// Starts the cache inside a process of [`embedded`].
    fn start_embedded(options: &Options, batch: bool, scheduled: Scheduled) -> Result<Self, Error> {
        Serving::start_as(options, batch, scheduled, Schedule::PROMPT)
    }

    /// The same under another schedule.
    fn start_scheduled(options: &Options, schedule: Schedule) -> Result<Self, Error> {
        Serving::start_as(options, false, Scheduled::ThreadsLowered, schedule)
    }

    fn start_as(
        options: &Options,
        batch: bool,
        scheduled: Scheduled,
        schedule: Schedule,
    ) -> Result<Self, Error> {
        let port = process::free_port();
        let spec = Spec {
            port: Some(port),
            threads: threads(options),
            batch,
            scheduled,
            schedule,
        };
        let mut process = spec.start("Urgency", 0)?;
        process.wait_for(port)?;
        Serving::fill(options, process, port)
    }

    fn fill(options: &Options, process: Process, port: u16) -> Result<Self, Error> {
        let mut client = Client::connect(options.load(port))?;
        client.fill(&mut |_| ())?;
        Ok(Serving {
            process,
            client,
            port,
        })
    }
}

/// A run in which a server gave a wrong value is no measurement.
fn check(title: &str, outcome: &Outcome) -> Result<(), Error> {
    match outcome.counts.faults() + outcome.counts.server_errors {
        0 => Ok(()),
        _ => Err(Error::Wrong {
            title: title.to_owned(),
            fault: outcome.first_fault.clone().unwrap_or_default(),
        }),
    }
}
