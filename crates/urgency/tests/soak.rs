//! A soak: a million contexts in a release build, in waves. They sleep, yield, wait for each other, fork and block;
//! some are cancelled, some panic. Each is accounted for, and none leaves memory behind.
//!
//! The gates are counts. Each handle says what became of its context, the contexts' own count of the living comes back
//! to zero, and the runtime's report adds up to the same numbers. An allocator counts what is allocated: after each
//! wave the number of allocations comes back to what it was after the first waves, which leave what the runtime keeps
//! for use again (threads, arrays that have grown).

mod common;

use common::{Random, ends, number};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    future::pending,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicIsize, AtomicU64, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    JoinErrorKind, JoinHandle, LevelId, Runtime, Shutdown, join, spawn,
    sync::{Mutex, Notify, Semaphore, mpsc, oneshot},
    time::{sleep, timeout},
    yield_now,
};

urgency::levels! { App: Urgent > Usual > Patient }

/// The waves of a soak.
const WAVES: usize = 10;
/// The waves that may leave memory behind for use again.
const WARM_UP: usize = 3;
/// The contexts of a wave.
const CONTEXTS: usize = if cfg!(debug_assertions) {
    2_000
} else {
    100_000
};
/// How many allocations more than after the warm-up there may be: less than one in a hundred contexts of the waves
/// since.
const MARGIN: isize = 128 + (CONTEXTS / 200) as isize;
/// How many allocations at most a runtime keeps for each thread that ran beside the others, for the next ones.
const OF_A_THREAD: isize = 8;

/// Counts the allocations that exist.
struct Counting;

static ALLOCATIONS: AtomicIsize = AtomicIsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: by the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATIONS.fetch_sub(1, Relaxed);
        // SAFETY: by the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A context's body that has not been dropped.
struct Alive(Arc<AtomicIsize>);

