//! A waker's clone is code of the program, and may use what it is cloned for.

mod common;

use common::{ends, poll, runtime};
use std::{
    future::Future,
    pin::pin,
    ptr,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, RawWaker, RawWakerVTable, Waker},
    time::Duration,
};
use urgency::time::sleep;

static CLONES: AtomicUsize = AtomicUsize::new(0);

/// Its clone starts a timer.
const STARTS_A_TIMER: RawWakerVTable = RawWakerVTable::new(
    |_| {
        CLONES.fetch_add(1, SeqCst);
        assert!(poll(pin!(sleep(Duration::from_secs(60)))).is_pending());
        RawWaker::new(ptr::null(), &STARTS_A_TIMER)
    },
    |_| (),
    |_| (),
    |_| (),
);

#[test]
fn a_waker_whose_clone_starts_a_timer_replaces_the_one_of_a_timer() {
    ends(|| {
        let replaces = || {
            let mut limit = pin!(sleep(Duration::from_secs(60)));
            assert!(poll(limit.as_mut()).is_pending());
            let before = CLONES.load(SeqCst);
            // SAFETY: the functions use no data.
            let waker = unsafe { Waker::new(ptr::null(), &STARTS_A_TIMER) };
            let polled = limit.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            assert!(CLONES.load(SeqCst) > before);
        };
        // The clock of code outside of all runtimes, and a runtime's.
        replaces();
        runtime(1).run(replaces);
    });
}
