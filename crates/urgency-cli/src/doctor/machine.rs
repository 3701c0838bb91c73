//! What the kernel's files say: processors, cgroups, resctrl, counters.

use super::finding::Finding;
use rustix::fs::{Access, access};
use std::{fs, path::Path};
use urgency_resctrl::{Bandwidth, Cache, Cpus, Entitlement, Error, Machine, mounted_at};

pub fn findings(root: &Path, entitlement: &Entitlement) -> Vec<Finding> {
    let mut findings = vec![
        processors(root, entitlement),
        processor_time(entitlement),
        cgroup(entitlement),
    ];
    findings.extend(resctrl(root));
    findings.extend([short_slices(root), counters(root)]);
    findings
}

fn read(root: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(name)).ok()?;
    Some(text.trim().to_owned())
}

fn processors(root: &Path, entitlement: &Entitlement) -> Finding {
    let name = "processors";
    let ours = entitlement.cpus();
    let online = read(root, "sys/devices/system/cpu/online");
    let online: Cpus = online
        .and_then(|online| online.parse().ok())
        .unwrap_or_default();
    if online.is_empty() {
        let found =
            format!("{ours}; which ones are online /sys/devices/system/cpu/online does not say");
        return Finding::usable(name, found);
    }
    if online.iter().all(|cpu| ours.contains(cpu)) {
        return Finding::usable(name, format!("{ours}: all that are online"));
    }
    Finding::limited(
        name,
        format!("{ours} of {online}, by this process's affinity or the cpuset of its cgroup"),
        format!(
            "taskset -cp {online} PID, and cpuset.cpus of the cgroup; new runtimes follow, and running ones whose number of workers was not named, within a second or two of work that waits"
        ),
    )
}

fn processor_time(entitlement: &Entitlement) -> Finding {
    let name = "processor time";
    match entitlement.quota {
        None => Finding::usable(name, "no quota"),
        Some(quota) => Finding::limited(
            name,
            format!(
                "{quota}: the kernel stops all threads when it is used up; so there are {} worker(s)",
                entitlement.workers()
            ),
            "raise or remove the limit: cpu.max of the cgroup, `docker --cpus`, the CPU limit of a pod",
        ),
    }
}

fn cgroup(entitlement: &Entitlement) -> Finding {
    let name = "cgroup v2";
    let Some(path) = &entitlement.cgroup else {
        return Finding::missing(
            name,
            "this process is in no cgroup of version 2",
            "mount -t cgroup2 none /sys/fs/cgroup, or boot with systemd.unified_cgroup_hierarchy=1",
        );
    };
    let shown = path.display();
    let controllers = fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
    let lacking = ["cpuset", "cpu"].into_iter();
    let lacking: Vec<&str> = lacking
        .filter(|controller| controllers.split_whitespace().all(|has| has != *controller))
        .collect();
    if !lacking.is_empty() {
        let wanted = lacking.iter().map(|controller| format!("+{controller}"));
        let wanted = wanted.collect::<Vec<_>>().join(" ");
        let found = format!(
            "{shown} is without the controller(s) {}",
            lacking.join(", ")
        );
        let enable = format!(
            "echo {wanted} > cgroup.subtree_control in each directory above it; where version 1 has them (/proc/cgroups), boot \
             with cgroup_no_v1=all"
        );
        return match lacking.len() {
            1 => Finding::limited(name, found, enable),
            _ => Finding::missing(name, found, enable),
        };
    }
    if access(path, Access::WRITE_OK).is_err() {
        return Finding::limited(
            name,
            format!("{shown} has cpuset and cpu, and is not this user's to divide"),
            "Delegate=yes in the systemd unit, or chown the directory",
        );
    }
    Finding::usable(
        name,
        format!("{shown} has cpuset and cpu: processes can get processors and time of their own"),
    )
}

const CACHE: &str = "cache ways";
const BANDWIDTH: &str = "memory bandwidth";
const COUNTERS: &str = "cache counters";

