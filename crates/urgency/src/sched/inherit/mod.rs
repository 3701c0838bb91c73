//! What code on a stack has from other code: from what started it, and from more urgent code that waits for it.
//!
//! The first are deadline and locals ([`crate::inherit`]), in [`inheriting`]: meanwhile the thread has them, and so
//! does its stack, for what is forked inside. The second is a level, in [`proxy`]: a task stands for code that belongs
//! to no task, so that more urgent code can raise it while it holds a lock. And in [`thieves`]: what raised code waits
//! for is raised where other stacks run it. Each file can be read by itself.
//!
//! A proxy that is raised raises its stack as [`doors`](super::doors) raises a task, and its name is looked up in the
//! list of stacks in [`switch`](super::switch).

pub(crate) mod inheriting;
pub(super) mod proxy;
pub(crate) mod thieves;
