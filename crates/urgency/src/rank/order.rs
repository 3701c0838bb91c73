//! An order of levels as constants of a type: what a [`LevelTable`](super::table::LevelTable) copies.

/// The levels of a program with their partial order. [`levels!`](crate::levels) implements it.
///
/// ```
/// use urgency::level::{Levels, OneLevel};
///
/// urgency::levels! { App: Interactive > Batch }
///
/// assert_eq!((App::NAME, App::NAMES), ("App", &["Interactive", "Batch"][..]));
/// assert_eq!(App::ABOVE, [0b00, 0b01], "above `Batch` there is the level of rank 0");
/// assert_eq!(OneLevel::NAMES, ["Normal"], "of a program without levels");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of levels",
    label = "this needs the name before the colon in `levels! {{ App: Interactive > Batch }}`"
)]
pub trait Levels: 'static {
    /// The name of the order.
    const NAME: &'static str;
    /// The names of the levels by rank, most urgent first; 1 to 64 of them.
    const NAMES: &'static [&'static str];
    /// By rank: bit `j` of entry `i` is set if the level of rank `j` is more urgent than the level of rank `i`. As long
    /// as [`NAMES`](Self::NAMES), and transitively closed.
    const ABOVE: &'static [u64];
}

/// The order of a runtime that was built without [`levels`](crate::runtime::Builder::levels): one
/// level, [`Normal`](crate::level::Normal).
#[derive(Clone, Copy, Debug)]
pub enum OneLevel {}

impl Levels for OneLevel {
    const NAME: &'static str = "OneLevel";
    const NAMES: &'static [&'static str] = &["Normal"];
    const ABOVE: &'static [u64] = &[0];
}
