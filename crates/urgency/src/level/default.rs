//! The level of programs that declare none.

use super::{AtLeast, Level, OneLevel};

/// The only level of [`OneLevel`]. It lets level-polymorphic code run in a program that has no levels
/// of its own.
///
/// ```
/// use urgency::level::{Cx, Level, Normal};
///
/// fn answer<L: Level>(_: Cx<L>) -> u32 {
///     42
/// }
/// assert_eq!(Normal.spawn_fn(|cx| answer(cx)).erase().get()?, 42);
/// # Ok::<(), urgency::JoinError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Normal;

impl Level for Normal {
    type Order = OneLevel;
    const LEVEL: Self = Normal;
    const RANK: u8 = 0;
    const NAME: &'static str = "Normal";
}

#[diagnostic::do_not_recommend]
impl AtLeast<Normal> for Normal {}
