//! The loop of a thread that holds a worker: work gets in, is found, and runs.
//!
//! Read [`run`] first: the loop, and the scheduling point. `run/forks.rs` has the forks that a stack runs: one that it
//! stole, what that left in the deque, its own oldest. Then [`insert`]: how work gets in, is announced, and wakes
//! workers; [`find`]: a worker's next work; [`search`]: what it does when there is none; [`idle_spin`]: for how long;
//! [`turns`]: how brief work goes between long equals.
//!
//! Which level is served [`share`](super::share) says, and which work of it [`order`](super::order). A fork asks
//! [`forks`](super::forks) whether to be published. If work is inserted and no worker is idle,
//! [`rescue`](super::rescue) sets its timer. The loop ends where [`switch`](super::switch) gives the worker to another
//! thread, or [`cores`](super::cores) to another job. Between two polls it looks at [`poll`](super::poll).

pub(super) mod find;
pub(super) mod idle_spin;
mod insert;
pub(crate) mod run;
mod search;
pub(super) mod turns;
