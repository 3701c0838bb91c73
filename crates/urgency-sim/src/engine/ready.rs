//! What becomes ready goes where the policy says.

use super::{Engine, State, deques::Life};
use crate::dag::{NONE, Vertex, Yields};
use urgency_policy::pool::{Arrival, Layout, Place, Queue, Shed, deal};

impl Engine<'_> {
    /// A parent of a vertex has run, its latency included; `by` the worker that ran it.
    pub(super) fn parent_done(&mut self, vertex: Vertex, by: Option<usize>) {
        let pending = &mut self.pending[vertex as usize];
        *pending -= 1;
        if *pending == 0 {
            self.enabled(vertex, by);
        }
    }

    /// The targets of a vertex that `me` has just run. The first that is ready at the worker's level is what it runs
    /// next; the others go to its forks, so that the newest is the one that a serial execution runs first.
    pub(super) fn enable_targets(&mut self, me: usize, vertex: Vertex) {
        let dag = self.dag;
        let level = dag.level(vertex);
        let yields = dag.yields[vertex as usize];
        let next = dag.next[vertex as usize];
        let mut mine = Vec::new();
        for edge in dag.edges(vertex) {
            if edge.latency > 0 {
                self.latencies += 1;
                self.report.most_pending = self.report.most_pending.max(self.latencies);
                self.at(self.now + edge.latency, 0, super::Event::Over(edge.to));
                continue;
            }
            let pending = &mut self.pending[edge.to as usize];
            *pending -= 1;
            if *pending > 0 {
                continue;
            }
            let is_here = dag.level(edge.to) == level && self.waits_in[edge.to as usize] == NONE;
            if !is_here {
                self.enabled(edge.to, Some(me));
            } else if edge.to == next && yields != Yields::No {
                self.begin_thread(edge.to);
                self.give_way(me, next, yields);
            } else {
                self.begin_thread(edge.to);
                mine.push(edge.to);
            }
        }
        self.workers[me].level = level;
        if let Some((&first, others)) = mine.split_first() {
            for &other in others.iter().rev() {
                self.push_job(me, other);
            }
            self.workers[me].next = first;
        }
    }

    /// The first vertex of a thread is ready.
    fn begin_thread(&mut self, vertex: Vertex) {
        let number = self.dag.thread_of[vertex as usize];
        let thread = &self.dag.threads[number as usize];
        if thread.first == vertex && thread.release.is_none() {
            self.report.responses[number as usize].ready = self.now;
        }
    }

    /// A vertex is ready that nobody runs next at once.
    pub(super) fn enabled(&mut self, vertex: Vertex, by: Option<usize>) {
        self.begin_thread(vertex);
        let level = self.dag.level(vertex);
        let thread = self.dag.thread_of[vertex as usize];
        let is_start = self.dag.threads[thread as usize].first == vertex;
        let arrival = match (is_start, by) {
            (true, _) => Arrival::Root,
            (false, _) => Arrival::Resumable,
        };
        let home = match by {
            Some(by) => by,
            None if self.home[thread as usize] != NONE => self.home[thread as usize] as usize,
            None => self.dice.below(self.workers.len() as u64) as usize,
        };
        if self.plan.is_some() {
            return self.place_vertex(home, vertex, arrival);
        }
        let suspended = std::mem::replace(&mut self.waits_in[vertex as usize], NONE);
        let deque = if suspended == NONE {
            self.deques.make(level, home as u32)
        } else {
            suspended
        };
        let record = self.deques.get(deque);
        record.bottom = vertex;
        record.life = Life::Resumable;
        if suspended == NONE {
            let place = self.workers[home].policy.place(arrival, 0);
            self.place_deque(deque, place);
        } else if self.layout == Layout::Central {
            let place = self.workers[home].policy.place(Arrival::Resumable, 0);
            self.place_deque(deque, place);
        }
        self.refresh(deque);
    }

    /// The worker's thread waits for `next`: its deque with it, unless nothing is suspended here.
    pub(super) fn suspend(&mut self, me: usize, next: Vertex) {
        self.report.suspensions += 1;
        // What is in the deque at a sync was forked before it: the worker runs that.
        if self.plan.is_some() || self.dag.is_sync[next as usize] {
            return;
        }
        let deque = self.active(me);
        self.workers[me].active = NONE;
        self.deques.get(deque).life = Life::Suspended;
        self.waits_in[next as usize] = deque;
        let place = self.workers[me].policy.place(Arrival::Suspended, 0);
        match self.layout {
            // In the pool the deque stands for its forks only.
            Layout::Central => self.refresh(deque),
            _ => {
                self.place_deque(deque, place);
                self.refresh(deque);
            }
        }
    }

    /// The worker's thread gives way before `next`.
    fn give_way(&mut self, me: usize, next: Vertex, how: Yields) {
        let arrival = match how {
            Yields::Far => Arrival::YieldedFar,
            _ => Arrival::Yielded,
        };
        if self.plan.is_some() {
            return self.place_vertex(me, next, arrival);
        }
        self.leave(me, next, arrival);
    }

    /// The worker leaves its stack, which can go on with `bottom`.
    pub(super) fn leave(&mut self, me: usize, bottom: Vertex, arrival: Arrival) {
        let deque = self.active(me);
        self.workers[me].active = NONE;
        let record = self.deques.get(deque);
        record.bottom = bottom;
        record.life = Life::Resumable;
        let place = self.workers[me].policy.place(arrival, 0);
        self.place_deque(deque, place);
        self.refresh(deque);
    }

    /// The worker's active deque; a new one if it has none.
    fn active(&mut self, me: usize) -> u32 {
        if self.workers[me].active == NONE {
            self.workers[me].active = self.deques.make(self.workers[me].level, me as u32);
            self.report.most_deques = self.report.most_deques.max(self.deques.in_use());
        }
        self.workers[me].active
    }

    /// A ready vertex goes to the worker's own forks.
    pub(super) fn push_job(&mut self, me: usize, vertex: Vertex) {
        if self.plan.is_some() {
            return self.place_vertex(me, vertex, Arrival::Task);
        }
        let deque = self.active(me);
        self.deques.get(deque).jobs.push_back(vertex);
        self.refresh(deque);
    }

    fn place_deque(&mut self, deque: u32, place: Place) {
        let level = usize::from(self.deques.get(deque).level);
        match place {
            Place::Tail(Queue::Mugging) => {
                self.deques.central[level].mugging.push_back(deque);
                self.deques.get(deque).entries += 1;
            }
            Place::Tail(_) => {
                if self.deques.get(deque).listed {
                    self.deques.unlist(deque);
                }
                self.queue_regular(deque);
            }
            Place::Worker(home) => {
                if self.deques.get(deque).listed {
                    self.deques.unlist(deque);
                }
                self.deques.get(deque).home = home as u32;
            }
            Place::Slot | Place::Full | Place::Dropped => {}
        }
        self.report.most_deques = self.report.most_deques.max(self.deques.in_use());
    }

    pub(super) fn queue_regular(&mut self, deque: u32) {
        let record = self.deques.get(deque);
        if !record.in_regular {
            record.in_regular = true;
            record.entries += 1;
            let level = usize::from(record.level);
            self.deques.central[level].regular.push_back(deque);
        }
    }

    /// A deque changed: after this, others can find the deque if, and only if, it is worth a look.
    pub(super) fn refresh(&mut self, deque: u32) {
        let record = self.deques.get(deque);
        let (level, worth) = (record.level, record.is_worth_a_look());
        if self.layout == Layout::Central {
            if worth && !record.in_regular && record.entries == 0 {
                self.queue_regular(deque);
            }
        } else {
            // What yielded stands in the shared queue, and in no worker's set.
            match (worth && !record.in_regular, record.listed) {
                (true, false) => self.deques.list(deque),
                (false, true) => self.deques.unlist(deque),
                _ => {}
            }
        }
        let record = self.deques.get(deque);
        if worth != record.counted {
            record.counted = worth;
            self.seen(level, worth);
            if worth {
                self.publish(level, None);
            }
        }
    }

    /// A ready vertex goes into a queue, as this worker's policy says.
    pub(super) fn place_vertex(&mut self, me: usize, vertex: Vertex, arrival: Arrival) {
        let level = self.dag.level(vertex);
        let own = self.queues.len(me, level);
        let place = self.workers[me].policy.place(arrival, own);
        match place {
            Place::Worker(worker) => self.enqueue(worker, vertex),
            // A slot is for what the worker runs next; nobody else could find it there.
            Place::Slot if !self.runs(me, level) => self.enqueue(me, vertex),
            Place::Slot => {
                if let Some(displaced) = self.queues.slot(me, level).replace(vertex) {
                    self.enqueue(me, displaced);
                }
            }
            Place::Tail(queue) => {
                let number = match queue {
                    Queue::Shared(number) => number,
                    Queue::Mugging | Queue::Regular => 0,
                };
                self.queues.shared(level, number).push_back(vertex);
                self.seen(level, true);
                self.publish(level, None);
            }
            // An own policy may say so sooner than it is true.
            Place::Full if own < self.capacity() => self.enqueue(me, vertex),
            Place::Full => self.workers[me].overhang.push_back(vertex),
            Place::Dropped => unreachable!("a ready vertex has a place"),
        }
    }

    /// Into a worker's queue: at its end, or where its depth belongs.
    pub(super) fn enqueue(&mut self, me: usize, vertex: Vertex) {
        let (dag, level) = (self.dag, self.dag.level(vertex));
        let sorted = self.plan.is_some_and(|plan| plan.by_depth);
        let queue = self.queues.own(me, level);
        if sorted {
            let depth = |v: Vertex| dag.threads[dag.thread_of[v as usize] as usize].depth;
            let at = queue.partition_point(|&other| depth(other) <= depth(vertex));
            queue.insert(at, vertex);
        } else {
            queue.push_back(vertex);
        }
        let len = queue.len();
        self.report.most_deques = self.report.most_deques.max(len);
        self.seen(level, true);
        self.publish(level, Some(me));
    }

    /// A busy worker gives away what its policy says. Banks are dealt at intervals.
    pub(super) fn shed(&mut self, me: usize) {
        if self.plan.is_none() {
            return;
        }
        if self.is_dealt() {
            if self.now < self.workers[me].next_deal {
                return;
            }
            self.workers[me].next_deal = self.now + self.machine.deal_interval;
        }
        let level = self.workers[me].level;
        let own = self.queues.len(me, level);
        match self.workers[me].policy.shed(own) {
            Shed::Keep => {}
            Shed::Ask(other) => {
                self.workers[other].asked_by = Some(me);
                if let State::Asleep(_) = self.workers[other].state {
                    self.wake(other);
                }
            }
            Shed::Advertise => {
                let adverts = &mut self.queues.adverts[usize::from(level)];
                if !adverts.contains(&(me as u32)) {
                    adverts.push_back(me as u32);
                    self.publish(level, None);
                }
            }
            Shed::Deal(other) => self.deal(me, other, level),
        }
    }

    fn runs(&self, me: usize, level: u8) -> bool {
        self.workers[me].state == State::Busy && self.workers[me].level == level
    }

    fn deal(&mut self, me: usize, other: usize, level: u8) {
        let is_open = self.queues.len(other, level) == 0;
        let runs_it =
            self.workers[other].state == State::Busy && self.workers[other].level == level;
        if !is_open || runs_it {
            return;
        }
        let dag = self.dag;
        let depth = |&v: &Vertex| dag.threads[dag.thread_of[v as usize] as usize].depth;
        let depths: Vec<u32> = self.queues.own(me, level).iter().map(depth).collect();
        for _ in 0..deal(&depths) {
            let vertex = self.queues.own(me, level).pop_front();
            let vertex = vertex.expect("no more are dealt than there are");
            self.seen(level, false);
            self.report.dealt += 1;
            self.enqueue(other, vertex);
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.plan.map_or(usize::MAX, |plan| plan.capacity)
    }
}