/// Three findings: they come and go together.
fn resctrl(root: &Path) -> Vec<Finding> {
    let mounted = mounted_at(root).and_then(|(files, options)| {
        let machine = Machine::read(&files, options)?;
        Ok((files, machine))
    });
    let (files, machine) = match mounted {
        Ok(mounted) => mounted,
        Err(error) => {
            let (found, enable) = not_mounted(root, &error);
            let all = [CACHE, BANDWIDTH, COUNTERS].into_iter();
            return all
                .map(|name| Finding::missing(name, found.clone(), enable.clone()))
                .collect();
        }
    };
    let may_write = access(files.root().join("schemata"), Access::WRITE_OK).is_ok();
    // What the processor has and this user may not set.
    let settable = |name, found: String| {
        if may_write {
            return Finding::usable(name, found);
        }
        let root = files.root().display();
        Finding::limited(
            name,
            format!("{found}; {root} is not this user's"),
            format!("run as root, or chown -R {root}"),
        )
    };
    let caches = machine.l3().map(in_words).collect::<Vec<_>>().join("; ");
    vec![
        match caches.is_empty() {
            false => settable(CACHE, format!("{caches}, {} group(s)", machine.groups())),
            true => Finding::missing(
                CACHE,
                "resctrl's info has no L3: the processor cannot do it",
                NO_WAY,
            ),
        },
        match &machine.bandwidth {
            Some(bandwidth) => settable(BANDWIDTH, limits_in_words(bandwidth)),
            None => Finding::missing(
                BANDWIDTH,
                "resctrl's info has no MB: the processor cannot do it",
                NO_WAY,
            ),
        },
        match &machine.monitoring {
            Some(monitoring) => Finding::usable(
                COUNTERS,
                format!(
                    "{} for up to {} groups",
                    monitoring.features.join(", "),
                    monitoring.groups
                ),
            ),
            None => Finding::missing(
                COUNTERS,
                "resctrl's info has no L3_MON: the processor cannot do it",
                NO_WAY,
            ),
        },
    ]
}

const NO_WAY: &str =
    "another processor; beside that, give jobs processors of their own (affinity, cpuset.cpus)";

fn in_words(cache: &Cache) -> String {
    let apart = if cache.sparse { "apart or " } else { "" };
    format!(
        "{}: {} ways, at least {} {apart}side by side",
        cache.resource,
        cache.ways.count_ones(),
        cache.least.max(1)
    )
}

fn limits_in_words(bandwidth: &Bandwidth) -> String {
    format!(
        "{} to {} {} in steps of {}",
        bandwidth.least.max(1),
        bandwidth.most,
        bandwidth.unit,
        bandwidth.step
    )
}

/// What is missing for resctrl, and what to do.
fn not_mounted(root: &Path, error: &Error) -> (String, String) {
    let mount = "mount -t resctrl resctrl /sys/fs/resctrl (as root)";
    match error {
        Error::NotMounted => (
            "the kernel has resctrl, and it is not mounted".to_owned(),
            mount.to_owned(),
        ),
        Error::NotSupported => {
            let cpuinfo = read(root, "proc/cpuinfo").unwrap_or_default();
            let flags = cpuinfo.split_whitespace();
            let has = flags.filter(|flag| matches!(*flag, "rdt_a" | "cat_l3" | "mba" | "cqm_llc"));
            let has: std::collections::BTreeSet<&str> = has.collect();
            if has.is_empty() {
                let found = "the processor shows no rdt_a, cat_l3, mba or cqm_llc in /proc/cpuinfo; virtual machines seldom do";
                return (found.to_owned(), NO_WAY.to_owned());
            }
            let has = Vec::from_iter(has).join(", ");
            let found = format!("the processor has {has}, and the kernel has no resctrl");
            (
                found,
                format!("a kernel with CONFIG_X86_CPU_RESCTRL, then {mount}"),
            )
        }
        error => (
            error.to_string(),
            "look at the file that is named".to_owned(),
        ),
    }
}

/// Since Linux 6.12 a thread that asks for short slices preempts at once.
fn short_slices(root: &Path) -> Finding {
    let name = "short time slices";
    let release = read(root, "proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(str::parse::<u32>);
    let version = numbers
        .next()
        .and_then(Result::ok)
        .zip(numbers.next().and_then(Result::ok));
    if version.is_some_and(|version| version >= (6, 12)) {
        return Finding::usable(
            name,
            format!("Linux {release}: the thread that waits for events preempts at once"),
        );
    }
    Finding::missing(
        name,
        format!(
            "Linux {release}: a woken thread may wait until the running one has used up its slice"
        ),
        "Linux 6.12 or later, or Builder::real_time_polling with its permission",
    )
}

/// The runtime needs no counters; a profiler does.
fn counters(root: &Path) -> Finding {
    let name = "perf";
    let Some(level) =
        read(root, "proc/sys/kernel/perf_event_paranoid").and_then(|text| text.parse::<i32>().ok())
    else {
        return Finding::missing(
            name,
            "the kernel has no perf events",
            "a kernel with CONFIG_PERF_EVENTS",
        );
    };
    if level <= 1 {
        return Finding::usable(
            name,
            format!("perf_event_paranoid is {level}: a process and the kernel can be profiled"),
        );
    }
    let found = format!(
        "perf_event_paranoid is {level}: only a process's own code can be profiled, or nothing (above 2)"
    );
    Finding::limited(
        name,
        found,
        "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON",
    )
}
