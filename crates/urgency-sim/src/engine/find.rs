//! A worker decides: goes on, goes elsewhere, finds something, or sleeps.

use super::{Engine, Event, State, deques::Life};
use crate::dag::{NONE, Vertex};
use urgency_policy::{
    level::LevelPolicy,
    pool::{Amount, Arrival, Chooser, End, Layout, Left, Place, Queue, Sight, Source},
};

/// After so many tries a spawner puts what does not fit into its queue nevertheless.
const MOST_SPINS: u32 = 20;

/// What a look at a level gave.
pub(super) enum Look {
    /// A vertex to run, after a delay.
    Found(Vertex, u64),
    /// Nothing this time, which took so long; another look may find something.
    Missed(u64),
    /// Nothing that this worker could find.
    Empty,
}

impl Engine<'_> {
    pub(super) fn decide(&mut self, me: usize) {
        if !self.fits(me) {
            return;
        }
        self.end_round(me);
        let was_busy = self.workers[me].state == State::Busy;
        if was_busy {
            self.shed(me);
        }
        let mut delay = 0;
        if self.workers[me].next == NONE {
            self.workers[me].next = self.pop_own_deque(me);
        }
        let level = self.workers[me].level;
        let holds = self.workers[me].next != NONE;
        let stays = holds || (self.plan.is_some() && self.queues.len(me, level) > 0);
        let drawn = match stays && was_busy {
            true => {
                let sight = self.sight(me);
                self.workers[me].seat.abandon_for(sight, level).is_some()
            }
            false => false,
        };
        if drawn {
            self.abandon(me);
            delay += self.machine.costs.hand_off;
        } else if holds {
            let next = self.workers[me].next;
            return self.start(me, next, 0);
        }
        self.find(me, delay);
    }

    /// What did not fit into the worker's queue, tried again; `false` if it still does not.
    fn fits(&mut self, me: usize) -> bool {
        while let Some(&vertex) = self.workers[me].overhang.front() {
            let level = self.dag.level(vertex);
            if self.queues.len(me, level) >= self.capacity() && self.workers[me].spins < MOST_SPINS
            {
                self.workers[me].spins += 1;
                self.report.stalls += 1;
                let pause = self.machine.costs.steal.max(1);
                self.report.scheduling += pause;
                self.at(self.now + pause, 1, Event::Decide(me as u32));
                return false;
            }
            self.workers[me].overhang.pop_front();
            self.enqueue(me, vertex);
        }
        true
    }

    fn pop_own_deque(&mut self, me: usize) -> Vertex {
        let active = self.workers[me].active;
        if active == NONE {
            return NONE;
        }
        match self.deques.get(active).jobs.pop_back() {
            Some(vertex) => {
                self.refresh(active);
                vertex
            }
            None => {
                self.workers[me].active = NONE;
                self.deques.retire(active);
                NONE
            }
        }
    }

    /// The worker is drawn to another level, and leaves what it would run next.
    fn abandon(&mut self, me: usize) {
        self.report.abandonments += 1;
        let level = self.workers[me].level;
        let next = std::mem::replace(&mut self.workers[me].next, NONE);
        if self.plan.is_some() {
            if let Some(slot) = self.queues.slot(me, level).take() {
                self.enqueue(me, slot);
            }
            if next != NONE {
                self.enqueue(me, next);
            }
            return;
        }
        self.leave(me, next, Arrival::Abandoned);
    }

    fn find(&mut self, me: usize, mut delay: u64) {
        let mut sight = self.sight(me);
        while let Some(level) = self.workers[me].seat.serve(sight) {
            match self.look(me, level) {
                Look::Found(vertex, cost) => return self.start(me, vertex, delay + cost),
                Look::Missed(cost) => return self.look_again(me, delay + cost),
                Look::Empty => sight &= !(1 << level),
            }
        }
        let thieves = match self.layout {
            Layout::Central => false,
            Layout::Deques => true,
            Layout::Queues(_) => !self.is_dealt(),
        };
        if thieves && self.workers[me].failed < self.machine.patience {
            // A thief cannot see that there is nothing: it looks at somebody.
            self.report.steal_attempts += 1;
            delay += self.machine.costs.steal.max(1);
            return self.look_again(me, delay);
        }
        self.report.searching += delay;
        self.sleep(me);
    }

    fn look_again(&mut self, me: usize, after: u64) {
        self.workers[me].failed += 1;
        if self.workers[me].state == State::Busy {
            self.idle += 1;
        }
        self.workers[me].state = State::Looking;
        self.report.searching += after;
        self.at(self.now + after, 1, Event::Decide(me as u32));
    }

    fn look(&mut self, me: usize, level: u8) -> Look {
        let look = match self.layout {
            Layout::Central => self.look_central(me, level),
            Layout::Deques => self.look_among_deques(me, level),
            Layout::Queues(_) => self.look_in_queues(me, level),
        };
        let (cost, is_over) = match look {
            Look::Found(..) => return look,
            Look::Missed(cost) => (cost, false),
            Look::Empty => (0, true),
        };
        match self.sweep(me, level, is_over) {
            Look::Found(vertex, swept) => Look::Found(vertex, cost + swept),
            _ => look,
        }
    }

    /// How long an operation takes on something that others use, too.
    fn contend(free_at: &mut u64, now: u64, cost: u64) -> u64 {
        let end = now.max(*free_at) + cost;
        *free_at = end;
        end - now
    }

    fn look_central(&mut self, me: usize, level: u8) -> Look {
        loop {
            let mut has = |queue| !self.deques.central(level, queue).is_empty();
            let sight = Sight {
                mugging: has(Queue::Mugging),
                regular: has(Queue::Regular),
                failed: self.workers[me].failed,
                ..Sight::default()
            };
            let Source::Head(queue) = self.workers[me].policy.take_from(sight) else {
                return Look::Empty;
            };
            let has_entry = has(queue);
            match self.look_at_head(me, level, queue) {
                Look::Missed(_) if has_entry => {}
                look => return look,
            }
        }
    }

    /// The deque that is at the head of a central queue. What has yielded is in the regular one.
    pub(super) fn look_at_head(&mut self, me: usize, level: u8, queue: Queue) -> Look {
        let popped = self.deques.central(level, queue).pop_front();
        let free_at = &mut self.deques.central[usize::from(level)].free_at;
        let delay = Self::contend(free_at, self.now, self.machine.costs.queue);
        let taken = popped.and_then(|deque| {
            let is_gone = self.deques.unqueue(deque, queue != Queue::Mugging);
            (!is_gone).then(|| self.take_from_deque(me, deque))?
        });
        match taken {
            Some((vertex, cost)) => Look::Found(vertex, delay + cost),
            None => Look::Missed(delay.max(1)),
        }
    }

    /// Continues a resumable deque, or steals the oldest fork of another.
    pub(super) fn take_from_deque(&mut self, me: usize, deque: u32) -> Option<(Vertex, u64)> {
        let record = self.deques.get(deque);
        let costs = &self.machine.costs;
        let taken = match record.life {
            Life::Resumable => {
                let vertex = std::mem::replace(&mut record.bottom, NONE);
                record.life = Life::Active;
                debug_assert_eq!(self.workers[me].active, NONE);
                self.workers[me].active = deque;
                let is_new = self.left[vertex as usize] == self.dag.work[vertex as usize]
                    && self.home[self.dag.thread_of[vertex as usize] as usize] == NONE;
                if self.deques.get(deque).home != me as u32 {
                    if self.deques.get(deque).listed {
                        self.deques.unlist(deque);
                    }
                    self.deques.get(deque).home = me as u32;
                }
                self.report.mugs += u64::from(!is_new);
                Some((vertex, if is_new { costs.steal } else { costs.mug }))
            }
            Life::Free => None,
            Life::Active | Life::Suspended => record.jobs.pop_front().map(|vertex| {
                self.report.steals += 1;
                (vertex, costs.steal)
            }),
        };
        let left = if self.deques.get(deque).jobs.is_empty() {
            Left::Nothing
        } else {
            Left::Forks
        };
        let place = self.workers[me].policy.after_steal(left);
        if let (Layout::Central, Place::Tail(_)) = (self.layout, place) {
            self.queue_regular(deque);
        }
        self.refresh(deque);
        if left == Left::Forks {
            // The deque's first fork woke this worker; as in the runtime, this worker wakes the next.
            let level = self.deques.get(deque).level;
            self.publish(level, None);
        }
        taken
    }

    fn look_among_deques(&mut self, me: usize, level: u8) -> Look {
        let own = self.deques.resumable(me, level).count();
        let yielded = &self.deques.central[usize::from(level)].regular;
        let sight = Sight {
            own,
            shared: u64::from(!yielded.is_empty()),
            failed: self.workers[me].failed,
            ..Sight::default()
        };
        let source = self.workers[me].policy.take_from(sight);
        let (victim, deque) = match source {
            Source::Head(queue) => return self.look_at_head(me, level, queue),
            Source::OwnDeque => {
                let nth = self.workers[me].policy.choose(own, Chooser::Owner);
                (me, self.deques.resumable(me, level).nth(nth))
            }
            Source::Own(End::Newest | End::Deepest) => {
                (me, self.deques.resumable(me, level).last())
            }
            Source::Own(_) => (me, self.deques.resumable(me, level).next()),
            Source::Steal { victim, .. } => {
                self.report.steal_attempts += 1;
                let deques = self.deques.set(victim, level).len();
                let nth = match deques {
                    0 => 0,
                    _ => self.workers[me].policy.choose(deques, Chooser::Thief),
                };
                (victim, self.deques.set(victim, level).get(nth).copied())
            }
            _ => return Look::Empty,
        };
        self.look_at_deque(me, victim, deque)
    }

    /// A deque of this worker's set, or nothing there.
    pub(super) fn look_at_deque(&mut self, me: usize, victim: usize, deque: Option<u32>) -> Look {
        let cost = match deque {
            None => self.machine.costs.steal.max(1),
            Some(_) => 0,
        };
        let free_at = &mut self.deques.free_at[victim];
        let delay = Self::contend(free_at, self.now, cost);
        let Some(deque) = deque else {
            return Look::Missed(delay);
        };
        match self.take_from_deque(me, deque) {
            Some((vertex, cost)) => {
                self.deques.free_at[victim] += cost;
                Look::Found(vertex, delay + cost)
            }
            None => Look::Missed(delay.max(1)),
        }
    }

    fn look_in_queues(&mut self, me: usize, level: u8) -> Look {
        let at = usize::from(level);
        let sight = Sight {
            shared: self.queues.occupied(level),
            adverts: !self.queues.adverts[at].is_empty(),
            own: self.queues.len(me, level),
            slot: self.queues.slot(me, level).is_some(),
            asked_by: self.workers[me].asked_by.take(),
            failed: self.workers[me].failed,
            ..Sight::default()
        };
        let costs = self.machine.costs;
        match self.workers[me].policy.take_from(sight) {
            Source::Own(end) => {
                let Some((vertex, from_slot)) = self.queues.take(me, level, end) else {
                    return Look::Empty;
                };
                if !from_slot {
                    self.seen(level, false);
                }
                Look::Found(vertex, 0)
            }
            Source::OwnDeque => {
                let nth = self.workers[me].policy.choose(sight.own, Chooser::Owner);
                let Some(vertex) = self.queues.own(me, level).remove(nth) else {
                    return Look::Empty;
                };
                self.seen(level, false);
                Look::Found(vertex, 0)
            }
            Source::Head(Queue::Shared(number)) => self.look_at_shared(level, number),
            Source::Steal {
                victim,
                amount,
                least,
            } => self.steal_from_queue(me, level, victim, amount, least),
            Source::Advert { amount } => match self.queues.adverts[at].pop_front() {
                Some(victim) => self.steal_from_queue(me, level, victim as usize, amount, 1),
                None => Look::Missed(costs.steal.max(1)),
            },
            Source::Nowhere if self.is_dealt() || self.is_own() => Look::Empty,
            _ => Look::Missed(costs.steal.max(1)),
        }
    }

    pub(super) fn look_at_shared(&mut self, level: u8, number: usize) -> Look {
        let clock = self.queues.shared_clock(level, number);
        let delay = Self::contend(clock, self.now, self.machine.costs.queue);
        match self.queues.shared(level, number).pop_front() {
            Some(vertex) => {
                self.seen(level, false);
                Look::Found(vertex, delay)
            }
            None => Look::Missed(delay.max(1)),
        }
    }

    pub(super) fn steal_from_queue(
        &mut self,
        me: usize,
        level: u8,
        victim: usize,
        amount: Amount,
        least: usize,
    ) -> Look {
        self.report.steal_attempts += 1;
        let there = self.queues.len(victim, level);
        let hit = there >= least.max(1) && victim != me;
        let cost = if hit {
            self.machine.costs.steal
        } else {
            self.machine.costs.steal.max(1)
        };
        let free_at = &mut self.deques.free_at[victim];
        let delay = Self::contend(free_at, self.now, cost);
        if !hit {
            return Look::Missed(delay);
        }
        self.report.steals += 1;
        let queue = self.queues.own(victim, level);
        let mut taken = queue.drain(..amount.of(there));
        let first = taken.next().expect("the victim has an entry");
        let rest: Vec<Vertex> = taken.collect();
        self.seen(level, false);
        for vertex in rest {
            self.seen(level, false);
            self.enqueue(me, vertex);
        }
        Look::Found(first, delay)
    }
}
