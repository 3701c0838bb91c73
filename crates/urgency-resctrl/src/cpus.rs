//! A set of processors, as the kernel writes it: `0-3,8`.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// A set of processors, by the kernel's numbers.
///
/// ```
/// use urgency_resctrl::Cpus;
///
/// let mut cpus: Cpus = "0-3".parse()?;
/// assert!(cpus.remove(3) && cpus.insert(5));
/// assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 1, 2, 5]);
/// assert_eq!(cpus.to_string(), "0-2,5");
/// # Ok::<(), urgency_resctrl::NotCpus>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus(BTreeSet<usize>);

/// Above every number that a kernel of today can be built for (8,192 processors).
const BOUND: usize = 1 << 16;

impl Cpus {
    /// No processor.
    pub const fn new() -> Self {
        Cpus(BTreeSet::new())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this processor is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// Adds a processor; `false` if it was in the set.
    pub fn insert(&mut self, cpu: usize) -> bool {
        self.0.insert(cpu)
    }

    /// Takes a processor out; `false` if it was not in the set.
    pub fn remove(&mut self, cpu: usize) -> bool {
        self.0.remove(&cpu)
    }

    /// The processors, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The processors that are in both sets.
    ///
    /// ```
    /// use urgency_resctrl::Cpus;
    ///
    /// let (a, b): (Cpus, Cpus) = ("0-3".parse()?, "2-5".parse()?);
    /// assert_eq!(a.both(&b).to_string(), "2-3");
    /// # Ok::<(), urgency_resctrl::NotCpus>(())
    /// ```
    #[must_use]
    pub fn both(&self, other: &Self) -> Self {
        Cpus(self.0.intersection(&other.0).copied().collect())
    }
}

impl FromIterator<usize> for Cpus {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Cpus(cpus.into_iter().collect())
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut rest = self.iter().peekable();
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|&next| next == last + 1) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

/// A text that is no list of processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCpus(String);

impl fmt::Display for NotCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no list of processors; it is numbers below {BOUND} and ranges with commas between them, like 0-3,8",
            self.0
        )
    }
}

impl std::error::Error for NotCpus {}

impl FromStr for Cpus {
    type Err = NotCpus;

    fn from_str(text: &str) -> Result<Self, NotCpus> {
        let wrong = || NotCpus(text.trim().to_owned());
        let number = |text: &str| text.parse().ok().filter(|&cpu: &usize| cpu < BOUND);
        let mut cpus = Cpus::new();
        let parts = text.trim().split(',').map(str::trim);
        for part in parts.filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = number(first).zip(number(last)).ok_or_else(wrong)?;
            if first > last {
                return Err(wrong());
            }
            cpus.0.extend(first..=last);
        }
        Ok(cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_that_is_no_list_is_refused_and_named() {
        for text in [
            "x",
            "1-",
            "-1",
            "3-1",
            "1,,2",
            "99999999",
            "0-9999999999",
            "1 2",
        ] {
            let error = text.parse::<Cpus>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("0-3,8"), "{error}");
        }
    }

    #[test]
    fn the_empty_list_is_no_processor() {
        assert_eq!("\n".parse(), Ok(Cpus::new()));
        assert_eq!(Cpus::new().to_string(), "");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in proptest::collection::btree_set(0usize..200, 0..40)) {
            let cpus = Cpus(cpus);
            prop_assert_eq!(cpus.to_string().parse(), Ok(cpus));
        }
    }
}
