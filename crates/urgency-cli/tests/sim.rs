//! `urgency sim` with any value of any option: a result, or an error that names the option.

#![allow(missing_docs)]

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

const VALUES: [&str; 9] = [
    "0",
    "1",
    "-1",
    "NaN",
    "inf",
    "1e-300",
    "1e300",
    "18446744073709551615",
    "",
];

/// Each is soon simulated, and uses other options. The words before the first option are the subcommand.
const LINES: [&str; 9] = [
    "sim --size 60",
    "sim --dag random --size 60 --schedule fair --pool lifo --costs measured",
    "sim --dag memcached --rate 5000 --time-ms 5 --schedule adaptive --pool proactive --workers 3",
    "sim --dag bing --rate 50 --time-ms 20 --schedule fixed",
    "sim --dag three-levels --time-ms 20 --work 200000 --schedule winner",
    "sim jobs flow --jobs 60 --loads 60 --cores 5",
    "sim jobs elastic --iterations 20 --periods-ms 20 --cores 5",
    "sim jobs feedback --cores 5",
    "sim scaling --cores 16 --pieces 20 --own 10 --transfer 30",
];

/// A line: the subcommand, and the options with their values.
#[derive(Clone)]
struct Line {
    subcommand: Vec<String>,
    options: Vec<(String, String)>,
}

impl Line {
    fn of(text: &str) -> Line {
        let mut words = text.split(' ').map(str::to_owned).peekable();
        let mut subcommand = Vec::new();
        while let Some(word) = words.next_if(|word| !word.starts_with("--")) {
            subcommand.push(word);
        }
        let mut options = Vec::new();
        while let (Some(option), Some(value)) = (words.next(), words.next()) {
            options.push((option, value));
        }
        Line {
            subcommand,
            options,
        }
    }

    fn with(&self, option: &str, value: &str) -> Line {
        let mut line = self.clone();
        line.options.retain(|(other, _)| other != option);
        line.options.push((option.to_owned(), value.to_owned()));
        line
    }

    fn words(&self) -> Vec<&str> {
        let subcommand = self.subcommand.iter().map(String::as_str);
        let options = self.options.iter();
        let options = options.flat_map(|(option, value)| [option.as_str(), value.as_str()]);
        subcommand.chain(options).collect()
    }

    /// The options that take a value, by the command's help.
    fn known(&self) -> Vec<String> {
        let subcommand = self.subcommand.iter().take(2);
        let help = Command::new(env!("CARGO_BIN_EXE_urgency"))
            .args(subcommand)
            .arg("--help")
            .output()
            .unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let options = help
            .lines()
            .filter_map(|line| line.trim_start().split_once(" <"));
        let options = options.filter(|(option, _)| option.starts_with("--"));
        options.map(|(option, _)| option.to_owned()).collect()
    }
}

/// A folder for what a run writes; removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder =
            std::env::temp_dir().join(format!("urgency-sim-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// With less memory than the machine has. `None` if it does not end.
fn run(words: &[&str], folder: &Folder) -> Option<Output> {
    let limited = r#"ulimit -v 4000000; exec "$0" "$@""#;
    let mut child = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_urgency")])
        .args(words)
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
    Some(child.wait_with_output().unwrap())
}

/// What is wrong with the runs of a line, with each value of each of its options.
fn wrong_with(number: usize, text: &str) -> Vec<String> {
    let line = Line::of(text);
    let options = line.known();
    assert!(options.len() > 5, "the help of {text} has {options:?}");
    let mut wrong = Vec::new();
    for option in options {
        let folder = Folder::new(&format!("{number}{option}"));
        for value in VALUES {
            let line = line.with(&option, value);
            let words = line.words();
            let Some(output) = run(&words, &folder) else {
                wrong.push(format!("{words:?} does not end"));
                continue;
            };
            let said = String::from_utf8_lossy(&output.stderr);
            let is_said = matches!(output.status.code(), Some(1 | 2)) && said.contains(&option);
            if !output.status.success() && !is_said {
                wrong.push(format!("{words:?}: {}, {said}", output.status));
            }
        }
    }
    wrong
}

#[test]
fn any_value_of_any_option_gives_a_result_or_an_error_that_names_the_option() {
    let wrong: Vec<String> = thread::scope(|threads| {
        let halves = [0, 1].map(|half| {
            threads.spawn(move || {
                let lines = LINES.iter().enumerate().skip(half).step_by(2);
                let wrong = lines.flat_map(|(number, line)| wrong_with(number, line));
                wrong.collect::<Vec<_>>()
            })
        });
        let halves = halves.map(|half| half.join().unwrap());
        halves.into_iter().flatten().collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a run says that reads this from a pipe.
fn piped(words: &[&str], text: &str, folder: &Folder) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(words)
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

const RECORDING: &str = r#"{"format":"urgency-trace-1",
    "threads":[{"level":0,"release":0,"finished":20,"steps":[{"work":10}]}],
    "recorded":{"workers":3,"prompt":true,"makespan":20,"scheduling":0,"searching":0}}"#;

const JOB_COSTS: &str = r#"{"decide":100,"start":0,"exit":0,"leave":0,"join":0,
    "steal":{"attempt":100,"steal":0,"mug":0}}"#;

#[test]
fn a_file_that_is_read_may_be_a_pipe() {
    let folder = Folder::new("pipe");
    let trace = ["sim", "--trace", "/dev/stdin"];
    let costs = "sim jobs feedback --cores 2 --job-costs /dev/stdin --json json";
    let costs: Vec<_> = costs.split(' ').collect();
    for (words, text) in [(&trace[..], RECORDING), (&costs, JOB_COSTS)] {
        let output = piped(words, text, &folder);
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

#[test]
fn a_file_that_is_read_has_an_end_and_fits_into_memory() {
    let folder = Folder::new("endless");
    for line in ["sim --trace", "sim --costs", "sim jobs --job-costs"] {
        let words = |path| line.split(' ').chain([path]).collect::<Vec<_>>();
        let device = piped(&words("/dev/zero"), "", &folder);
        let said = String::from_utf8_lossy(&device.stderr);
        assert_eq!(device.status.code(), Some(2), "{said}");
        let option = line.rsplit(' ').next().unwrap();
        assert!(said.contains(option) && said.contains("device"), "{said}");
    }
    let long = " ".repeat((1 << 20) + 1);
    let table = piped(&["sim", "--costs", "/dev/stdin"], &long, &folder);
    let said = String::from_utf8_lossy(&table.stderr);
    assert_eq!(table.status.code(), Some(2), "{said}");
    assert!(said.contains("more than 1048576 bytes"), "{said}");
}

#[test]
fn a_trace_that_replaces_the_recording_it_was_read_from_loses_nothing_of_the_run() {
    let folder = Folder::new("replaced");
    let path = folder.0.join("recording");
    fs::write(&path, RECORDING).unwrap();
    let words = ["sim", "--trace", "recording", "--write-trace", "recording"];
    let output = piped(&words, "", &folder);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("3 workers"), "{said}");
    assert!(!fs::read_to_string(path).unwrap().contains("recorded"));
}
