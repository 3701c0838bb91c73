//! One sample in a fresh process.
//!
//! The parent starts `urgency-bench --one <experiment>/<contender>` and reads one line of JSON from its
//! standard output. Three things are failures: a status other than 0 (a panic in the child: wrong result,
//! missing descriptor, ...), whose reason is the last three lines of its standard error, no sample on its
//! output, and more than the time limit. A child that overruns is ended by its process id and waited for.
//!
//! The parent also computes the *foreign share*: CPU time that others used on the machine while the sample
//! ran (everything in `/proc/stat`, stolen time included, less the child's own), as a share of all
//! processors. It is kept with the sample.

use super::{Experiment, Sample, machine};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// A sample, or why there is none, and how much others used the machine meanwhile.
pub struct Taken {
    /// What the child printed, or the reason of its failure.
    pub outcome: Result<Sample, String>,
    /// Share of all processors that others used meanwhile, 0 to 1.
    pub foreign: f64,
}

/// Takes one sample in this process and prints it: the child's side.
pub fn run_here(experiments: &[Experiment], one: &str) -> ExitCode {
    let found = one.split_once('/').and_then(|(experiment, contender)| {
        let experiment = experiments.iter().find(|e| e.name() == experiment)?;
        experiment.contenders().iter().find(|c| c.name == contender)
    });
    let Some(contender) = found else {
        eprintln!("urgency-bench: there is no contender {one:?}; `--list` names them all");
        return ExitCode::from(2);
    };
    let sample = (contender.measure)();
    let line = serde_json::to_string(&sample).expect("a map of numbers can be written as JSON");
    println!("{line}");
    // Endless background work of a contender ends with the process.
    std::process::exit(0)
}

/// Takes one sample in a fresh process: the parent's side. Latencies that are logged one by one go into `events`.
pub fn take(one: &str, events: &Path, quick: bool, limit: Duration) -> Taken {
    let mut command =
        Command::new(std::env::current_exe().expect("the running program has a path"));
    command
        .arg("--one")
        .arg(one)
        .arg("--events")
        .arg(events)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if quick {
        command.arg("--quick");
    }
    let (start, busy, own) = (Instant::now(), machine::machine_busy(), own_cpu());
    let outcome = command
        .spawn()
        .map_err(|error| format!("the child process could not be started: {error}"))
        .and_then(|child| collect(child, limit));
    let elapsed = start.elapsed().as_secs_f64();
    let busy = (machine::machine_busy() - busy).as_secs_f64();
    let own = (own_cpu() - own).as_secs_f64();
    let foreign = ((busy - own) / (elapsed * machine::processors() as f64)).max(0.0);
    Taken { outcome, foreign }
}

/// Processor time of this process and of the children that it has waited for.
pub fn own_cpu() -> Duration {
    machine::children_cpu_time() + machine::cpu_time()
}

fn collect(mut child: Child, limit: Duration) -> Result<Sample, String> {
    // Both pipes are drained by threads of their own, so that a talkative child never blocks on one of them.
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut stderr = child.stderr.take().expect("stderr is piped");
    let out = std::thread::spawn(move || read_all(&mut stdout));
    let err = std::thread::spawn(move || read_all(&mut stderr));
    let status = wait(&mut child, limit);
    let out = out.join().expect("reading a pipe does not panic");
    let err = err.join().expect("reading a pipe does not panic");
    let status = status?;
    if !status.success() {
        return Err(format!("{status}: {}", last_lines(&err)));
    }
    let line = out.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("no sample in its output {line:?}: {error}"))
}

fn wait(child: &mut Child, limit: Duration) -> Result<std::process::ExitStatus, String> {
    let start = Instant::now();
    // The harness itself must not disturb the sample: few, short wake-ups.
    let mut pause = Duration::from_millis(2);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if start.elapsed() > limit => {
                child
                    .kill()
                    .map_err(|e| format!("it could not be ended: {e}"))?;
                child
                    .wait()
                    .map_err(|e| format!("it could not be waited for: {e}"))?;
                return Err(format!("no result within {} s", limit.as_secs()));
            }
            Ok(None) => std::thread::sleep(pause),
            Err(error) => return Err(format!("it could not be waited for: {error}")),
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// All that comes out of a pipe.
pub fn read_all(pipe: &mut impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is still worth showing.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last three lines of what a child complained about, without a backtrace.
pub fn last_lines(text: &str) -> String {
    let (before, _) = text.split_once("stack backtrace:").unwrap_or((text, ""));
    let lines: Vec<_> = before
        .lines()
        .filter(|line| !line.starts_with("note:"))
        .collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_reason_of_a_panic_is_told_also_with_a_backtrace() {
        let text = "a\nb\nthread 'main' panicked at x.rs:1:\nwrong result\nstack backtrace:\n 0: f\n 1: g\n 2: h\n";
        assert_eq!(
            last_lines(text),
            "b | thread 'main' panicked at x.rs:1: | wrong result"
        );
        assert_eq!(last_lines("a\nnote: b\n"), "a");
    }
}
