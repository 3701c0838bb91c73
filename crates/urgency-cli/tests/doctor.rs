//! `urgency doctor` from outside: on this machine, and on trees of files as other machines show them.

#![allow(missing_docs)]

use serde_json::Value;
use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
};

const NAMES: [&str; 11] = [
    "processors",
    "processor time",
    "cgroup v2",
    "cache ways",
    "memory bandwidth",
    "cache counters",
    "short time slices",
    "perf",
    "real-time polling",
    "raising threads",
    "membarrier",
];

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urgency"));
    let output = command.arg("doctor").args(arguments).output();
    output.expect("the command starts")
}

/// A machine's files; removed at the end.
struct Tree(PathBuf);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("urgency-doctor-{}-{number}", std::process::id());
        let tree = Tree(std::env::temp_dir().join(name));
        for (path, text) in files {
            let path = tree.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree
    }

    fn report(&self) -> Value {
        let output = doctor(&["--json", "--root", self.0.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The state, what was found, and what to do.
    fn finding(&self, name: &str) -> (String, String, String) {
        let report = self.report();
        let mut findings = report["findings"].as_array().unwrap().iter();
        let finding = findings.find(|finding| finding["name"] == name).unwrap();
        let text = |key: &str| finding[key].as_str().unwrap_or("").to_owned();
        (text("state"), text("found"), text("enable"))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_report_of_this_machine_has_every_finding_in_words_and_as_json() {
    let output = doctor(&[]);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    let words = String::from_utf8(output.stdout).unwrap();
    let output = doctor(&["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let workers = std::thread::available_parallelism().unwrap().get();
    assert_eq!(report["workers"], workers);
    assert!(words.contains(&format!("{workers} worker(s)")), "{words}");
    let findings = report["findings"].as_array().unwrap();
    let names: Vec<_> = findings
        .iter()
        .map(|finding| finding["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, NAMES);
    for finding in findings {
        let found = finding["found"].as_str().unwrap();
        assert!(words.contains(found), "{found:?} is not in {words}");
        let says_how = finding["enable"].is_string();
        assert_eq!(says_how, finding["state"] != "usable", "{finding}");
    }
}

#[test]
fn a_machine_with_resctrl_mounted_is_told_what_it_can_do() {
    let tree = Tree::new(&[
        (
            "proc/self/mounts",
            "resctrl /sys/fs/resctrl resctrl rw,relatime 0 0\n",
        ),
        ("sys/fs/resctrl/info/L3/num_closids", "16\n"),
        ("sys/fs/resctrl/info/L3/cbm_mask", "7ff\n"),
        ("sys/fs/resctrl/info/L3/min_cbm_bits", "2\n"),
        ("sys/fs/resctrl/info/L3/shareable_bits", "0\n"),
        ("sys/fs/resctrl/info/MB/num_closids", "8\n"),
        ("sys/fs/resctrl/info/MB/min_bandwidth", "10\n"),
        ("sys/fs/resctrl/info/MB/bandwidth_gran", "10\n"),
        ("sys/fs/resctrl/info/MB/delay_linear", "1\n"),
        ("sys/fs/resctrl/schemata", "MB:0=100\nL3:0=7ff\n"),
    ]);
    let (state, found, _) = tree.finding("cache ways");
    assert_eq!(
        (state.as_str(), found.as_str()),
        ("usable", "L3: 11 ways, at least 2 side by side, 7 group(s)")
    );
    let (state, found, _) = tree.finding("memory bandwidth");
    assert_eq!(
        (state.as_str(), found.as_str()),
        ("usable", "10 to 100 % in steps of 10")
    );
    let (state, found, enable) = tree.finding("cache counters");
    assert_eq!(state, "missing");
    assert!(found.contains("L3_MON") && !enable.is_empty(), "{found}");
}

#[test]
fn where_resctrl_is_missing_the_next_step_is_named() {
    let (known, unknown) = ("nodev\tresctrl\n", "nodev\tproc\n");
    let (rdt, plain) = ("flags\t: fpu rdt_a cat_l3\n", "flags\t: fpu\n");
    let cases = [
        (known, rdt, "is not mounted", "mount -t resctrl"),
        (unknown, rdt, "cat_l3, rdt_a", "CONFIG_X86_CPU_RESCTRL"),
        (unknown, plain, "shows no rdt_a", "cpuset.cpus"),
    ];
    for (file_systems, cpuinfo, reason, step) in cases {
        let tree = Tree::new(&[
            ("proc/self/mounts", ""),
            ("proc/filesystems", file_systems),
            ("proc/cpuinfo", cpuinfo),
        ]);
        for name in ["cache ways", "memory bandwidth", "cache counters"] {
            let (state, found, enable) = tree.finding(name);
            assert_eq!(state, "missing");
            assert!(
                found.contains(reason) && enable.contains(step),
                "{found}; {enable}"
            );
        }
    }
}

#[test]
fn a_quota_and_missing_controllers_are_named() {
    let tree = Tree::new(&[
        (
            "proc/self/mountinfo",
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/a/cgroup.controllers", "cpu memory\n"),
    ]);
    assert_eq!(tree.report()["workers"], 1);
    let (state, found, enable) = tree.finding("processor time");
    assert_eq!(state, "limited");
    assert!(
        found.contains("0.50 processors' time") && enable.contains("cpu.max"),
        "{found}; {enable}"
    );
    let (state, found, enable) = tree.finding("cgroup v2");
    assert_eq!(state, "limited");
    assert!(
        found.contains("cpuset") && enable.contains("echo +cpuset"),
        "{found}; {enable}"
    );
}

#[test]
fn processors_that_are_not_this_process_s_are_named() {
    let tree = Tree::new(&[("sys/devices/system/cpu/online", "0-4095\n")]);
    let (state, found, enable) = tree.finding("processors");
    assert_eq!(state, "limited");
    assert!(
        found.contains("0-4095") && enable.contains("taskset"),
        "{found}; {enable}"
    );
}

#[test]
fn processors_are_not_called_all_that_are_online_where_the_kernel_does_not_say_which_are() {
    for files in [&[][..], &[("sys/devices/system/cpu/online", "\n")]] {
        let (state, found, _) = Tree::new(files).finding("processors");
        assert_eq!(state, "usable");
        assert!(
            !found.contains("all") && found.contains("cpu/online"),
            "{found}"
        );
    }
}

#[test]
fn an_old_kernel_and_a_closed_perf_are_named() {
    let tree = Tree::new(&[
        ("proc/sys/kernel/osrelease", "5.15.0-91-generic\n"),
        ("proc/sys/kernel/perf_event_paranoid", "4\n"),
    ]);
    let (state, found, enable) = tree.finding("short time slices");
    assert_eq!(state, "missing");
    assert!(
        found.contains("5.15.0") && enable.contains("6.12"),
        "{found}; {enable}"
    );
    let (state, _, enable) = tree.finding("perf");
    assert_eq!(state, "limited");
    assert!(enable.contains("perf_event_paranoid"), "{enable}");
}

#[test]
fn a_file_that_cannot_be_right_is_an_error_that_names_it() {
    let tree = Tree::new(&[
        (
            "proc/self/mountinfo",
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cpu.max", "lots\n"),
    ]);
    let output = doctor(&["--root", tree.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("cpu.max") && text.contains("lots"), "{text}");
}
