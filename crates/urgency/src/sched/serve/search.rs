//! What a worker does when nothing is ready: it searches, then it becomes idle.
//!
//! 1. The worker becomes a *searcher*. It asks every running stack to share forks, looks at the poller without waiting,
//!    and keeps looking for a while (see `IdleSpin`). At most one searcher spins: a second one would only take the
//!    caches from the first. A worker that would be in reserve (`idle.rs`) looks once, and for tasks and stacks only.
//!    So does a worker while another job has work (`cores/`). One that serves a crowd of peers leaves the poller's look
//!    to its thread, which goes there next (`reactor/crowd.rs`).
//! 2. Then it becomes idle, asks once more, and looks once more (the protocol of `Idle`). A stack that did not answer
//!    is in a long leaf: the worker comes back and takes from it what is private (`Deque::steal` with `raise`). Every
//!    running stack keeps its SHARE request, or has no room: the next fork wakes a worker, or is held back
//!    (`held_back.rs`).
//! 3. A fork that was pushed while the worker asked may be seen by nobody: its stack has not seen the request, and the
//!    worker has not seen the fork. A barrier on all processors would tell, and costs each of them 6 to 17 µs whenever
//!    a worker goes idle beside a stack that forks. So the worker leaves that to the relief timer, whose expiry makes
//!    the barrier and looks: such a fork waits 4 ms at most, and its stack usually comes to it long before.

use crate::{
    protocol::{attention::SHARE, demotion::USUAL, deque::Stolen, fence},
    sched::{
        StolenFork, Work,
        core::Core,
        job::Job,
        machine::claim::Want,
        stack::{Me, Stack},
        worker::{NO_LEVEL, Worker},
    },
    sys::{chaos, clock, thread},
};
use std::{hint, ptr, sync::atomic::Ordering};

/// A turn of the search loop that took this long, in nanoseconds: another thread may have wanted the processor, or the
/// machine itself. The kernel knows which.
const PREEMPTED: f64 = 5_000.0;

/// How many turns of the search loop pass between two rounds of requests.
const TURNS_PER_ROUND: u32 = 64;

impl Job {
    #[cold]
    pub(crate) fn find_cold(
        &self,
        me: Me<'_>,
        worker: &Worker,
        inbox: Option<usize>,
    ) -> Option<Work> {
        #[cfg(test)]
        let _aside = crate::sched::tests::steps::Aside::new();
        worker.counters.scheduling.add(worker.lap());
        worker.set_level(NO_LEVEL);
        let mut raise = false;
        loop {
            if self.seats.waits() {
                // Tasks of a level that the seat does not serve.
                self.flush_ring(&me);
            }
            self.searchers.start(&self.core.idle);
            let found = self.search(me, worker, inbox, raise);
            let ticks = worker.lap();
            worker.counters.searching.add(ticks);
            if let Some((work, by_spinning)) = found {
                self.searchers.stop(&self.core.idle);
                self.core.threads.idle_spin.found_after(ticks, by_spinning);
                self.wake_rest(&me);
                self.watch_the_rest();
                return Some(work);
            }
            self.give_up(worker);
            if !self.is_anything_left(Some(me), worker) && !self.pinned.waits_in(inbox) {
                self.look_soon_at_overrunning();
                return None;
            }
            raise = true;
            let Some(claimed) = self.claim(Want::Rather(worker.id)) else {
                // The thread that took it may have done so for something else than what insertions left to this
                // searcher.
                self.arm_relief();
                return None;
            };
            if claimed.id != worker.id {
                // Another thread started our worker already; the one that we got instead is as good.
                self.start(claimed);
                return None;
            }
            // Another thread may have had the worker meanwhile. A stack that runs and is not its worker's holder is
            // asked for nothing, and what is in its ring is lost.
            me.hold(worker);
        }
    }

    /// While a worker searched, insertions left everything to it, the relief timer included; it took one
    /// entry. A worker that was started took one, too: it is the next in a chain of wake-ups that such a
    /// searcher began, and if no worker is idle, the last.
    pub(crate) fn watch_the_rest(&self) {
        if self.seats.waits() {
            self.watch_queued();
            self.arm_for_quantum();
        } else if !self.core.idle.is_any_hungry() {
            self.watch_queued();
            self.arm_for_rounds();
        }
    }

    /// Arms the relief timer if anything is queued.
    pub(crate) fn watch_queued(&self) {
        if !self.core.relief_timer.is_soon()
            && let Some(level) = self.most_urgent_queued()
        {
            self.arm_for(level);
        }
    }

