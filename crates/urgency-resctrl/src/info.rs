//! What the machine can do: the directory `info`.

use crate::{Error, Files, Resource, error::MaskRule};
use std::path::Path;
use urgency_policy::cores::CacheControl;

/// What resctrl was mounted with. The kernel's files do not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// `mba_MBps`: bandwidths are in MiB/s, kept by a loop in the kernel.
    pub mba_mbps: bool,
}

impl MountOptions {
    /// From the fourth column of `/proc/self/mounts`.
    ///
    /// ```
    /// use urgency_resctrl::MountOptions;
    ///
    /// assert!(MountOptions::parse("rw,relatime,mba_MBps").mba_mbps);
    /// ```
    pub fn parse(options: &str) -> Self {
        MountOptions {
            mba_mbps: options.split(',').any(|option| option == "mba_MBps"),
        }
    }
}

/// One cache of a [`Machine`]. With `cdp` there are two, for code and for data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Which one.
    pub resource: Resource,
    /// `cbm_mask`: all ways, as bits.
    pub ways: u64,
    /// `min_cbm_bits`: how many ways a group has at least, side by side.
    pub least: u32,
    /// `shareable_bits`: ways that devices fill, too. A group may have them; they are just not its own.
    pub shareable: u64,
    /// `sparse_masks`: whether a group's ways may lie apart. A kernel that does not say so is taken at its least.
    pub sparse: bool,
    /// `num_closids`: how many groups there can be, with the default one.
    pub groups: u32,
}

impl Cache {
    /// Whether the kernel takes this mask for a group.
    ///
    /// ```
    /// use urgency_resctrl::{Cache, Resource};
    ///
    /// let (ways, shareable) = (0x7ff, 0x600);
    /// let cache = Cache { resource: Resource::L3, ways, least: 2, shareable, sparse: false, groups: 16 };
    /// assert!(cache.check(0b0110).is_ok());
    /// let error = cache.check(0b0101).unwrap_err();
    /// assert!(error.to_string().contains("side by side"), "{error}");
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Mask`] with the rule that it breaks.
    pub fn check(&self, mask: u64) -> Result<(), Error> {
        let above_lowest = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
        let side_by_side = above_lowest.trailing_ones();
        let rule = if mask & !self.ways != 0 {
            MaskRule::Exists
        } else if !self.sparse && side_by_side != mask.count_ones() {
            MaskRule::SideBySide
        } else if side_by_side < self.least.max(1) {
            // The kernel counts the lowest run of ways, also where the others may lie apart.
            MaskRule::Least
        } else {
            return Ok(());
        };
        Err(Error::Mask {
            mask,
            rule,
            cache: self.clone(),
        })
    }
}

/// What a bandwidth is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Percent of what the cores could use: on Intel, and on ARM. The same percentage is more bandwidth for more cores.
    Percent,
    /// 1/8 GB/s: on AMD.
    EighthGigabytes,
    /// MiB/s: where resctrl was mounted with `mba_MBps`.
    Mebibytes,
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unit::Percent => "%",
            Unit::EighthGigabytes => "x 1/8 GB/s",
            Unit::Mebibytes => "MiB/s",
        })
    }
}

/// The limits on bandwidth that a [`Machine`] can set.
///
/// ```
/// use urgency_resctrl::{Bandwidth, Unit};
///
/// let intel = Bandwidth { unit: Unit::Percent, least: 10, most: 100, step: 10, groups: 8 };
/// assert!(intel.check(40).is_ok());
/// assert!(intel.check(45).is_err(), "the kernel would round it");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// What numbers mean.
    pub unit: Unit,
    /// `min_bandwidth`.
    pub least: u32,
    /// 100 percent. Elsewhere what no limit is, as the default group shows it.
    pub most: u32,
    /// `bandwidth_gran`: the kernel rounds up to a multiple.
    pub step: u32,
    /// `num_closids`: how many groups there can be, with the default one.
    pub groups: u32,
}

impl Bandwidth {
    /// Whether the kernel takes this limit as it is, without rounding it.
    ///
    /// # Errors
    ///
    /// [`Error::Bandwidth`].
    pub fn check(&self, value: u32) -> Result<(), Error> {
        let fits = (self.least.max(1)..=self.most).contains(&value);
        if fits && (value.is_multiple_of(self.step) || value == self.most) {
            return Ok(());
        }
        Err(Error::Bandwidth {
            value,
            bandwidth: self.clone(),
        })
    }
}

/// What a [`Machine`] can measure by group.
///
/// ```
/// use urgency_resctrl::{Machine, Monitoring};
///
/// let features = vec!["llc_occupancy".to_owned()];
/// let measures = Machine { monitoring: Some(Monitoring { groups: 32, features }), ..Machine::default() };
/// assert_eq!(measures.groups(), 0, "it gives nothing out");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitoring {
    /// `num_rmids`: how many groups can be measured.
    pub groups: u32,
    /// `mon_features`: `llc_occupancy`, `mbm_total_bytes`, `mbm_local_bytes` or a part of these.
    pub features: Vec<String>,
}

