//! The order of a program's levels, and which level may wait for which.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use core::fmt;

/// The most levels that an order can have: one bit each in a 64-bit word.
///
/// ```
/// use urgency_policy::order::{MAX_LEVELS, Order};
///
/// let names: Vec<String> = (0..=MAX_LEVELS).map(|number| format!("level {number}")).collect();
/// let names: Vec<&str> = names.iter().map(String::as_str).collect();
/// assert!(Order::new(&names[..MAX_LEVELS], &[]).is_ok());
/// assert!(Order::new(&names, &[]).is_err());
/// ```
pub const MAX_LEVELS: usize = u64::BITS as usize;

/// May code at the level of rank `waiter` wait for work at the level of rank `awaited`?
///
/// `above[i]` has bit `j` set if the level of rank `j` is more urgent than the level of rank `i`, as [`Order::masks`]
/// returns it.
///
/// # Panics
///
/// If `waiter` is not a rank of the order.
#[inline]
pub fn may_wait(above: &[u64], waiter: u8, awaited: u8) -> bool {
    let at_least = above[usize::from(waiter)] | 1 << waiter;
    at_least.checked_shr(u32::from(awaited)).unwrap_or(0) & 1 == 1
}

/// Named levels with their partial order.
///
/// A program names its levels and says which are more urgent than which. The result is a partial
/// order, given by *edges* (`above` is more urgent than `below`); it need not be total. Two things
/// follow from it:
///
/// - **Ranks.** Workers need one number per level, so the order is extended to a total one: a
///   topological order, rank 0 first. It is *stable*: of all levels that could come next, the one
///   that was declared first does. So a program whose declaration is already sorted gets its ranks
///   in the order of declaration, and adding an edge that was true anyway changes nothing.
/// - **The rule of waiting.** Code at one level may wait for work at another only if that work is at
///   least as urgent: the same level, or above it in the *partial* order. Everything else is a
///   priority inversion: the waiter, which is more urgent, would progress only as fast as less
///   urgent work does. Levels that the program left incomparable may not wait for each other, though
///   their ranks differ: the program has not said that either may delay the other. (Fairness in responsive parallelism,
///   section 2; the rule is PriML's, from its type system.)
///
/// The rule is answered from the transitive closure, one `u64` per level: bit `j` of the mask of
/// level `i` says that level `j` is above level `i`, both by rank. Masks are plain data so that a
/// macro can compute them at compile time and a runtime can look them up in a static table; both
/// ask [`may_wait`].
///
/// # Algorithm
///
/// Declared levels are numbered in the order of declaration, and each keeps the mask of the levels directly above it.
/// Repeat: take the first level that is not placed and has nothing unplaced above it, and give it the next rank. Its
/// closure is the union of the levels directly above it and of their closures, which are known. If no level can be
/// taken, each of the rest has another one of the rest above it. Walking up from any of them must come back to a level
/// already visited, and that is the cycle to report. With at most 64 levels the quadratic search is some thousand
/// steps.
///
/// ```
/// use urgency_policy::order::Order;
///
/// let order = Order::new(
///     &["interactive", "query", "batch", "audit"],
///     &[("interactive", "query"), ("query", "batch"), ("interactive", "audit")],
/// )?;
/// let rank = |name| order.rank(name).expect("a declared level");
/// assert!(order.may_wait(rank("batch"), rank("interactive")));
/// assert!(!order.may_wait(rank("interactive"), rank("batch")));
/// assert!(!order.may_wait(rank("audit"), rank("query")), "the program did not order them");
/// # Ok::<(), urgency_policy::order::OrderError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// By rank.
    names: Vec<String>,
    /// By rank: the levels above.
    above: Vec<u64>,
}

impl Order {
    /// The order of the named `levels` in which each edge `(above, below)` says that `above` is more
    /// urgent than `below`.
    ///
    /// # Errors
    ///
    /// If there is no level or more than [`MAX_LEVELS`], if a name occurs twice, if an edge has a
    /// name that is not among the levels, or if the edges form a cycle.
    pub fn new<S: AsRef<str>>(levels: &[S], edges: &[(S, S)]) -> Result<Self, OrderError> {
        if levels.is_empty() {
            return Err(OrderError::NoLevel);
        }
        if levels.len() > MAX_LEVELS {
            return Err(OrderError::TooMany {
                given: levels.len(),
            });
        }
        let position = |name: &str| levels.iter().position(|l| l.as_ref() == name);
        for (number, level) in levels.iter().enumerate() {
            if position(level.as_ref()) != Some(number) {
                return Err(OrderError::Duplicate {
                    name: level.as_ref().to_owned(),
                });
            }
        }
        let declared = |name: &S| {
            position(name.as_ref()).ok_or_else(|| OrderError::Unknown {
                name: name.as_ref().to_owned(),
            })
        };
        let mut directly_above = [0u64; MAX_LEVELS];
        for (above, below) in edges {
            directly_above[declared(below)?] |= 1 << declared(above)?;
        }
        let directly_above = &directly_above[..levels.len()];
        let name = |number: usize| levels[number].as_ref().to_owned();
        match sort(directly_above) {
            Ok(sorted) => Ok(Order {
                above: closure(directly_above, &sorted),
                names: sorted.into_iter().map(name).collect(),
            }),
            Err(unplaced) => Err(OrderError::Cycle {
                names: cycle(directly_above, unplaced)
                    .into_iter()
                    .map(name)
                    .collect(),
            }),
        }
    }

