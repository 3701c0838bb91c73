//! `Timer`: hyper's deadlines on the runtime's timers.
//!
//! hyper makes a sleep for the headers of each request and drops it when they are there, up to a hundred thousand times a second, and nearly
//! none is ever ready. Each would enter the driver's heap and leave it, under a lock that all workers share. So:
//!
//! # Protocol
//!
//! 1. A sleep has two times: when it is *due*, and when its timer in the driver *fires*, which may be earlier. If the timer fires before the
//!    sleep is due, the next poll sets it to that time. So moving a deadline to a later time costs nothing.
//! 2. While a connection is polled ([`Kept::lend`]), a sleep that is dropped with a timer that has not fired leaves it behind, and the next sleep takes
//!    it over by rule 1, if it is due later. So a busy connection sets one timer in as long as its limit lasts.
//! 3. A timer that was left behind wakes its connection once, for nothing, when it fires. It goes with its connection.
//! 4. A timer that was set wakes one waker. A poll with another one sets it anew.

use hyper::rt;
use std::{
    cell::RefCell,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};
use urgency::time;

/// Gives hyper [`urgency::time`]. Timeouts of hyper (headers, keep-alive) need a timer in their builder.
///
/// ```
/// use hyper::server::conn::http1;
/// use std::time::Duration;
/// use urgency_web::rt::Timer;
///
/// let mut builder = http1::Builder::new();
/// builder.timer(Timer::new()).header_read_timeout(Duration::from_secs(5));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {}

impl Timer {
    /// The timer of whatever runtime its sleeps are polled in.
    pub fn new() -> Self {
        Timer {}
    }
}

/// A timer that fires within this may have fired already.
const SOON: Duration = Duration::from_millis(1);

/// A timer in the driver, and whom it wakes.
struct Set {
    timer: time::Sleep,
    wakes: Waker,
}

/// What a connection keeps of its sleeps between two polls: rule 2.
#[derive(Default)]
pub(crate) struct Kept(Option<Set>);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kept").field(&self.0.is_some()).finish()
    }
}

thread_local! {
    /// What the connection that is polled on this thread keeps. `None`: there is no such connection.
    static LENT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

impl Kept {
    /// Runs `poll`, whose sleeps keep their timers here.
    pub(crate) fn lend<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        /// Takes it back, also after a panic; there may be a connection around this one.
        struct Back<'a>(&'a mut Kept, Option<Kept>);

        impl Drop for Back<'_> {
            fn drop(&mut self) {
                let outer = self.1.take();
                let own = LENT.with_borrow_mut(|lent| mem::replace(lent, outer));
                *self.0 = own.unwrap_or_default();
            }
        }

        let own = Kept(self.0.take());
        let outer = LENT.replace(Some(own));
        let _back = Back(self, outer);
        poll()
    }

    /// A timer that fires at `due` or earlier, if one was left behind.
    fn take(due: Instant) -> Option<Set> {
        let take = |lent: &RefCell<Option<Kept>>| {
            let mut lent = lent.borrow_mut();
            let early = |set: &mut Set| set.timer.deadline() <= due;
            lent.as_mut().and_then(|kept| kept.0.take_if(early))
        };
        LENT.try_with(take).ok().flatten()
    }

    /// Leaves a timer behind. What comes back is to be dropped.
    fn leave(set: Set) -> Option<Set> {
        let leave = |lent: &RefCell<Option<Kept>>| match &mut *lent.borrow_mut() {
            Some(kept) => kept.0.replace(set),
            None => Some(set),
        };
        LENT.try_with(leave).ok().flatten()
    }
}

struct Sleep {
    due: Instant,
    set: Option<Set>,
}

impl Sleep {
    fn until(due: Instant) -> Self {
        Sleep {
            due,
            set: Kept::take(due),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let now = Instant::now();
        if now >= this.due {
            return Poll::Ready(());
        }
        if let Some(set) = &this.set
            && now + SOON < set.timer.deadline()
            && set.wakes.will_wake(cx.waker())
        {
            return Poll::Pending;
        }
        let mut timer = match this.set.take() {
            Some(mut set) => {
                set.timer.reset(this.due);
                set.timer
            }
            None => time::sleep_until(this.due),
        };
        if Pin::new(&mut timer).poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let wakes = cx.waker().clone();
        this.set = Some(Set { timer, wakes });
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(set) = self.set.take() {
            drop(Kept::leave(set));
        }
    }
}

impl rt::Sleep for Sleep {}

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep::until(time::sleep(duration).deadline()))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep::until(deadline))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(mut sleep) => {
                // Rule 1, if it moves to a later time.
                if deadline < sleep.due {
                    drop(sleep.set.take());
                }
                sleep.due = deadline;
            }
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::Timer as _;
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
        task::Wake,
    };

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn poll(sleep: &mut Pin<Box<dyn rt::Sleep>>, waker: &Waker) -> Poll<()> {
        sleep.as_mut().poll(&mut Context::from_waker(waker))
    }

    fn deadline(kept: &Kept) -> Option<Instant> {
        kept.0.as_ref().map(|set| set.timer.deadline())
    }

    #[test]
    fn the_sleeps_of_a_connection_share_one_timer_while_each_is_due_later() {
        let (mut kept, waker) = (Kept::default(), Waker::from(Arc::new(Count(0.into()))));
        let first = Instant::now() + Duration::from_secs(30);
        for later in 0..1000 {
            kept.lend(|| {
                let mut sleep = Timer::new().sleep_until(first + Duration::from_micros(later));
                assert!(poll(&mut sleep, &waker).is_pending());
            });
            assert_eq!(deadline(&kept), Some(first));
        }
        let earlier = first - Duration::from_secs(1);
        kept.lend(|| {
            let mut sleep = Timer::new().sleep_until(earlier);
            assert!(poll(&mut sleep, &waker).is_pending());
        });
        assert_eq!(deadline(&kept), Some(earlier));
    }

    #[test]
    fn a_sleep_that_took_over_an_earlier_timer_is_ready_when_it_is_due_and_wakes_who_polled_it() {
        let (mut kept, count) = (Kept::default(), Arc::new(Count(0.into())));
        let other = Waker::from(Arc::new(Count(0.into())));
        let now = Instant::now();
        let due = now + Duration::from_millis(60);
        let mut sleep = kept.lend(|| {
            let mut sleep = Timer::new().sleep_until(now + Duration::from_millis(20));
            assert!(poll(&mut sleep, &other).is_pending());
            drop(sleep);
            Timer::new().sleep_until(due)
        });
        assert!(deadline(&kept).is_none(), "it is in use");
        let waker = Waker::from(count.clone());
        let mut wakings = 0;
        while poll(&mut sleep, &waker).is_pending() {
            while count.0.load(SeqCst) == wakings {
                assert!(now.elapsed() < Duration::from_secs(20), "it is not woken");
                std::thread::yield_now();
            }
            wakings = count.0.load(SeqCst);
        }
        assert!(Instant::now() >= due && wakings > 0);
    }

    #[test]
    fn a_timer_moved_to_an_earlier_time_is_ready_then() {
        let timer = Timer::new();
        let mut sleep = timer.sleep(Duration::from_secs(3600));
        assert!(poll(&mut sleep, Waker::noop()).is_pending());
        timer.reset(&mut sleep, Instant::now());
        assert!(poll(&mut sleep, Waker::noop()).is_ready());
    }
}
