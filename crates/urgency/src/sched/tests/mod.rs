//! What an operation of a program costs the scheduler, counted: [`steps`] counts how many workers are looked at,
//! [`costs`] are the tests.

mod costs;
pub(super) mod steps;
