//! A model of the wake-ups of one among many futures, run by loom over all interleavings (two preemptions).

use super::all::join_all;
use crate::sys::primitives::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    // Not the one of `primitives`: `Wake` knows only this one, and the model's own notes need no order.
    sync::{self, Mutex, atomic::Ordering::SeqCst},
    task::{Context, Poll, Wake, Waker},
};

/// Whether the parent was woken.
#[derive(Default)]
struct Woken(sync::atomic::AtomicBool);

impl Wake for Woken {
    fn wake(self: sync::Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn what_was_written_before_a_wake_up_that_found_its_mark_is_seen_by_the_poll_or_another_follows() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&flag);
        let left = sync::Arc::new(Mutex::new(None::<Waker>));
        let slot = sync::Arc::clone(&left);
        let child = poll_fn(move |cx| {
            slot.lock()
                .unwrap()
                .get_or_insert_with(|| cx.waker().clone());
            match theirs.load(Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        let mut all = join_all([child]);
        let parent = sync::Arc::new(Woken::default());
        let waker = Waker::from(sync::Arc::clone(&parent));
        let mut poll = || {
            parent.0.store(false, SeqCst);
            Pin::new(&mut all).poll(&mut Context::from_waker(&waker))
        };
        assert!(poll().is_pending());
        let child = left.lock().unwrap().take().expect("the poll left it");
        let thread = thread::spawn(move || {
            child.wake_by_ref();
            flag.store(true, Relaxed);
            child.wake_by_ref();
        });
        let polled = poll();
        thread.join().unwrap();
        assert!(
            polled.is_ready() || parent.0.load(SeqCst),
            "nobody polls again"
        );
        assert!(polled.is_ready() || poll().is_ready());
    });
}