    /// The number of levels, 1 to [`MAX_LEVELS`].
    #[expect(clippy::len_without_is_empty, reason = "an order is never empty")]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The names of the levels by rank, the most urgent first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// For each level, by rank, the mask of the levels that are more urgent.
    pub fn masks(&self) -> &[u64] {
        &self.above
    }

    /// The rank of the level with this name.
    pub fn rank(&self, name: &str) -> Option<u8> {
        self.names.iter().position(|n| n == name).map(as_rank)
    }

    /// May code at the level of rank `waiter` wait for work at the level of rank `awaited`? Yes if
    /// it is the same level or one above it.
    ///
    /// # Panics
    ///
    /// If `waiter` is not below [`len`](Self::len).
    pub fn may_wait(&self, waiter: u8, awaited: u8) -> bool {
        may_wait(&self.above, waiter, awaited)
    }
}

fn as_rank(number: usize) -> u8 {
    u8::try_from(number).expect("an order has at most 64 levels")
}

/// The declared numbers in a stable topological order, or the mask of the levels that have no place.
fn sort(directly_above: &[u64]) -> Result<Vec<usize>, u64> {
    let mut sorted = Vec::with_capacity(directly_above.len());
    let mut unplaced = u64::MAX >> (MAX_LEVELS - directly_above.len());
    while unplaced != 0 {
        let next = (0..directly_above.len())
            .find(|&n| unplaced >> n & 1 == 1 && directly_above[n] & unplaced == 0)
            .ok_or(unplaced)?;
        unplaced &= !(1 << next);
        sorted.push(next);
    }
    Ok(sorted)
}

/// The transitive closure, by rank.
fn closure(directly_above: &[u64], sorted: &[usize]) -> Vec<u64> {
    let mut above = Vec::with_capacity(sorted.len());
    for number in sorted {
        let mask = (0..above.len())
            .filter(|&rank| directly_above[*number] >> sorted[rank] & 1 == 1)
            .fold(0, |mask, rank| mask | 1 << rank | above[rank]);
        above.push(mask);
    }
    above
}

/// A cycle among the declared numbers in `unplaced`, each of which has one of them above it. Each
/// level of the result is above the next, and the last is above the first.
fn cycle(directly_above: &[u64], unplaced: u64) -> Vec<usize> {
    let mut path = Vec::new();
    let mut at = unplaced.trailing_zeros() as usize;
    loop {
        if let Some(start) = path.iter().position(|&seen| seen == at) {
            path.drain(..start);
            path.reverse();
            let first_declared = (0..path.len()).min_by_key(|&i| path[i]).unwrap_or(0);
            path.rotate_left(first_declared);
            return path;
        }
        path.push(at);
        at = (directly_above[at] & unplaced).trailing_zeros() as usize;
    }
}

/// Why a list of levels and edges is no order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderError {
    /// There is no level.
    NoLevel,
    /// There are more than [`MAX_LEVELS`] levels.
    TooMany {
        /// How many there are.
        given: usize,
    },
    /// Two levels have the same name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// An edge has a name that is not among the levels.
    Unknown {
        /// The name.
        name: String,
    },
    /// Some levels are, by transitivity, more urgent than themselves.
    Cycle {
        /// Each level is above the next, and the last is above the first; no name occurs twice.
        names: Vec<String>,
    },
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderError::NoLevel => f.write_str("there is no level: name at least one"),
            OrderError::TooMany { given } => write!(
                f,
                "{given} levels are too many: there can be at most {MAX_LEVELS}"
            ),
            OrderError::Duplicate { name } => {
                write!(f, "two levels are named `{name}`: a level is declared once")
            }
            OrderError::Unknown { name } => write!(
                f,
                "`{name}` is ordered but is not among the levels: declare it, or correct the name"
            ),
            OrderError::Cycle { names } => {
                f.write_str("the levels form a cycle, so none of them comes first: ")?;
                for name in names {
                    write!(f, "`{name}` > ")?;
                }
                let first = names.first().map_or("", String::as_str);
                write!(f, "`{first}`; leave one of these `>` out")
            }
        }
    }
}

impl core::error::Error for OrderError {}

#[cfg(test)]
mod tests;
