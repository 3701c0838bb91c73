//! Seats and quanta; which worker sleeps, and which is woken.

use super::{Engine, Event, State};
use crate::dag::NONE;
use urgency_policy::{
    level::{LevelPolicy, Period, Schedule, Seat, Use},
    pool::Layout,
};

impl Engine<'_> {
    /// The levels with work, as this worker sees them: all workers' levels, but with banks only its own.
    pub(super) fn sight(&self, me: usize) -> u64 {
        if self.is_dealt() {
            self.queues.own_levels(me)
        } else {
            self.with_work | self.queues.own_slots(me)
        }
    }

    pub(super) fn is_dealt(&self) -> bool {
        self.plan.is_some_and(|plan| plan.is_dealt)
    }

    /// A worker that starts, or whose round is over, gets another seat.
    pub(super) fn take_seat(&mut self, me: usize) {
        let (mut sight, workers) = (self.sight(me), self.workers.len());
        if self.workers[me].next != NONE {
            // What it is about to go on with is work of its level as well.
            sight |= 1 << self.workers[me].level;
        }
        let seat = self.schedule.seat(me, workers, sight);
        let seat = seat.with_ahead(self.accounts.ahead);
        if let Some(primary) = seat.primary()
            && let Some(level) = self.report.levels.get_mut(usize::from(primary))
        {
            level.rounds += 1;
        }
        self.workers[me].seat = seat;
        self.workers[me].seated_at = self.now;
    }

    /// A quantum is over. What runs counts as far as it has run, as in the runtime.
    pub(super) fn quantum(&mut self) {
        for me in 0..self.workers.len() {
            self.count_run(me);
        }
        let mut runs = vec![false; self.visible.len()];
        for worker in self.workers.iter().filter(|w| w.state == State::Busy) {
            runs[usize::from(worker.level)] = true;
        }
        let busy = self.busy_in_quantum.iter_mut().map(std::mem::take);
        let ready = self.visible.iter().zip(runs);
        let mut used: Vec<Use> = busy
            .zip(ready)
            .map(|(busy, (&visible, runs))| Use {
                busy,
                has_work: visible > 0 || runs,
            })
            .collect();
        if let Schedule::Adaptive(adaptive) = &self.schedule {
            used.resize(adaptive.desires().count(), Use::default());
        }
        let mut seats: Vec<Seat> = self.workers.iter().map(|w| w.seat).collect();
        self.schedule.reallocate(&used, &mut seats);
        for (worker, seat) in self.workers.iter_mut().zip(seats) {
            worker.seat = seat;
        }
        let drawn = |me: &u32| {
            let mut seat = self.workers[*me as usize].seat;
            seat.serve(self.with_work).is_some()
        };
        let wake: Vec<u32> = self.sleeping.iter().copied().filter(drawn).collect();
        for me in wake {
            self.wake(me as usize);
        }
        self.begin_quantum();
    }

    /// The quantum that begins now ends, unless that is later than any simulation takes.
    pub(super) fn begin_quantum(&mut self) {
        if let Period::AllWorkers(quantum) = self.period {
            let end = self.now.saturating_add(quantum);
            if end <= u64::MAX / 2 {
                self.at(end, 0, Event::Quantum);
            }
        }
    }

    pub(super) fn sleep(&mut self, me: usize) {
        if self.queues.own_slots(me) != 0 {
            for level in 0..self.dag.levels() as u8 {
                if let Some(vertex) = self.queues.slot(me, level).take() {
                    self.enqueue(me, vertex);
                }
            }
        }
        if self.is_dealt() {
            // What its seat keeps it from would be in nobody's sight.
            for level in 0..self.dag.levels() as u8 {
                while let Some(vertex) = self.queues.own(me, level).pop_front() {
                    self.queues.shared(level, 0).push_back(vertex);
                    self.publish(level, None);
                }
            }
        }
        let worker = &mut self.workers[me];
        if worker.state == State::Busy {
            self.idle += 1;
        }
        worker.state = State::Asleep(self.now);
        worker.failed = 0;
        worker.last = NONE;
        self.sleeping.push(me as u32);
    }

    /// A worker that has just gone to sleep still spins, and needs no wake-up.
    pub(super) fn wake(&mut self, me: usize) {
        let State::Asleep(since) = self.workers[me].state else {
            return;
        };
        let costs = &self.machine.costs;
        let spins = match self.layout {
            Layout::Central => u64::from(self.machine.patience) * costs.steal,
            _ => 0,
        };
        let slept = self.now - since;
        let delay = if slept <= spins { 0 } else { costs.wake };
        self.report.searching += slept.min(spins);
        self.report.asleep += slept.saturating_sub(spins);
        self.report.waking += delay;
        self.workers[me].state = State::Looking;
        // A worker that slept took nothing from any level: the round that it slept through is not charged, and what the
        // worker ran in that round is not charged to the next.
        if let Period::EachWorker(length) = self.period
            && self.now - self.workers[me].seated_at >= length
        {
            self.workers[me].round_ran = 0;
            self.take_seat(me);
        }
        let place = self.sleeping.iter().rposition(|&w| w as usize == me);
        self.sleeping
            .remove(place.expect("a sleeping worker is in the list"));
        self.at(self.now + delay, 1, Event::Decide(me as u32));
    }

    /// Something that others can find is ready at a level: one sleeping worker that would serve it wakes up.
    pub(super) fn publish(&mut self, level: u8, owner: Option<usize>) {
        if self.sleeping.is_empty() {
            return;
        }
        let serves = |me: usize| {
            let mut seat = self.workers[me].seat;
            seat.serve(1 << level).is_some()
        };
        if let Some(owner) = owner
            && let State::Asleep(_) = self.workers[owner].state
            && serves(owner)
        {
            return self.wake(owner);
        }
        if self.is_dealt() && owner.is_some() {
            return;
        }
        let woken = self.sleeping.iter().rev().find(|w| serves(**w as usize));
        if let Some(&me) = woken {
            self.wake(me as usize);
        }
    }

    pub(super) fn seen(&mut self, level: u8, more: bool) {
        let visible = &mut self.visible[usize::from(level)];
        if more {
            *visible += 1;
            self.with_work |= 1 << level;
        } else {
            *visible -= 1;
            if *visible == 0 {
                self.with_work &= !(1 << level);
            }
        }
    }
}