    /// The look after a release: a thread that made work ready before the release saw no idle worker. Looks for hidden
    /// forks as well, behind a barrier: this look sees the fork of an owner that forked before it could see our
    /// request, and an owner that forks later sees the request.
    pub(crate) fn is_anything_left(&self, me: Option<Me<'_>>, worker: &Worker) -> bool {
        if self.seats.waits() {
            return self.is_anything_left_to(me, worker);
        }
        if self.pools.ready.levels_after_writes() != 0 {
            if self.most_urgent_offered().is_some() {
                return true;
            }
            // What a poll woke is still its owner's, unless that poll is long.
            self.watch_queued();
        }
        if !self.core.idle.is_any_hungry() || self.running_besides(me).next().is_none() {
            return false;
        }
        self.ask_for_forks(me, worker);
        // What is seen without the barrier is there.
        if self
            .running_besides(me)
            .any(|stack| !stack.deque.seems_empty())
        {
            return true;
        }
        // A poll that has forked nothing says so when it is asked, and its first fork sees that this worker is idle:
        // the fork says that it hides forks, then looks.
        let hides = |worker: &Worker| worker.level() != NO_LEVEL && worker.hides_forks();
        if !self.workers().any(hides) {
            return false;
        }
        if !self.leave_to_expiry() {
            fence::heavy();
        }
        self.running_besides(me)
            .any(|stack| !stack.deque.seems_empty())
    }

    /// Step 2 of the module's text; with `raise`, hidden forks first. Says with the work whether a spin has found it.
    fn search(
        &self,
        me: Me<'_>,
        worker: &Worker,
        inbox: Option<usize>,
        raise: bool,
    ) -> Option<(Work, bool)> {
        if raise && let Some(work) = self.steal_hidden(me, worker, NO_LEVEL) {
            return Some((work, false));
        }
        let is_hungry = self.seats.waits() || self.core.idle.is_any_hungry();
        if is_hungry {
            self.ask_for_forks(Some(me), worker);
        }
        let waits_at_once = self.core.waits_at_once(me);
        if !waits_at_once {
            self.look();
        }
        let spins = is_hungry
            && !waits_at_once
            && self.searchers.count() == 1
            && !self.closing.load(Ordering::Relaxed)
            && !self.is_another_waiting();
        let end = clock::now()
            + if spins {
                chaos::idle_spin(self.core.threads.idle_spin.ticks())
            } else {
                0
            };
        let mut turn = 0u32;
        let mut paused = false;
        // Asked of the kernel once the search has lasted for a round.
        let mut preemptions = None;
        let mut now = clock::now();
        loop {
            if let Some(work) = self.seen_by_searcher(me, worker, inbox, is_hungry) {
                let by_spinning = turn != 0 && !paused;
                return Some((work, by_spinning));
            }
            turn += 1;
            if turn.is_multiple_of(TURNS_PER_ROUND) {
                self.ask_for_forks(Some(me), worker);
                self.look();
                if self.is_another_waiting() {
                    return None;
                }
                if spins && preemptions.is_none() {
                    preemptions = thread::preemptions();
                }
                now = clock::now();
            }
            let before = std::mem::replace(&mut now, clock::now());
            if now.saturating_sub(before) > clock::ticks(PREEMPTED) {
                paused = true;
                if preemptions.is_some() && preemptions != thread::preemptions() {
                    self.core.threads.idle_spin.lose();
                    return None;
                }
            }
            if now >= end {
                if spins {
                    self.core.threads.idle_spin.found_nothing();
                }
                return None;
            }
            hint::spin_loop();
        }
    }

    /// A turn of the search loop.
    #[inline(always)]
    fn seen_by_searcher(
        &self,
        me: Me<'_>,
        worker: &Worker,
        inbox: Option<usize>,
        is_hungry: bool,
    ) -> Option<Work> {
        if self.pools.ready.levels() != 0
            && let Some(work) = self.next_ready(me, worker, u64::MAX)
        {
            return Some(work);
        }
        if let Some(forked) = self.pinned_fork(worker, inbox) {
            return Some(Work::Fork(forked));
        }
        if is_hungry && let Some(work) = self.steal_published(me, worker, NO_LEVEL) {
            return Some(work);
        }
        // A thread that clears the level's bit hides the level for a moment, and may lose its processor just then.
        // No other thread looks into this ring once the worker is released and has another holder.
        me.pop_ring().map(Work::Task)
    }

    /// A fork of a running stack at `least` or a more urgent level, for a stack that yields.
    pub(crate) fn steal_for_turn(&self, me: Me<'_>, worker: &Worker, least: u8) -> Option<Work> {
        self.steal_published(me, worker, least)
            .or_else(|| self.steal_hidden(me, worker, least))
    }

    /// A fork that a running stack has just published: its entry in the pool follows, but a searcher need not wait for
    /// it.
    fn steal_published(&self, me: Me<'_>, worker: &Worker, least: u8) -> Option<Work> {
        self.running_besides(Some(me))
            .filter(|stack| self.serves(worker, stack, least) && stack.deque.seems_public())
            .find_map(|stack| self.steal_from_running(worker, stack, least, false))
    }

