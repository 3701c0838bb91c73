//! A model of the kernel's side of resctrl: what it shows, takes and refuses, as the documentation of the file system
//! and its source say it.
//!
//! - A mask: hexadecimal, not empty, inside the cache, side by side unless sparse, and the lowest run is long enough.
//! - A bandwidth: in its range, rounded up to a multiple of the step. With `mba_MBps` any number, and it is in force as
//!   soon as its line is read, even if a later line of the same command is refused.
//! - A command for masks is staged: all of it or nothing. It must end its line.
//! - Processors that a group is given leave their old group; the ones that it gives up go to the default group, which
//!   gives up none by a command of its own.
//! - A new group needs a class (CLOSID) and a monitoring number (RMID). A number that was freed is in limbo.
//! - No group overlaps an exclusive one.
//!
//! A test sets faults: the n-th change fails, or is taken in part. The kernel does not take a command in part; a
//! program that survives this survives anything.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod machine;
pub mod newest_first;

use machine::{Fault, Machine, MemoryBandwidth};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};
use urgency_resctrl::Files;

const EIO: i32 = 5;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const ENOENT: i32 = 2;
const ENOSPC: i32 = 28;

type Values = BTreeMap<(String, u32), u64>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    cpus: BTreeSet<usize>,
    values: Values,
    exclusive: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The default group has the empty name.
    groups: BTreeMap<String, Group>,
    limbo: usize,
    status: String,
    changes: usize,
    faults: BTreeMap<usize, Fault>,
    commands: Vec<String>,
    counter: String,
}

#[derive(Debug)]
pub struct Kernel {
    machine: Machine,
    state: RefCell<State>,
}

impl Kernel {
    pub fn new(machine: Machine) -> Self {
        let mut state = State {
            status: "ok".to_owned(),
            counter: "4096".to_owned(),
            ..State::default()
        };
        let mut group = Group {
            cpus: (0..machine.cpus).collect(),
            ..Group::default()
        };
        for &domain in &machine.domains {
            for cache in &machine.caches {
                let all = (1u64 << machine.ways) - 1;
                group.values.insert(((*cache).to_owned(), domain), all);
            }
            if let Some(bandwidth) = machine.bandwidth {
                group
                    .values
                    .insert(("MB".to_owned(), domain), bandwidth.most());
            }
        }
        state.groups.insert(String::new(), group);
        Kernel {
            machine,
            state: RefCell::new(state),
        }
    }

    /// The change that comes after `after` others, counted from now, has this fault.
    pub fn fail(&self, after: usize, fault: Fault) {
        let mut state = self.state.borrow_mut();
        let at = state.changes + after;
        state.faults.insert(at, fault);
    }

    /// Whether all faults have happened.
    pub fn has_failed(&self) -> bool {
        let state = self.state.borrow();
        state.faults.range(state.changes..).next().is_none()
    }

    pub fn heal(&self) {
        self.state.borrow_mut().faults.clear();
    }

    /// What all counters say.
    pub fn set_counter(&self, text: &str) {
        self.state.borrow_mut().counter = text.to_owned();
    }

    /// The commands since the last call.
    pub fn commands(&self) -> Vec<String> {
        std::mem::take(&mut self.state.borrow_mut().commands)
    }

    /// By processor: its group's schemata. At the end, the default group's.
    pub fn in_force(&self) -> Vec<String> {
        let state = self.state.borrow();
        let cpus = (0..self.machine.cpus).map(|cpu| {
            let mut groups = state
                .groups
                .values()
                .filter(|group| group.cpus.contains(&cpu));
            let group = groups.next().expect("a processor is in a group");
            assert!(groups.next().is_none(), "processor {cpu} is in two groups");
            group
        });
        let groups = cpus.chain([&state.groups[""]]);
        groups.map(|group| self.show(group)).collect()
    }

    /// The names of all groups but the default one.
    pub fn groups(&self) -> Vec<String> {
        let state = self.state.borrow();
        state
            .groups
            .keys()
            .filter(|name| !name.is_empty())
            .cloned()
            .collect()
    }

    /// The value of a resource in all domains, for this processor.
    pub fn value(&self, cpu: usize, resource: &str) -> u64 {
        let state = self.state.borrow();
        let group = state
            .groups
            .values()
            .find(|group| group.cpus.contains(&cpu));
        Self::same(&group.expect("a processor is in a group").values, resource)
    }

