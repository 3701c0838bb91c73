//! A thread while it is recorded: what its task carries.
//!
//! # The life of a recorded thread
//!
//! 1. The spawner makes the recorded thread, which cuts the spawner's own step, and the task carries it.
//! 2. A poll begins: if the task was woken, that wake-up becomes an edge, or the latency of the step. The clock of the
//!    step starts.
//! 3. The step is cut wherever an edge leaves it: at a spawn, a wake-up, a result.
//! 4. The poll ends: the step ends; pending, ready, or by a panic, which is a result, too.
//!
//! A closure is polled once, and waits in the middle: [`waits`] ends and begins its steps there.

use super::log::{Place, Recorder};
use crate::{
    inherit::inherited,
    sys::{self, clock, mutex::Mutex},
    tasks::Id,
};
use std::{
    cell::{Cell, RefCell},
    mem,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

thread_local! {
    /// The last step of the thread that ended last here (rule 2).
    static ENDED: RefCell<Option<(Recorder, Place)>> = const { RefCell::new(None) };
    /// The kernel's number of this OS thread.
    static TID: Cell<i32> = const { Cell::new(0) };
}

fn tid() -> i32 {
    if TID.get() == 0 {
        TID.set(sys::thread::current_id());
    }
    TID.get()
}

/// The processor's time of the calling OS thread, in nanoseconds.
fn cpu_time() -> u64 {
    sys::thread::cpu_time(tid()).unwrap_or_else(|| {
        let nanos = clock::to_duration(clock::now()).as_nanos();
        u64::try_from(nanos).unwrap_or(u64::MAX)
    })
}

/// The recorded thread of the code that calls.
pub(super) fn here() -> Option<Arc<RecordedThread>> {
    inherited().and_then(|here| here.recorded.clone())
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct RecordedThread {
    recorder: Recorder,
    number: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The OS thread that runs the step.
    tid: i32,
    /// Its processor's time when the step began.
    began: u64,
    /// When the last poll ended, in ticks; 0 before the first.
    suspended: u64,
    woken: Option<Woken>,
    /// Whose end woke it last.
    woken_by: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Woken {
    /// In ticks.
    at: u64,
    by: Option<Place>,
}

impl RecordedThread {
    /// A thread of a task that is spawned at `level`, by `spawner` if that is of the same runtime. `None`:
    /// the limit is reached.
    pub(crate) fn new(
        recorder: &Recorder,
        spawner: Option<&RecordedThread>,
        level: u8,
    ) -> Option<Arc<Self>> {
        let spawner = spawner.filter(|spawner| spawner.recorder.is_same(recorder));
        let by = spawner.and_then(RecordedThread::cut);
        let number = recorder.lock().begin(level, by)?;
        Some(Arc::new(RecordedThread {
            recorder: recorder.clone(),
            number,
            state: Mutex::default(),
        }))
    }

    /// Whether the calling OS thread began the step that runs. It did not if it stole a fork of the task.
    fn runs_here(&self) -> bool {
        self.state.lock().tid == tid()
    }

    /// This is the task that carries it.
    pub(crate) fn names(&self, task: Id) {
        self.recorder.lock().name(task, self.number);
    }

    fn begin(&self) {
        ENDED.with(RefCell::take);
        let mut state = self.state.lock();
        state.woken_by = None;
        if let Some(woken) = state.woken.take() {
            let mut log = self.recorder.lock();
            match woken.by {
                Some(by) => {
                    state.woken_by = Some(by.0);
                    let next = log.next_step(self.number);
                    log.edge(by, next);
                }
                None if state.suspended != 0 => {
                    let waited = woken.at.saturating_sub(state.suspended);
                    log.thread(self.number).latency = waited;
                }
                None => {}
            }
        }
        state.tid = tid();
        state.began = cpu_time();
    }

    /// Ends the step that runs, and begins the next. What a stolen fork does counts as done after the last step.
    fn cut(&self) -> Option<Place> {
        let mut state = self.state.lock();
        if state.tid != tid() {
            return self.recorder.lock().last_step(self.number);
        }
        let now = cpu_time();
        let work = now.saturating_sub(state.began);
        state.began = now;
        Some(self.recorder.lock().end_step(self.number, work, false))
    }

    fn suspend(&self) {
        let mut state = self.state.lock();
        let work = cpu_time().saturating_sub(state.began);
        state.suspended = clock::now();
        // Woken by its own step.
        let yields = state
            .woken
            .is_some_and(|woken| woken.by.is_some_and(|by| by.0 == self.number));
        self.recorder.lock().end_step(self.number, work, yields);
    }

    fn end(&self) {
        let work = cpu_time().saturating_sub(self.state.lock().began);
        let mut log = self.recorder.lock();
        let last = log.end_step(self.number, work, false);
        log.done(self.number);
        drop(log);
        let before = ENDED.with(|ended| ended.replace(Some((self.recorder.clone(), last))));
        drop(before);
    }

    /// A wake-up of the task.
    fn wake(&self) {
        let by = self.waker();
        let mut state = self.state.lock();
        if state.woken.is_none() {
            state.woken = Some(Woken {
                at: clock::now(),
                by,
            });
        }
    }

    /// The step that wakes the thread, if that step is recorded.
    fn waker(&self) -> Option<Place> {
        let here = here().filter(|here| here.recorder.is_same(&self.recorder));
        if let Some(here) = here {
            return if here.number == self.number {
                // It goes on in the same step.
                Some(self.recorder.lock().next_step(self.number))
            } else {
                here.cut()
            };
        }
        let is_ending = (self.recorder.runs_task)();
        let ended = ENDED.try_with(|ended| ended.borrow().clone());
        ended
            .ok()
            .flatten()
            .filter(|(recorder, _)| is_ending && recorder.is_same(&self.recorder))
            .map(|(_, last)| last)
    }

    /// It took the result of `task`.
    pub(super) fn took(&self, task: Id) {
        if !self.runs_here() {
            return;
        }
        let awaited = {
            let log = self.recorder.lock();
            log.named(task).and_then(|thread| log.last_step(thread))
        };
        let Some(awaited) = awaited.filter(|place| self.state.lock().woken_by != Some(place.0))
        else {
            return;
        };
        self.cut();
        let mut log = self.recorder.lock();
        let next = log.next_step(self.number);
        log.edge(awaited, next);
    }

    /// A poll of the task that carries it.
    pub(crate) fn poll<T>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let waker = self.tells(cx.waker().clone());
        self.begin();
        let end = Then(self, RecordedThread::end);
        let polled = poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            mem::forget(end);
            self.suspend();
        }
        polled
    }

    /// The run of the closure that carries it.
    pub(crate) fn run<R>(&self, run: impl FnOnce() -> R) -> R {
        self.begin();
        let _end = Then(self, RecordedThread::end);
        run()
    }

    fn tells(self: &Arc<Self>, waker: Waker) -> Waker {
        Waker::from(Arc::new(Tells {
            recorded: self.clone(),
            waker,
        }))
    }
}

/// Calls the function when this is dropped, so after code of the program that unwinds as well.
struct Then<'a>(&'a RecordedThread, fn(&RecordedThread));

