//! Which workers run, and on which processors.
//!
//! A core set has a fixed number of workers. Only as many run as there is work for, and as the process may use. What is
//! decided here is which of them comes out of the idle set for new work, and where its code then runs.
//!
//! Read [`claim`] first: a worker comes out of the idle set, and goes into it. Then [`entitled`]: how many workers the
//! process may use now; [`place`]: where there is a processor for each worker, on one of its own; [`pins`]: on the only
//! one, if workers are pinned.
//!
//! Claims ask [`share`](super::share) which idle worker serves a level. Where there is none, the core policy is asked
//! for one ([`cores`](super::cores)), and [`rescue`](super::rescue) takes one from a stack that overruns, or sets its
//! timer. A thread that releases a worker looks once more at what [`serve`](super::serve) and [`forks`](super::forks)
//! offer.

pub(super) mod claim;
pub(crate) mod entitled;
pub(crate) mod pins;
mod place;