    /// The value of a resource in all domains, of the default group.
    pub fn rest(&self, resource: &str) -> u64 {
        Self::same(&self.state.borrow().groups[""].values, resource)
    }

    fn same(values: &Values, resource: &str) -> u64 {
        let of = values.iter().filter(|((name, _), _)| name == resource);
        let all: BTreeSet<u64> = of.map(|(_, &value)| value).collect();
        assert_eq!(all.len(), 1, "{resource} differs between domains");
        all.into_iter().next().unwrap()
    }

    /// Panics unless all masks and bandwidths are allowed, and the groups are no more than the classes.
    pub fn check(&self) {
        let state = self.state.borrow();
        assert!(state.groups.len() <= self.machine.closids);
        for group in state.groups.values() {
            for ((resource, _), &value) in &group.values {
                if resource == "MB" {
                    assert!(self.bandwidth(&value.to_string()).is_ok());
                } else {
                    assert!(self.mask(&format!("{value:x}")).is_ok());
                }
            }
        }
    }

    /// Another program's group.
    pub fn make_foreign(&self, name: &str, cpus: &[usize], ways: u64, exclusive: bool) {
        self.make(name).unwrap();
        let list = cpus.iter().map(usize::to_string).collect::<Vec<_>>();
        self.move_cpus(name, &list.join(",")).unwrap();
        let domains = self.machine.domains.clone();
        let text = |ways: u64| -> String {
            let of = |cache: &&str| {
                let domains = domains.iter().map(|domain| format!("{domain}={ways:x}"));
                format!("{cache}:{}\n", domains.collect::<Vec<_>>().join(";"))
            };
            self.machine.caches.iter().map(of).collect()
        };
        if exclusive {
            let all = (1u64 << self.machine.ways) - 1;
            self.set("", &text(all & !ways)).unwrap();
        }
        self.set(name, &text(ways)).unwrap();
        self.state
            .borrow_mut()
            .groups
            .get_mut(name)
            .unwrap()
            .exclusive = exclusive;
    }

    fn refuse(&self, code: i32, status: impl Into<String>) -> io::Error {
        self.state.borrow_mut().status = status.into();
        io::Error::from_raw_os_error(code)
    }

    /// Counts a change; its fault, if it has one.
    fn begin(&self, command: String) -> io::Result<Option<usize>> {
        let mut state = self.state.borrow_mut();
        let fault = state.faults.get(&state.changes).copied();
        state.changes += 1;
        state.commands.push(command);
        state.status = "ok".to_owned();
        drop(state);
        match fault {
            Some(Fault::Refused) => Err(self.refuse(EIO, "the test refuses")),
            Some(Fault::Denied) => Err(self.refuse(EACCES, "")),
            Some(Fault::Part(bytes)) => Ok(Some(bytes)),
            None => Ok(None),
        }
    }

    fn show(&self, group: &Group) -> String {
        let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((resource, domain), value) in &group.values {
            let value = match resource.as_str() {
                "MB" => format!("{domain}={value:4}"),
                _ => format!("{domain}={value:x}"),
            };
            lines.entry(resource).or_default().push(value);
        }
        let line = |(resource, values): (&&str, &Vec<String>)| {
            format!("{resource:>6}:{}\n", values.join(";"))
        };
        lines.iter().map(line).collect()
    }

    fn mask(&self, text: &str) -> Result<u64, String> {
        let mask = u64::from_str_radix(text, 16)
            .map_err(|_| format!("Non-hex character in the mask {text}"))?;
        if mask == 0 || mask >> self.machine.ways != 0 {
            return Err("Mask out of range".to_owned());
        }
        let run = (mask >> mask.trailing_zeros()).trailing_ones();
        if !self.machine.sparse && run != mask.count_ones() {
            return Err(format!("The mask {mask:x} has non-consecutive 1-bits"));
        }
        if run < self.machine.least {
            return Err(format!(
                "Need at least {} bits in the mask",
                self.machine.least
            ));
        }
        Ok(mask)
    }

