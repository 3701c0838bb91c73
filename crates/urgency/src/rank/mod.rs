//! Levels as data: a level as a number, the order of a program, the table of a runtime.
//!
//! The types that programs use (a level as a type, the proof of a level) are in `level/`, far above: the scheduler
//! knows levels as numbers only.

mod id;
mod order;
mod table;

pub use id::LevelId;
pub use order::{Levels, OneLevel};
pub(crate) use table::LevelTable;
pub use table::WrongOrder;
