//! Aging where a level's queue is in shards: when a worker must help another one.
//!
//! A shard is one or more FIFO lists. A worker takes from its own shard, at most [`FREE`] entries in a row. Then it
//! looks at the lists of all shards ([`lagging`]). The runtime's `protocol/pace.rs` says the rules, and proves what
//! follows: before an entry is taken, each worker takes at most `FREE` entries that became ready after it was put in,
//! and one more of each other list.

/// How many entries a worker takes between two looks at the lists.
pub const FREE: u32 = 64;

/// Which of the lists lags, if one does: a worker that has taken something as young as `youngest` must take of that one
/// next. Each list that has an entry says the youngest stamp that it has given. `None`: the worker may take [`FREE`]
/// entries as it likes.
///
/// ```
/// use urgency_policy::pool::{FREE, lagging};
///
/// assert_eq!(FREE, 64);
/// let lists = [("a", 70), ("b", 50), ("c", 60)];
/// assert_eq!(lagging(65, lists.into_iter()), Some(("b", 50)), "it has given the oldest");
/// assert_eq!(lagging(50, lists.into_iter()), None);
/// ```
#[inline]
pub fn lagging<L>(youngest: u64, lists: impl Iterator<Item = (L, u64)>) -> Option<(L, u64)> {
    let oldest = lists.min_by_key(|&(_, given)| given);
    oldest.filter(|&(_, given)| given < youngest)
}