    fn bandwidth(&self, text: &str) -> Result<u64, String> {
        let kind = self.machine.bandwidth.expect("a machine with MB");
        let value: u64 = text
            .parse()
            .map_err(|_| format!("Invalid MB value {text}"))?;
        if kind != MemoryBandwidth::SoftwareController
            && !(kind.least()..=kind.most()).contains(&value)
        {
            return Err(format!("MB value {value} out of range"));
        }
        Ok(value.next_multiple_of(kind.step()))
    }

    /// The command of `schemata`.
    fn set(&self, name: &str, text: &str) -> io::Result<()> {
        let Some(text) = text.strip_suffix('\n') else {
            return Err(self.refuse(EINVAL, "ok"));
        };
        let mut staged = Values::new();
        for line in text.split('\n') {
            let Some((resource, domains)) = line.split_once(':') else {
                return Err(self.refuse(EINVAL, "Missing ':'"));
            };
            let resource = resource.trim();
            if !self.state.borrow().groups[name]
                .values
                .keys()
                .any(|(known, _)| known == resource)
            {
                return Err(self.refuse(
                    EINVAL,
                    format!("Unknown or unsupported resource name '{resource}'"),
                ));
            }
            for domain in domains.split(';').filter(|domain| !domain.is_empty()) {
                let Some((number, value)) = domain.split_once('=') else {
                    return Err(self.refuse(EINVAL, "Missing '=' or non-numeric domain"));
                };
                let number: u32 = number
                    .trim()
                    .parse()
                    .map_err(|_| self.refuse(EINVAL, "Missing '=' or non-numeric domain"))?;
                let key = (resource.to_owned(), number);
                if !self.machine.domains.contains(&number) || staged.contains_key(&key) {
                    return Err(self.refuse(EINVAL, "Duplicate domain"));
                }
                if resource == "MB" {
                    let value = self
                        .bandwidth(value.trim())
                        .map_err(|status| self.refuse(EINVAL, status))?;
                    if self.machine.bandwidth == Some(MemoryBandwidth::SoftwareController) {
                        let mut state = self.state.borrow_mut();
                        state
                            .groups
                            .get_mut(name)
                            .unwrap()
                            .values
                            .insert(key, value);
                        continue;
                    }
                    staged.insert(key, value);
                } else {
                    let mask = self
                        .mask(value.trim())
                        .map_err(|status| self.refuse(EINVAL, status))?;
                    let overlaps = self.state.borrow().groups.iter().any(|(other, group)| {
                        other != name && group.exclusive && group.values[&key] & mask != 0
                    });
                    if overlaps {
                        return Err(self.refuse(EINVAL, "Overlaps with exclusive group"));
                    }
                    staged.insert(key, mask);
                }
            }
        }
        let mut state = self.state.borrow_mut();
        state.groups.get_mut(name).unwrap().values.extend(staged);
        Ok(())
    }

    /// The command of `cpus_list`.
    fn move_cpus(&self, name: &str, text: &str) -> io::Result<()> {
        let Ok(cpus) = text.parse::<urgency_resctrl::Cpus>() else {
            return Err(self.refuse(EINVAL, "Bad CPU list/mask"));
        };
        let cpus: BTreeSet<usize> = cpus.iter().collect();
        if cpus.iter().any(|&cpu| cpu >= self.machine.cpus) {
            return Err(self.refuse(EINVAL, "Can only assign online CPUs"));
        }
        let dropped: Vec<usize> = self.state.borrow().groups[name]
            .cpus
            .difference(&cpus)
            .copied()
            .collect();
        if name.is_empty() && !dropped.is_empty() {
            return Err(self.refuse(EINVAL, "Can't drop CPUs from default group"));
        }
        let mut state = self.state.borrow_mut();
        state.groups.get_mut("").unwrap().cpus.extend(dropped);
        for group in state.groups.values_mut() {
            group.cpus.retain(|cpu| !cpus.contains(cpu));
        }
        state.groups.get_mut(name).unwrap().cpus = cpus;
        Ok(())
    }

