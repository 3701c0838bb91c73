//! Memory for large values, shared by all connections: one [`Allowance`] for what clients send, one for what they are
//! sent.
//!
//! A connection that receives or sends a large value asks for a [`Share`] as large as the value may become, and waits
//! in a queue while too little is left. It gives the share back as soon as the value is stored or sent. It asks for the
//! whole share at once, so holders never wait for each other. A share is a right: the memory is taken as bytes arrive.
//!
//! Clients can hold a share for as long as they like: they announce a value and stop, or do not read. So while a
//! connection waits, each holder must move [`LEAST`] bytes in every [`PATIENCE`] sweeps (a second). A holder that moves
//! less is *quiet*. The holders that have been quiet for longest lose their shares, as many as the waiting connections
//! need, and their connections are ended. While no connection waits, no holder is asked to hurry.
//!
//! A few buffers of finished values are kept for the next values ([`SPARE`]): fresh memory costs a page fault for each
//! 4 KiB, which is four times what the rest of a large answer costs.
//!
//! Everything is under one lock, which large values alone take. Each waker is called after the lock was released.

use super::signal::Kick;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// The time between two looks at the holders, while a connection waits.
pub const SWEEP: Duration = Duration::from_millis(250);

/// So many sweeps without [`LEAST`] bytes, and a holder may lose its share.
const PATIENCE: u32 = 4;

/// Bytes that count as progress.
const LEAST: usize = 16 * 1024;

/// Bytes of the buffers that are kept, besides what is held.
pub const SPARE: usize = 16 << 20;

/// See the module's text.
#[derive(Debug)]
pub struct Allowance {
    state: Mutex<State>,
    /// Told that a connection waits.
    crowded: Arc<Kick>,
}

#[derive(Debug)]
struct State {
    /// Bytes that no connection holds.
    left: usize,
    next: u64,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    held: BTreeMap<u64, Held>,
    /// Empty buffers, the one used last at the end.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    bytes: usize,
    waker: Waker,
}

#[derive(Debug)]
struct Held {
    bytes: usize,
    /// Bytes since the last progress.
    moved: usize,
    /// Sweeps since the last progress.
    quiet: u32,
    is_lost: bool,
    /// Of the connection, if it waits for its client.
    waker: Option<Waker>,
}

impl State {
    /// Hands out what is left, first come, first served. The wakers are to be called without the lock.
    fn grant(&mut self) -> Vec<Waker> {
        let mut granted = Vec::new();
        while let Some(first) = self.waiting.front()
            && first.bytes <= self.left
        {
            let first = self.waiting.pop_front().expect("it was there");
            self.hold(first.number, first.bytes);
            granted.push(first.waker);
        }
        granted
    }

    fn hold(&mut self, number: u64, bytes: usize) {
        self.left -= bytes;
        let held = Held {
            bytes,
            moved: 0,
            quiet: 0,
            is_lost: false,
            waker: None,
        };
        self.held.insert(number, held);
    }
}

impl Allowance {
    /// An allowance of `bytes`; `crowded` is woken when [`sweep`](Allowance::sweep) has something to do.
    pub fn new(bytes: usize, crowded: Arc<Kick>) -> Self {
        Allowance {
            state: Mutex::new(State {
                left: bytes,
                next: 0,
                waiting: VecDeque::new(),
                held: BTreeMap::new(),
                spare: Vec::new(),
            }),
            crowded,
        }
    }