impl Alive {
    fn new(count: &Arc<AtomicIsize>) -> Self {
        count.fetch_add(1, Relaxed);
        Alive(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// What the handles say became of contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ends {
    finished: u64,
    panicked: u64,
    cancelled: u64,
}

impl Ends {
    fn note(&mut self, handle: JoinHandle<()>) {
        match handle.get().map_err(|error| error.kind()) {
            Ok(()) => self.finished += 1,
            Err(JoinErrorKind::Panicked) => self.panicked += 1,
            Err(JoinErrorKind::Cancelled) => self.cancelled += 1,
            Err(other) => panic!("a context was given up: {other:?}"),
        }
    }

    fn add(&mut self, other: Ends) {
        self.finished += other.finished;
        self.panicked += other.panicked;
        self.cancelled += other.cancelled;
    }

    fn all(self) -> u64 {
        self.finished + self.panicked + self.cancelled
    }
}

/// What the contexts share.
struct Shared {
    alive: Arc<AtomicIsize>,
    /// How many contexts were spawned by others.
    children: Arc<AtomicU64>,
    permits: Arc<Semaphore>,
    count: Arc<Mutex<u64>>,
    never: Arc<Notify>,
    messages: mpsc::Sender<u64>,
}

impl Shared {
    /// Spawns a context. `promised` is the other end of a oneshot channel, for the next context that sends.
    fn spawn(
        &self,
        runtime: &Runtime,
        random: &mut Random,
        promised: &mut Option<oneshot::Sender<()>>,
    ) -> JoinHandle<()> {
        let alive = Alive::new(&self.alive);
        let level = LevelId::new(random.below(3) as u8).unwrap();
        let kind = random.below(64);
        match kind {
            0..10 => runtime.at(level).spawn(async move {
                let _alive = alive;
                for _ in 0..kind {
                    yield_now().await;
                }
            }),
            10..20 => runtime.at(level).spawn(async move {
                let _alive = alive;
                sleep(Duration::from_micros(kind * kind)).await;
            }),
            20..28 => {
                let permits = self.permits.clone();
                runtime.at(level).spawn(async move {
                    let _alive = alive;
                    let _permit = permits.acquire().await.unwrap();
                    yield_now().await;
                })
            }
            28..34 => {
                let messages = self.messages.clone();
                runtime.at(level).spawn(async move {
                    let _alive = alive;
                    messages.send(kind).await.unwrap();
                })
            }
            // One of two waits for the other. Either may be cancelled, and the last one may have no partner.
            34..38 => match promised.take() {
                Some(sender) => runtime.at(level).spawn(async move {
                    let _alive = alive;
                    yield_now().await;
                    let _ = sender.send(());
                }),
                None => {
                    let (sender, receiver) = oneshot::channel();
                    *promised = Some(sender);
                    runtime.at(level).spawn(async move {
                        let _alive = alive;
                        let _ = receiver.await;
                    })
                }
            },
            38..42 => runtime.at(level).spawn(async move {
                let _alive = alive;
                let limit = timeout(Duration::from_micros(kind), pending::<()>());
                assert!(limit.await.is_err());
            }),
            42..48 => {
                let children = self.children.clone();
                runtime.at(level).spawn(async move {
                    children.fetch_add(1, Relaxed);
                    let child = spawn(async move {
                        let _alive = alive;
                        yield_now().await;
                    });
                    child.await.unwrap();
                })
            }
            48..54 => runtime.at(level).spawn(async move {
                let _alive = alive;
                let fork = |n| move || (0..n).sum::<u64>();
                let (one, other) = join(fork(kind), fork(kind));
                assert_eq!(one, other);
            }),
            54..56 => {
                let count = self.count.clone();
                runtime.at(level).spawn_fn(move || {
                    let _alive = alive;
                    *count.blocking_lock() += 1;
                })
            }
            56..60 => {
                let never = self.never.clone();
                let waits = runtime.at(level).spawn(async move {
                    let _alive = alive;
                    never.notified().await;
                });
                waits.abort();
                waits
            }
            _ => runtime.at(level).spawn(async move {
                let _alive = alive;
                yield_now().await;
                // Without the hook, which prints.
                resume_unwind(Box::new("on purpose"));
            }),
        }
    }

    /// Spawns a wave of contexts, cancels some of all kinds, and waits for them.
    fn wave(&self, runtime: &Runtime, random: &mut Random) -> Ends {
        let (mut ends, mut promised) = (Ends::default(), None);
        let mut handles = Vec::with_capacity(CONTEXTS);
        for _ in 0..CONTEXTS {
            let handle = self.spawn(runtime, random, &mut promised);
            handles.push(handle);
            if random.below(16) == 0 {
                handles[random.below(handles.len() as u64) as usize].abort();
            }
        }
        drop(promised);
        handles.into_iter().for_each(|handle| ends.note(handle));
        ends
    }
}

/// Waits until `count` has come down to `most`: memory of a context may be freed a moment after its handle has its
/// result. What it is, if it does not come down.
fn comes_down(count: &AtomicIsize, most: isize) -> Result<(), isize> {
    let limit = Instant::now() + Duration::from_secs(20);
    while count.load(SeqCst) > most {
        if Instant::now() > limit {
            return Err(count.load(SeqCst));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[test]
fn of_a_million_contexts_each_is_accounted_for_and_none_leaves_memory() {
    let seed = number("URGENCY_TEST_SEED", 1);
    ends(move || {
        let runtime = Runtime::builder()
            .workers(4)
            .levels::<App>()
            .build()
            .unwrap();
        let (messages, mut received) = mpsc::channel(8);
        let shared = Shared {
            alive: Arc::default(),
            children: Arc::default(),
            permits: Arc::new(Semaphore::new(8)),
            count: Arc::default(),
            never: Arc::default(),
            messages,
        };
        let receiver = runtime.spawn(async move { while received.recv().await.is_some() {} });
        let mut random = Random::new(seed);
        let (mut total, mut warm) = (Ends::default(), 0);
        // The machine decides how many threads there are at once: a thread without a processor loses its worker.
        let of_threads = || OF_A_THREAD * runtime.stats().threads_peak as isize;
        let mut warm_threads = 0;
        for wave in 0..WAVES {
            let ends = shared.wave(&runtime, &mut random);
            assert_eq!(ends.all(), CONTEXTS as u64, "{ends:?}");
            assert_eq!(
                comes_down(&shared.alive, 0),
                Ok(()),
                "contexts that are not dropped"
            );
            if wave < WARM_UP {
                thread::sleep(Duration::from_millis(50));
                warm = warm.max(ALLOCATIONS.load(SeqCst));
                warm_threads = of_threads();
            } else {
                let most = warm + MARGIN + of_threads() - warm_threads;
                let left = comes_down(&ALLOCATIONS, most);
                assert_eq!(left, Ok(()), "allocations after wave {wave}; {warm} before");
            }
            total.add(ends);
        }
        let children = shared.children.load(SeqCst);
        drop(shared);
        receiver.get().unwrap();
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!(report.left, 0, "{report:?}");
        assert_eq!(report.spawned, total.all() + children + 1, "{report:?}");
        assert_eq!(report.finished, total.finished + children + 1, "{report:?}");
        let others = (report.panicked, report.cancelled);
        assert_eq!(others, (total.panicked, total.cancelled), "{report:?}");
        println!("seed {seed}: {total:?}, {children} children, {warm} allocations");
    });
}
