//! The workers' shares between levels: what each worker serves, if the schedule is not simply prompt.
//!
//! A schedule between levels is policy code (`urgency_policy::level`). It gives each worker a *seat*, and the worker
//! asks its seat which level to serve. Under prompt, the default, all seats are the prompt one and the schedule is
//! never asked.
//!
//! Read [`seats`] first: when the schedule is asked, and how a worker gets its seat; and [`seating`]: what is written
//! down of it. Then [`rounds`]: what a round's level is charged; [`turning`]: the seats of a job that lacks workers;
//! [`reserved_seats`]: a seat may wait for its level, and a wake-up then goes to a worker that serves it.
//!
//! A worker that is idle and gets another seat is started by [`machine`](super::machine), if [`serve`](super::serve)
//! has work for that seat. A donor that misses forks of its level asks for them there, too.

mod reserved_seats;
mod rounds;
mod seating;
pub(super) mod seats;
mod turning;
