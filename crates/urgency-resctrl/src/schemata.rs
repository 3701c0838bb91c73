//! The file `schemata`: what a group may use of each instance of each resource.
//!
//! ```text
//!     MB:0=2048;1=  16
//!     L3:0=ffff;1=ffff
//! ```
//!
//! A line is a resource; a number before `=` is an instance of it (a *domain*: the cache's number). Masks are
//! hexadecimal, bandwidths decimal. The kernel pads both, and a write may leave out whatever stays as it is.

use crate::Error;
use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    path::Path,
};

/// A resource that the kernel gives out, by the name in `schemata`; see [`Cache`](crate::Cache).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// `L3`: the last-level cache on most machines.
    L3,
    /// `L3CODE`: what instruction fetches fill of it, if resctrl was mounted with `cdp`.
    L3Code,
    /// `L3DATA`: what reads and writes fill of it, likewise.
    L3Data,
    /// `L2`.
    L2,
    /// `L2CODE`, if mounted with `cdpl2`.
    L2Code,
    /// `L2DATA`, likewise.
    L2Data,
    /// `MB`: bandwidth between the last-level cache and memory.
    Bandwidth,
    /// `SMBA`: bandwidth to slow memory, on AMD.
    SlowBandwidth,
}

impl Resource {
    const NAMED: [(Resource, &str); 8] = [
        (Resource::L3, "L3"),
        (Resource::L3Code, "L3CODE"),
        (Resource::L3Data, "L3DATA"),
        (Resource::L2, "L2"),
        (Resource::L2Code, "L2CODE"),
        (Resource::L2Data, "L2DATA"),
        (Resource::Bandwidth, "MB"),
        (Resource::SlowBandwidth, "SMBA"),
    ];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].1
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let found = Self::NAMED.iter().find(|(_, known)| *known == name);
        found.map(|&(resource, _)| resource)
    }

    /// Whether it is the last-level cache or a half of it.
    pub fn is_l3(self) -> bool {
        matches!(self, Self::L3 | Self::L3Code | Self::L3Data)
    }

    /// Whether it is a cache, so that its values are masks.
    pub fn is_cache(self) -> bool {
        !matches!(self, Self::Bandwidth | Self::SlowBandwidth)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// By resource and domain: a mask of ways, or a bandwidth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schemata(pub(crate) BTreeMap<Resource, BTreeMap<u32, u64>>);

impl Schemata {
    /// Lines of resources that this crate does not know are left out: it never writes them.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let mut lines = BTreeMap::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let wrong = || {
                Error::malformed(
                    path,
                    line,
                    "a resource, a colon, and domains with their values: L3:0=ff;1=ff",
                )
            };
            let (name, domains) = line.split_once(':').ok_or_else(wrong)?;
            let Some(resource) = Resource::named(name.trim()) else {
                continue;
            };
            let values = domains.split(';').map(|domain| {
                let (number, value) = domain.split_once('=').ok_or_else(wrong)?;
                let number = number.trim().parse().map_err(|_| wrong())?;
                let value =
                    u64::from_str_radix(value.trim(), if resource.is_cache() { 16 } else { 10 });
                Ok((number, value.map_err(|_| wrong())?))
            });
            lines.insert(resource, values.collect::<Result<_, Error>>()?);
        }
        Ok(Schemata(lines))
    }

    /// What is to be written so that a group with these values gets `new`; empty if nothing.
    pub(crate) fn changes_to(&self, new: &Schemata) -> Schemata {
        let mut changes = BTreeMap::new();
        for (resource, domains) in &new.0 {
            let old = self.0.get(resource);
            let is_new = |domain, value| old.and_then(|old| old.get(domain)) != Some(value);
            let changed = domains
                .iter()
                .filter(|(domain, value)| is_new(domain, value));
            let changed: BTreeMap<u32, u64> =
                changed.map(|(&domain, &value)| (domain, value)).collect();
            if !changed.is_empty() {
                changes.insert(*resource, changed);
            }
        }
        Schemata(changes)
    }

    /// The same with the values that are in `changes`.
    pub(crate) fn with(&self, changes: &Schemata) -> Schemata {
        let mut all = self.clone();
        for (resource, domains) in &changes.0 {
            all.0.entry(*resource).or_default().extend(domains);
        }
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values in all domains of the resources for which `choose` names one.
    pub(crate) fn map(&self, choose: impl Fn(Resource, u64) -> Option<u64>) -> Schemata {
        let of = |resource: Resource, domains: &BTreeMap<u32, u64>| {
            let chosen = domains
                .iter()
                .filter_map(|(&domain, &value)| Some((domain, choose(resource, value)?)));
            chosen.collect::<BTreeMap<u32, u64>>()
        };
        let lines = self
            .0
            .iter()
            .map(|(&resource, domains)| (resource, of(resource, domains)));
        Schemata(lines.filter(|(_, domains)| !domains.is_empty()).collect())
    }
}

impl fmt::Display for Schemata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (resource, domains) in &self.0 {
            let mut line = format!("{resource}:");
            for (domain, value) in domains {
                match resource.is_cache() {
                    true => write!(line, "{domain}={value:x};")?,
                    false => write!(line, "{domain}={value};")?,
                }
            }
            // The kernel refuses a command that does not end its line.
            writeln!(f, "{}", line.trim_end_matches(';'))?;
        }
        Ok(())
    }
}