/// What resctrl offers on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The caches that can be partitioned.
    pub caches: Vec<Cache>,
    /// Limits on bandwidth to memory.
    pub bandwidth: Option<Bandwidth>,
    /// Counters.
    pub monitoring: Option<Monitoring>,
}

impl Machine {
    /// Reads `info`, and the default group's bandwidth.
    ///
    /// # Errors
    ///
    /// If a file that must be there cannot be read, or does not say what the kernel's documentation says.
    pub fn read<F: Files>(files: &F, options: MountOptions) -> Result<Self, Error> {
        let directory = Path::new("info");
        let mut names = files
            .directories(directory)
            .map_err(|cause| Error::read(directory, cause))?;
        names.sort();
        let mut machine = Machine::default();
        for name in names {
            let info = Info {
                files,
                directory: &directory.join(&name),
            };
            match name.as_str() {
                "MB" => machine.bandwidth = Some(info.bandwidth(options)?),
                "L3_MON" => machine.monitoring = Some(info.monitoring()?),
                name => {
                    if let Some(resource) = Resource::named(name).filter(|is| is.is_cache()) {
                        machine.caches.push(info.cache(resource)?);
                    }
                }
            }
        }
        Ok(machine)
    }

    /// The last-level caches that a job's ways are given in: one, or one for code and one for data.
    pub fn l3(&self) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(|cache| cache.resource.is_l3())
    }

    /// How many groups there can be beside the default one: the kernel takes the least of all resources.
    pub fn groups(&self) -> u32 {
        let caches = self.caches.iter().map(|cache| cache.groups);
        let all = caches.chain(self.bandwidth.as_ref().map(|bandwidth| bandwidth.groups));
        all.min().unwrap_or(0).saturating_sub(1)
    }

    /// The same as a core policy sees it; `None` if the last-level cache cannot be partitioned.
    pub fn cache_control(&self) -> Option<CacheControl> {
        let caches = || self.l3();
        let ways = caches().map(|cache| cache.ways.count_ones()).min()?;
        Some(CacheControl {
            ways: u8::try_from(ways).unwrap_or(u8::MAX),
            least: caches()
                .map(|cache| cache.least.max(1))
                .max()
                .map_or(1, |least| least as u8),
            // A policy counts ways and the kernel counts the lowest run of them: what lies apart is for a least of 1.
            sparse: caches().all(|cache| cache.sparse && cache.least <= 1),
        })
    }
}

/// One directory in `info`.
struct Info<'a, F> {
    files: &'a F,
    directory: &'a Path,
}

impl<F: Files> Info<'_, F> {
    fn text(&self, name: &str) -> Result<String, Error> {
        let path = self.directory.join(name);
        let text = self.files.read(&path);
        text.map_err(|cause| Error::read(&path, cause))
    }

    fn number(&self, name: &str, radix: u32) -> Result<u64, Error> {
        let text = self.text(name)?;
        let expected = match radix {
            16 => "a hexadecimal number",
            _ => "a decimal number",
        };
        u64::from_str_radix(text.trim(), radix)
            .map_err(|_| Error::malformed(&self.directory.join(name), &text, expected))
    }

    fn decimal(&self, name: &str) -> Result<u32, Error> {
        let number = self.number(name, 10)?;
        u32::try_from(number).map_err(|_| {
            let path = self.directory.join(name);
            Error::malformed(&path, &number.to_string(), "a number below 2^32")
        })
    }

    fn cache(&self, resource: Resource) -> Result<Cache, Error> {
        let sparse_masks = self.files.read(&self.directory.join("sparse_masks"));
        Ok(Cache {
            resource,
            ways: self.number("cbm_mask", 16)?,
            least: self.decimal("min_cbm_bits")?,
            shareable: self.number("shareable_bits", 16)?,
            sparse: sparse_masks.is_ok_and(|text| text.trim() == "1"),
            groups: self.decimal("num_closids")?,
        })
    }

    fn bandwidth(&self, options: MountOptions) -> Result<Bandwidth, Error> {
        // AMD's delays are no percentages, so its kernel code says that they are not linear; on Intel, the kernel
        // offers linear ones only.
        let is_linear = self.decimal("delay_linear")? != 0;
        let (unit, most) = match (options.mba_mbps, is_linear) {
            (true, _) => (Unit::Mebibytes, u32::MAX),
            (false, true) => (Unit::Percent, 100),
            (false, false) => (Unit::EighthGigabytes, AMD_MOST),
        };
        let is_exact = unit == Unit::Mebibytes;
        Ok(Bandwidth {
            unit,
            least: if is_exact {
                1
            } else {
                self.decimal("min_bandwidth")?
            },
            most,
            step: if is_exact {
                1
            } else {
                self.decimal("bandwidth_gran")?.max(1)
            },
            groups: self.decimal("num_closids")?,
        })
    }

    fn monitoring(&self) -> Result<Monitoring, Error> {
        let features = self.text("mon_features")?;
        Ok(Monitoring {
            groups: self.decimal("num_rmids")?,
            features: features
                .lines()
                .map(|line| line.trim().to_owned())
                .collect(),
        })
    }
}

/// What stands for "no limit" on AMD, as the kernel's documentation shows it.
const AMD_MOST: u32 = 2048;