    /// Waits for a share of `bytes`, which must not be more than the whole.
    pub fn take(&self, bytes: usize) -> Taking<'_> {
        Taking {
            allowance: self,
            bytes,
            number: None,
        }
    }

    /// Bytes that connections hold.
    pub fn held(&self) -> usize {
        self.state.lock().held.values().map(|held| held.bytes).sum()
    }

    /// An empty buffer for `bytes`, if one was kept.
    pub fn spare(&self, bytes: usize) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        let fits = |buffer: &Vec<u8>| buffer.capacity() >= bytes;
        let at = state.spare.iter().rposition(fits)?;
        Some(state.spare.remove(at))
    }

    /// Keeps a buffer for others, if there are few.
    pub fn keep(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut state = self.state.lock();
        let kept = state.spare.iter().map(Vec::capacity).sum::<usize>();
        if kept + buffer.capacity() <= SPARE {
            state.spare.push(buffer);
        }
    }

    /// Looks whether holders that make no progress are in the way of others. To be called every [`SWEEP`] as long as it
    /// says so.
    pub fn sweep(&self) -> bool {
        let mut wakers = Vec::new();
        let mut state = self.state.lock();
        let State {
            left,
            waiting,
            held,
            ..
        } = &mut *state;
        let mut missing = waiting.iter().map(|waiting| waiting.bytes).sum::<usize>();
        if missing == 0 {
            return false;
        }
        let lost = held.values().filter(|held| held.is_lost);
        missing = missing.saturating_sub(*left + lost.map(|held| held.bytes).sum::<usize>());
        let mut quiet = Vec::new();
        for held in held.values_mut().filter(|held| !held.is_lost) {
            held.quiet += 1;
            if held.quiet >= PATIENCE {
                quiet.push(held);
            }
        }
        // Equals stay in the order in which they came.
        quiet.sort_by_key(|held| std::cmp::Reverse(held.quiet));
        for held in quiet {
            if missing == 0 {
                break;
            }
            held.is_lost = true;
            missing = missing.saturating_sub(held.bytes);
            wakers.extend(held.waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    fn give_back(&self, number: u64) {
        let mut state = self.state.lock();
        let Some(held) = state.held.remove(&number) else {
            return;
        };
        state.left += held.bytes;
        let granted = state.grant();
        drop(state);
        granted.into_iter().for_each(Waker::wake);
    }
}

/// A wait for a share. If it is dropped, the place in the queue is gone.
#[derive(Debug)]
pub struct Taking<'a> {
    allowance: &'a Allowance,
    bytes: usize,
    /// The place in the queue.
    number: Option<u64>,
}

impl<'a> Future for Taking<'a> {
    type Output = Share<'a>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Share<'a>> {
        let (allowance, bytes) = (self.allowance, self.bytes);
        let mut state = allowance.state.lock();
        let Some(number) = self.number else {
            let number = state.next;
            state.next += 1;
            if state.waiting.is_empty() && bytes <= state.left {
                state.hold(number, bytes);
                return Poll::Ready(Share { allowance, number });
            }
            let waker = cx.waker().clone();
            state.waiting.push_back(Waiting {
                number,
                bytes,
                waker,
            });
            drop(state);
            self.number = Some(number);
            allowance.crowded.wake();
            return Poll::Pending;
        };
        if state.held.contains_key(&number) {
            self.number = None;
            return Poll::Ready(Share { allowance, number });
        }
        if let Some(waiting) = state.waiting.iter_mut().find(|w| w.number == number) {
            waiting.waker.clone_from(cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let mut state = self.allowance.state.lock();
            state.waiting.retain(|waiting| waiting.number != number);
            // The next one may need less.
            let granted = state.grant();
            drop(state);
            granted.into_iter().for_each(Waker::wake);
            // It may have been granted meanwhile.
            self.allowance.give_back(number);
        }
    }
}

/// The right to so many bytes, as long as it lives.
#[derive(Debug)]
pub struct Share<'a> {
    allowance: &'a Allowance,
    number: u64,
}

impl Share<'_> {
    /// Gives the share back, with the buffer that it was for.
    pub fn keep(self, buffer: Vec<u8>) {
        self.allowance.keep(buffer);
    }

    /// Notes that the client sent or took so many bytes.
    pub fn moved(&self, bytes: usize) {
        if let Some(held) = self.allowance.state.lock().held.get_mut(&self.number) {
            held.moved += bytes;
            if held.moved >= LEAST {
                (held.moved, held.quiet) = (0, 0);
            }
        }
    }

    /// Whether the share is lost, and the connection to be ended. If not, the task is woken when it is.
    pub fn poll_lost(&self, cx: &Context<'_>) -> bool {
        let mut state = self.allowance.state.lock();
        let held = state.held.get_mut(&self.number);
        let held = held.expect("a share is held as long as it lives");
        match &mut held.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        held.is_lost
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.allowance.give_back(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn allowance() -> Allowance {
        Allowance::new(100 << 10, Arc::default())
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn taken(allowance: &Allowance, bytes: usize) -> Share<'_> {
        match poll(pin!(allowance.take(bytes))) {
            Poll::Ready(share) => share,
            Poll::Pending => panic!("{bytes} are not left"),
        }
    }

    fn is_lost(share: &Share<'_>) -> bool {
        share.poll_lost(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn waiting_requests_are_served_in_their_order_and_a_small_one_does_not_pass_a_large_one() {
        let allowance = allowance();
        let first = taken(&allowance, 60 << 10);
        let mut large = pin!(allowance.take(50 << 10));
        let mut small = pin!(allowance.take(10 << 10));
        assert!(poll(large.as_mut()).is_pending() && poll(small.as_mut()).is_pending());
        drop(first);
        let both = (poll(large.as_mut()), poll(small.as_mut()));
        assert!(matches!(both, (Poll::Ready(_), Poll::Ready(_))));
        assert_eq!(allowance.held(), 60 << 10);
        drop(both);
        assert_eq!(allowance.held(), 0);
    }

    #[test]
    fn a_wait_that_is_given_up_leaves_nothing_behind_granted_or_not() {
        let allowance = allowance();
        let first = taken(&allowance, 60 << 10);
        let mut waiting = Box::pin(allowance.take(90 << 10));
        let mut behind = pin!(allowance.take(40 << 10));
        assert!(poll(waiting.as_mut()).is_pending() && poll(behind.as_mut()).is_pending());
        drop(waiting);
        assert!(poll(behind.as_mut()).is_ready(), "it fits beside the first");
        let mut granted = Box::pin(allowance.take(90 << 10));
        assert!(poll(granted.as_mut()).is_pending());
        drop(first);
        assert_eq!(allowance.held(), 90 << 10);
        drop(granted);
        assert_eq!(allowance.held(), 0);
    }

    #[test]
    fn holders_without_progress_lose_as_much_as_the_others_miss_and_not_before_somebody_waits() {
        let allowance = allowance();
        let silent = [(); 3].map(|()| taken(&allowance, 25 << 10));
        let busy = taken(&allowance, 25 << 10);
        for _ in 0..100 {
            assert!(!allowance.sweep(), "nobody waits");
        }
        let mut waiting = pin!(allowance.take(30 << 10));
        assert!(poll(waiting.as_mut()).is_pending());
        for sweep in 1..=PATIENCE {
            assert!(!silent.iter().any(is_lost), "after {} sweeps", sweep - 1);
            busy.moved(LEAST);
            assert!(allowance.sweep());
        }
        let lost = silent.each_ref().map(is_lost);
        assert_eq!(lost, [true, true, false], "two are enough, the first ones");
        assert!(!is_lost(&busy));
        assert!(allowance.sweep());
        assert!(!is_lost(&silent[2]), "what is lost already counts");
        let [one, two, _third] = silent;
        drop((one, two));
        assert!(poll(waiting.as_mut()).is_ready());
    }

    #[test]
    fn buffers_are_kept_up_to_so_many_bytes_and_given_to_requests_that_they_suffice() {
        let allowance = allowance();
        for _ in 0..100 {
            allowance.keep(Vec::with_capacity(1 << 20));
        }
        assert!(allowance.spare((1 << 20) + 1).is_none());
        let kept = std::iter::from_fn(|| allowance.spare(1 << 20)).count();
        assert_eq!(kept, SPARE >> 20);
    }

    #[test]
    fn a_trickle_is_no_progress() {
        let allowance = allowance();
        let trickle = taken(&allowance, 100 << 10);
        let mut waiting = pin!(allowance.take(1));
        assert!(poll(waiting.as_mut()).is_pending());
        for _ in 0..PATIENCE {
            trickle.moved(LEAST / PATIENCE as usize - 1);
            allowance.sweep();
        }
        assert!(is_lost(&trickle));
    }
}