    fn make(&self, name: &str) -> io::Result<()> {
        if self.state.borrow().groups.len() >= self.machine.closids {
            return Err(self.refuse(ENOSPC, "Out of CLOSIDs"));
        }
        let (groups, limbo) = (self.state.borrow().groups.len(), self.state.borrow().limbo);
        if self.machine.rmids > 0 && groups + limbo >= self.machine.rmids {
            let code = if limbo > 0 { EBUSY } else { ENOSPC };
            return Err(self.refuse(code, "Out of RMIDs"));
        }
        let mut state = self.state.borrow_mut();
        let mut group = Group::default();
        for (resource, domain) in state.groups[""].values.keys() {
            let value = match resource.as_str() {
                "MB" => self.machine.bandwidth.unwrap().most(),
                _ => {
                    let taken = state.groups.values().filter(|group| group.exclusive);
                    let taken = taken.fold(0, |all, group| {
                        all | group.values[&(resource.clone(), *domain)]
                    });
                    ((1u64 << self.machine.ways) - 1) & !taken
                }
            };
            group.values.insert((resource.clone(), *domain), value);
        }
        state.groups.insert(name.to_owned(), group);
        Ok(())
    }
}

fn split(path: &Path) -> (String, String) {
    let group = path
        .parent()
        .map_or_else(String::new, |group| group.display().to_string());
    (
        group,
        path.file_name().unwrap().to_str().unwrap().to_owned(),
    )
}

impl Files for Kernel {
    fn read(&self, path: &Path) -> io::Result<String> {
        let missing = || io::Error::from_raw_os_error(ENOENT);
        let text = path.to_str().unwrap();
        if text == "info/last_cmd_status" {
            return Ok(format!("{}\n", self.state.borrow().status));
        }
        if let Some(info) = text.strip_prefix("info/") {
            return self
                .machine
                .info(info)
                .map(|text| text + "\n")
                .ok_or_else(missing);
        }
        if text.contains("mon_data/") {
            return Ok(self.state.borrow().counter.clone() + "\n");
        }
        let (name, file) = split(path);
        let state = self.state.borrow();
        let group = state.groups.get(&name).ok_or_else(missing)?;
        match file.as_str() {
            "schemata" => Ok(self.show(group)),
            "cpus_list" => {
                let cpus: urgency_resctrl::Cpus = group.cpus.iter().copied().collect();
                Ok(format!("{cpus}\n"))
            }
            _ => Err(missing()),
        }
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<usize> {
        let part = self.begin(format!("{} > {}", text.trim_end(), path.display()))?;
        let taken = part.map_or(text, |bytes| &text[..bytes.min(text.len())]);
        let (name, file) = split(path);
        if !self.state.borrow().groups.contains_key(&name) {
            return Err(self.refuse(ENOENT, "directory was removed"));
        }
        match file.as_str() {
            "schemata" => self.set(&name, taken)?,
            "cpus_list" => self.move_cpus(&name, taken)?,
            _ => return Err(self.refuse(EINVAL, "")),
        }
        Ok(taken.len())
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        let part = self.begin(format!("mkdir {}", path.display()))?;
        // There is no half directory.
        part.map_or(Ok(()), |_| Err(self.refuse(EIO, "the test refuses")))?;
        self.make(path.to_str().unwrap())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let part = self.begin(format!("rmdir {}", path.display()))?;
        part.map_or(Ok(()), |_| Err(self.refuse(EIO, "the test refuses")))?;
        let mut state = self.state.borrow_mut();
        let Some(group) = state.groups.remove(path.to_str().unwrap()) else {
            return Err(io::Error::from_raw_os_error(ENOENT));
        };
        state.limbo += 1;
        state.groups.get_mut("").unwrap().cpus.extend(group.cpus);
        Ok(())
    }

    fn directories(&self, path: &Path) -> io::Result<Vec<String>> {
        let machine = &self.machine;
        let text = path.to_str().unwrap();
        if text == "info" {
            let mut names: Vec<String> = machine
                .caches
                .iter()
                .map(|name| (*name).to_owned())
                .collect();
            names.extend(machine.bandwidth.map(|_| "MB".to_owned()));
            names.extend((machine.rmids > 0).then(|| "L3_MON".to_owned()));
            return Ok(names);
        }
        if text.ends_with("mon_data") {
            return Ok(machine
                .domains
                .iter()
                .map(|domain| format!("mon_L3_{domain:02}"))
                .collect());
        }
        let mut names = self.groups();
        names.extend(["info", "mon_groups", "mon_data"].map(str::to_owned));
        Ok(names)
    }
}
