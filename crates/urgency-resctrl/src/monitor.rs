//! What a group's processors have in the cache, and what they moved to and from memory.

use crate::{Error, Files, Partition};
use std::path::Path;
use urgency_policy::cores::JobId;

/// What a counter says; see [`Counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// So many bytes.
    Bytes(u64),
    /// The hardware has no value at the moment: ask again later.
    Unavailable,
    /// No hardware counter is assigned to the group: all are in use by others.
    Unassigned,
    /// The hardware reports an error.
    Error,
}

/// The counters of one group in one last-level cache; see [`Partition::counters`]. `None`: this machine does not have
/// that counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// `llc_occupancy`: bytes in the cache now.
    pub occupancy: Option<Reading>,
    /// `mbm_total_bytes`: to and from all memory; it only grows.
    pub total: Option<Reading>,
    /// `mbm_local_bytes`: to and from this cache's own memory; it only grows.
    pub local: Option<Reading>,
}

impl<F: Files> Partition<F> {
    /// The counters of the job's group, by the name of the cache (`mon_L3_00`); of all other processors for `None`, and
    /// for a job without a group.
    ///
    /// ```
    /// use urgency_resctrl::{Error, Machine, Partition, Reading, mounted};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let (files, options) = match mounted() {
    ///     Ok(mounted) => mounted,
    ///     Err(missing) => return Ok(println!("{missing}")),
    /// };
    /// let machine = Machine::read(&files, options)?;
    /// println!("{} group(s)", machine.groups());
    /// let partition = Partition::open(files, options, "example")?;
    /// assert_eq!(partition.group(urgency_policy::cores::JobId(1)), None, "nothing was applied");
    /// for (cache, counters) in partition.counters(None)? {
    ///     match counters.occupancy {
    ///         Some(Reading::Bytes(bytes)) => println!("{cache}: {bytes} bytes"),
    ///         reading => println!("{cache}: {reading:?}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If a counter cannot be read, or says what no documentation says.
    pub fn counters(&self, job: Option<JobId>) -> Result<Vec<(String, Counters)>, Error> {
        let Some(monitoring) = &self.machine().monitoring else {
            return Ok(Vec::new());
        };
        let has = |feature: &str| monitoring.features.iter().any(|has| has == feature);
        let group = job.and_then(|job| self.group(job)).unwrap_or("");
        let directory = Path::new(group).join("mon_data");
        let caches = self.files().directories(&directory);
        let mut caches = caches.map_err(|cause| Error::read(&directory, cause))?;
        caches.retain(|name| name.starts_with("mon_L3_"));
        caches.sort();
        let counters = caches.into_iter().map(|cache| {
            let counter = |feature: &str| {
                let path = directory.join(&cache).join(feature);
                has(feature).then(|| self.reading(&path)).transpose()
            };
            let counters = Counters {
                occupancy: counter("llc_occupancy")?,
                total: counter("mbm_total_bytes")?,
                local: counter("mbm_local_bytes")?,
            };
            Ok((cache, counters))
        });
        counters.collect()
    }

    fn reading(&self, path: &Path) -> Result<Reading, Error> {
        let text = self.read(path)?;
        Ok(match text.trim() {
            "Unavailable" => Reading::Unavailable,
            "Unassigned" => Reading::Unassigned,
            "Error" => Reading::Error,
            bytes => Reading::Bytes(bytes.parse().map_err(|_| {
                Error::malformed(
                    path,
                    bytes,
                    "a number of bytes, Unavailable, Unassigned or Error",
                )
            })?),
        })
    }
}
