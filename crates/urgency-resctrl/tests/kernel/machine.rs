//! Machines, as their processors differ, and what can go wrong with them.

/// What a machine is made of.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Names of cache resources.
    pub caches: Vec<&'static str>,
    pub ways: u32,
    pub least: u32,
    pub sparse: bool,
    pub domains: Vec<u32>,
    pub bandwidth: Option<MemoryBandwidth>,
    pub closids: usize,
    /// 0: no monitoring.
    pub rmids: usize,
    pub cpus: usize,
}

impl Machine {
    /// A file of the directory `info`.
    pub(super) fn info(&self, path: &str) -> Option<String> {
        let machine = self;
        let (resource, file) = path.split_once('/')?;
        let closids = machine.closids.to_string();
        let is_cache = machine.caches.contains(&resource);
        Some(match (resource, file) {
            ("MB", "num_closids") => machine.bandwidth.map(|_| closids)?,
            ("MB", "min_bandwidth") => machine.bandwidth?.least().to_string(),
            ("MB", "bandwidth_gran") => machine.bandwidth?.step().to_string(),
            ("MB", "delay_linear") => {
                u8::from(machine.bandwidth? != MemoryBandwidth::Amd).to_string()
            }
            ("L3_MON", "num_rmids") => machine.rmids.to_string(),
            ("L3_MON", "mon_features") => {
                "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes".to_owned()
            }
            (_, "num_closids") if is_cache => closids,
            (_, "cbm_mask") if is_cache => format!("{:x}", (1u64 << machine.ways) - 1),
            (_, "min_cbm_bits") if is_cache => machine.least.to_string(),
            (_, "shareable_bits") if is_cache => "0".to_owned(),
            (_, "sparse_masks") if is_cache => u8::from(machine.sparse).to_string(),
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBandwidth {
    Percent { least: u64, step: u64 },
    Amd,
    SoftwareController,
}

impl MemoryBandwidth {
    pub fn most(self) -> u64 {
        match self {
            Self::Percent { .. } => 100,
            Self::Amd => 2048,
            Self::SoftwareController => u64::from(u32::MAX),
        }
    }

    pub(super) fn least(self) -> u64 {
        match self {
            Self::Percent { least, .. } => least,
            Self::Amd | Self::SoftwareController => 0,
        }
    }

    pub(super) fn step(self) -> u64 {
        match self {
            Self::Percent { step, .. } => step,
            Self::Amd | Self::SoftwareController => 1,
        }
    }
}

/// A Xeon: 11 ways, at least 2, percent by 10.
pub fn intel() -> Machine {
    Machine {
        caches: vec!["L3"],
        ways: 11,
        least: 2,
        sparse: false,
        domains: vec![0, 1],
        bandwidth: Some(MemoryBandwidth::Percent {
            least: 10,
            step: 10,
        }),
        closids: 4,
        rmids: 16,
        cpus: 8,
    }
}

/// An EPYC: 16 ways that may lie apart, several caches with gaps in their numbers, 1/8 GB/s.
pub fn amd() -> Machine {
    Machine {
        ways: 16,
        least: 1,
        sparse: true,
        domains: vec![0, 1, 8],
        bandwidth: Some(MemoryBandwidth::Amd),
        closids: 16,
        ..intel()
    }
}

/// The Xeon, mounted with `cdp`: half the classes.
pub fn code_and_data() -> Machine {
    Machine {
        caches: vec!["L3CODE", "L3DATA"],
        closids: 3,
        ..intel()
    }
}

/// The Xeon, mounted with `mba_MBps`.
pub fn software_controller() -> Machine {
    Machine {
        bandwidth: Some(MemoryBandwidth::SoftwareController),
        ..intel()
    }
}

/// What a test makes of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing happens.
    Refused,
    /// Permission is denied.
    Denied,
    /// So many bytes are taken, and these are in force.
    Part(usize),
}
