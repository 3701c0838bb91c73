//! What other rooms ask of the scheduler.
//!
//! Tasks know it by a trait, and other rooms are above it. So what they need of a job as a whole has a door, and what
//! is behind the door is in other folders. Each file can be read by itself: [`schedule`]: a task is admitted, becomes
//! ready, is raised; [`caller`]: what the scheduler knows of the calling code; [`capacities`]: the limits of admission,
//! kept for [`crate::life`]; [`shutdown`]: the end of a runtime, and the account of what was left; [`times`]: where the
//! time of the workers went, for statistics.
//!
//! A task that becomes ready goes to [`serve`](super::serve). A thread that waits for the end of a runtime blocks as
//! others do ([`switch`](super::switch)).

pub(crate) mod caller;
pub(crate) mod capacities;
mod schedule;
pub(crate) mod shutdown;
pub(crate) mod times;
