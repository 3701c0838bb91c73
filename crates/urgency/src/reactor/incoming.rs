//! On which processor events come in.
//!
//! The kernel takes in a packet on some processor: the one that the network card interrupts, or for a peer on this
//! machine the peer's. It then wakes the thread that waits for the event, on the processor where that thread slept. If
//! this is another one, and no processor is idle, the event costs an interrupt from processor to processor, and for a
//! peer on this machine so does the answer. An interrupt takes as long as some wake-ups.
//!
//! The kernel says of a socket on which processor its last packet was taken in (`SO_INCOMING_CPU`). Of pipes, timers,
//! Unix sockets and UDP sockets without a peer it says nothing. The last [`MEMORY`] events of which it is known decide:
//! if all of them came in on one processor, a thread had better wait there (`sched/machine/place.rs`). If they come in
//! on several, no place is better than another.
//!
//! The kernel is asked by a thread that is about to wait, not by the thread that brings an event.

#![cfg(not(urgency_loom))]

use super::sockets::incoming_cpu;
use std::{
    os::fd::RawFd,
    sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed},
};

/// So many events are remembered. Of events that come in on two processors by chance one in eight then seems to say
/// where the next one comes in.
const MEMORY: u32 = 4;

/// No descriptor.
const NONE: RawFd = -1;

/// See the module's text. Threads that note events at the same time may lose one: it is a hint.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Of the last event, until the kernel was asked about it.
    fd: AtomicI32,
    /// The processors of the last events, 16 bits each, plus one: 0 is no event.
    processors: AtomicU64,
}

impl Incoming {
    pub(crate) const fn new() -> Self {
        Incoming {
            fd: AtomicI32::new(NONE),
            processors: AtomicU64::new(0),
        }
    }

    /// A thread that waited comes back with an event of this descriptor.
    #[inline]
    pub(crate) fn note(&self, fd: RawFd) {
        self.fd.store(fd, Relaxed);
    }

    /// The processor on which events come in, if it is one. After an event this makes a system call.
    pub(crate) fn processor(&self) -> Option<i32> {
        let fd = self.fd.load(Relaxed);
        if fd != NONE {
            self.fd.store(NONE, Relaxed);
            incoming_cpu(fd).into_iter().for_each(|cpu| self.came(cpu));
        }
        self.agreed()
    }

    /// An event came in on this processor.
    pub(crate) fn came(&self, cpu: u16) {
        let before = self.processors.load(Relaxed);
        let cpu = u64::from(cpu.saturating_add(1));
        self.processors
            .store(before << (u64::BITS / MEMORY) | cpu, Relaxed);
    }

    fn agreed(&self) -> Option<i32> {
        let all = self.processors.load(Relaxed);
        let last = all as u16;
        (all == u64::from(last) * 0x0001_0001_0001_0001)
            .then_some(i32::from(last) - 1)
            .filter(|cpu| *cpu >= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(cpus: &[u16]) -> Option<i32> {
        let incoming = Incoming::new();
        cpus.iter().for_each(|cpu| incoming.came(*cpu));
        incoming.agreed()
    }

    #[cfg(not(miri))]
    #[test]
    fn the_kernel_says_on_which_processor_a_packet_came_in() {
        use crate::sys::thread::{current_cpu, pin};
        use rustix::thread::sched_getaffinity;
        use std::io::{Read as _, Write as _};
        use std::{net, os::fd::AsRawFd, thread};
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut from = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut to, _) = listener.accept().unwrap();
        let allowed = sched_getaffinity(None).unwrap();
        for cpu in (0..1024).filter(|&cpu| allowed.is_set(cpu)).take(2) {
            let incoming = &Incoming::new();
            thread::scope(|threads| {
                threads.spawn(|| {
                    pin(0, cpu);
                    assert_eq!(current_cpu(), cpu as i32);
                    for _ in 0..MEMORY {
                        assert_eq!(incoming.processor(), None, "it is not known yet");
                        from.write_all(&[1]).unwrap();
                        to.read_exact(&mut [0]).unwrap();
                        incoming.note(to.as_raw_fd());
                    }
                });
            });
            assert_eq!(incoming.processor(), Some(cpu as i32));
            incoming.note(i32::MAX);
            assert_eq!(incoming.processor(), Some(cpu as i32), "it is no socket");
        }
    }

    #[test]
    fn four_events_in_turn_on_one_processor_say_where_the_next_one_comes_in() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[0; 3]), None);
        assert_eq!(after(&[0; 4]), Some(0));
        assert_eq!(after(&[1, 300, 300, 300, 300]), Some(300));
        assert_eq!(after(&[300, 300, 300, 300, 1]), None);
        assert_eq!(after(&[1, 0, 1, 0, 1, 0]), None);
    }
}
