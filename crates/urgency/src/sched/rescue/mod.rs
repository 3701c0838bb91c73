//! Work that waits gets a worker, whatever the stacks that hold the workers do.
//!
//! A stack in user code cannot be made to stop. It can be asked to check in, and lose its worker if it does not. What
//! is decided here is which stacks are asked, which lose their workers, and what becomes of their threads.
//!
//! Read [`relief`] first: what an expiry of the relief timer looks at, and the four rules. Then [`silence`]: what it
//! sees of a stack that it has asked; [`revoke`]: how a worker is taken, and how it comes back; [`overrunning`]: the
//! stacks that go on without one, and [`going_on`] their names; [`hidden`]: forks that no worker sees; [`turns`]: when
//! brief work goes between long equals; [`demotion`]: threads are lowered; [`reserve`]: where there are workers beyond
//! the processors, one of these comes before any stack loses its own.
//!
//! An expiry also ends periods ([`share`](super::share)), divides the workers among jobs ([`cores`](super::cores)),
//! follows what the process may use ([`machine`](super::machine)) and shows forks that are held back
//! ([`forks`](super::forks)). What waits at which level it asks [`serve`](super::serve).

pub(super) mod demotion;
mod going_on;
pub(super) mod hidden;
pub(super) mod overrunning;
pub(super) mod relief;
mod reserve;
pub(super) mod revoke;
pub(super) mod silence;
pub(super) mod turns;
