//! `Timer`: hyper's deadlines on the runtime's timers.
//!
//! hyper resets a connection's sleep more often than it lets one end, so `reset` keeps the allocation.

use hyper::rt;
use std::{
    pin::Pin,
    task::{Context, Poll},
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

struct Sleep(time::Sleep);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl rt::Sleep for Sleep {}

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep(time::sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep(time::sleep_until(deadline.into())))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(mut sleep) => Pin::new(&mut sleep.0).reset(deadline.into()),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::Timer as _;
    use std::task::Waker;

    #[test]
    fn a_timer_moved_to_an_earlier_time_is_ready_then() {
        let mut cx = Context::from_waker(Waker::noop());
        let timer = Timer::new();
        let mut sleep = timer.sleep(Duration::from_secs(3600));
        urgency::block_on(async {
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
            timer.reset(&mut sleep, Instant::now());
            assert!(sleep.as_mut().poll(&mut cx).is_ready());
        });
    }
}