    /// Asks every stack other than `me` that runs user code which `worker` would serve to publish forks.
    pub(crate) fn ask_for_forks(&self, me: Option<Me<'_>>, worker: &Worker) {
        let mut hides = false;
        self.running_besides(me)
            .filter(|stack| self.serves(worker, stack, NO_LEVEL))
            .for_each(|stack| {
                stack.attention.request(SHARE);
                hides |= !stack.deque.seems_empty();
            });
        if hides {
            self.watch_hidden();
        }
    }

    /// The stacks that run user code, other than `me`.
    pub(crate) fn running_besides<'a>(
        &'a self,
        me: Option<Me<'a>>,
    ) -> impl Iterator<Item = &'a Stack> {
        let me = me.map_or(ptr::null(), |me| ptr::from_ref(me.shared()));
        let busy = self.workers().filter(|w| w.level() != NO_LEVEL);
        let stacks = busy.filter_map(|w| self.core.holder(w));
        stacks.filter(move |stack| !ptr::eq(*stack, me) && stack.is_of(self))
    }

    fn steal_from_running(
        &self,
        worker: &Worker,
        stack: &Stack,
        least: u8,
        raise: bool,
    ) -> Option<Work> {
        let mut level = NO_LEVEL;
        // As in `steal_from_pool`.
        let admit = || {
            level = stack.level();
            level <= least && stack.is_of(self)
        };
        let (Stolen::Forked(taken, more), origin) = stack.steal(raise, admit) else {
            return None;
        };
        self.leave_rest(worker, stack, level, more);
        if raise {
            self.at(worker, level).raises.add(1);
            // Only half was raised, and its owner will not say that there is more.
            if !stack.deque.seems_empty() && self.core.idle.any() && self.core.idle.is_any_hungry()
            {
                self.start_idle_for(1 << level);
            }
        }
        self.at(worker, level).steals.add(1);
        Some(Work::Fork(StolenFork::new(taken, origin)))
    }

    /// A fork that its owner does not publish because the owner is in a long leaf.
    fn steal_hidden(&self, me: Me<'_>, worker: &Worker, least: u8) -> Option<Work> {
        self.running_besides(Some(me))
            .filter(|stack| self.serves(worker, stack, least) && !stack.deque.seems_empty())
            .find_map(|stack| self.steal_from_running(worker, stack, least, true))
    }

    /// Whether the worker would steal from this stack, for what needs a fork at `least` or a more urgent level.
    fn serves(&self, worker: &Worker, stack: &Stack, least: u8) -> bool {
        let level = stack.level();
        level <= least && self.seats.of(worker).serves_any(1 << level)
    }
}

impl Core {
    /// Whether the thread of `me` goes into the poller if no work is found in the process, and no peer is held up by
    /// that (`reactor/crowd.rs`): a wait there is a look. A thread with code on its stack, or a lowered one, waits
    /// elsewhere, and a provided one may.
    fn waits_at_once(&self, me: Me<'_>) -> bool {
        let driver = self.driver_if_made();
        driver.is_some_and(|driver| driver.serves_crowd())
            && me.task().is_none()
            && !me.is_too_low_for(USUAL)
            && !self.threads.are_provided()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Runtime, io::Async};
    use std::{
        io::{PipeWriter, Read as _, Write as _},
        sync::mpsc::channel,
        time::{Duration, Instant},
    };

    #[test]
    fn events_of_four_descriptors_are_a_crowds_and_events_of_one_are_not() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let (arrived, arrivals) = channel();
        let mut writers: Vec<PipeWriter> = Vec::new();
        for _ in 0..4 {
            let (reader, writer) = std::io::pipe().unwrap();
            let (reader, arrived) = (Async::new(reader).unwrap(), arrived.clone());
            let reads = async move {
                while let Ok(1) = reader.read_with(|mut pipe| pipe.read(&mut [0])).await {
                    arrived.send(()).unwrap();
                }
            };
            runtime.spawn(reads).detach();
            writers.push(writer);
        }
        let mut serve = |of: &[usize]| {
            for place in of {
                writers[*place].write_all(&[1]).unwrap();
                arrivals.recv_timeout(Duration::from_secs(20)).unwrap();
            }
            let driver = runtime.job().core.driver_if_made();
            driver.unwrap().serves_crowd()
        };
        // A message that comes before its reader waits again is no event.
        let mut until = |of: &[usize], is_crowd| {
            let limit = Instant::now() + Duration::from_secs(20);
            while serve(of) != is_crowd {
                assert!(Instant::now() < limit, "{of:?}");
            }
        };
        until(&[0, 1, 2, 3], true);
        until(&[1, 1], false);
        until(&[0, 1, 2, 3], true);
    }
}
