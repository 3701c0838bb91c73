//! The protocols: small types by which threads hand things to each other without locks, or almost.
//!
//! Each is a file with its states, rules and named races on top, and its loom model at the end or in a file beside it.
//! Three types have no model, since one thread at a time has them: [`child_memory`] is a stack's own, and [`forked`]
//! and [`lent`] are handed over by a deque or a latch, which have models. All know the primitives and nothing else of
//! the library. They are compiled under `--cfg urgency_loom` as well, where little else is (`ci/loom.sh`). A protocol
//! that belongs to one type of another room is with that type: a task's state (`tasks/state.rs`), a descriptor's
//! readiness (`reactor/readiness.rs`), the lists of `sync`.
//!
//! - *Which stack has a worker*: [`attention`], [`suspension`], [`mailbox`], [`idle`], [`crew`]; where no thread can be
//!   had: [`asking`]; on which processor: [`places`], [`home`]; and which thread decides between jobs: [`turn`].
//! - *What there is to do*: [`ready`], [`groups`], [`pace`], [`served`], [`ring`], [`deque`] with its [`fence`],
//!   [`pooled`], [`forked`], [`lent`], [`child_memory`], [`latch`], [`countdown`], [`inboxes`],
//!   [`occupied`]; and how urgent code and what was stolen from it is:
//!   [`code_level`], [`awaited_forks`].
//! - *Events*: [`pollers`], [`poll_mode`].
//! - *Late work*: [`relief_timer`], [`alarm`], [`demotion`]; what late work runs [`beside`] the workers.
//! - *What several receive*: [`portions`].
//! - *Jobs*: [`cancel`], [`trial`]. *Ends*: [`door`], [`asked_back`].
//!
//! Two protocols are made of several of these, and have a model here: a worker's way from job to job
//! (`change_of_job_loom.rs`), and the seats that wait (`reserved_seats_loom.rs`).
//!
//! What one thread alone may do of a protocol is a method of [`Own`](own::Own).

pub(crate) mod alarm;
pub(crate) mod asked_back;
pub(crate) mod asking;
pub(crate) mod attention;
pub(crate) mod awaited_forks;
pub(crate) mod beside;
pub(crate) mod cancel;
pub(crate) mod child_memory;
pub(crate) mod code_level;
pub(crate) mod countdown;
pub(crate) mod crew;
pub(crate) mod demotion;
pub(crate) mod deque;
pub(crate) mod door;
pub(crate) mod fence;
pub(crate) mod forked;
pub(crate) mod groups;
pub(crate) mod home;
pub(crate) mod idle;
pub(crate) mod inboxes;
pub(crate) mod latch;
pub(crate) mod lent;
pub(crate) mod mailbox;
pub(crate) mod occupied;
pub(crate) mod own;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod poll_mode;
pub(crate) mod pollers;
pub(crate) mod pooled;
pub(crate) mod portions;
pub(crate) mod ready;
pub(crate) mod relief_timer;
pub(crate) mod ring;
pub(crate) mod served;
pub(crate) mod suspension;
pub(crate) mod trial;
pub(crate) mod turn;

#[cfg(all(test, urgency_loom))]
mod change_of_job_loom;
#[cfg(all(test, urgency_loom))]
mod reserved_seats_loom;