impl Drop for Then<'_> {
    fn drop(&mut self) {
        self.1(self.0);
    }
}

/// A waker that tells the thread which step woke it.
struct Tells {
    recorded: Arc<RecordedThread>,
    waker: Waker,
}

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.recorded.wake();
        self.waker.wake_by_ref();
    }
}

/// The waits of a stack in the middle of its code.
pub(crate) struct Waits(Option<Arc<RecordedThread>>);

/// The calling stack, whose waker this is, may have to wait: the waker that it is to wait with instead, and by what.
#[cold]
pub(crate) fn waits(waker: Waker) -> (Waits, Waker) {
    match here().filter(|recorded| recorded.runs_here()) {
        Some(recorded) => {
            let waker = recorded.tells(waker);
            (Waits(Some(recorded)), waker)
        }
        None => (Waits(None), waker),
    }
}

impl Waits {
    /// For where nothing is recorded.
    pub(crate) const NEVER: Waits = Waits(None);

    /// Waits, by this call.
    pub(crate) fn during(&self, wait: impl FnOnce()) {
        let _begin = self.0.as_deref().map(|recorded| {
            recorded.suspend();
            Then(recorded, RecordedThread::begin)
        });
        wait();
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::{super::Machine, *};
    use std::{
        panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
        time::Duration,
    };

    /// In a child of `fork` a wait is refused, and the code that waits unwinds.
    #[test]
    fn a_wait_that_unwinds_is_over() {
        let recorder = Recorder::new(10, || false);
        let thread = RecordedThread::new(&recorder, None, 0).unwrap();
        thread.run(|| {
            let waits = Waits(Some(thread.clone()));
            let unwinds = || {
                waits.during(|| {
                    std::thread::sleep(Duration::from_millis(1));
                    thread.wake();
                    resume_unwind(Box::new(()));
                });
            };
            assert!(catch_unwind(AssertUnwindSafe(unwinds)).is_err());
        });
        let machine = Machine {
            workers: 1,
            prompt: true,
            scheduling: 0,
            searching: 0,
        };
        let text = recorder.recording(machine).to_json();
        assert_eq!(text.matches("\"latency\"").count(), 1, "{text}");
    }
}
