//! How many leaves are in progress where they are as long as endless loops, and where they are at three levels, also
//! beside calls that sleep in the kernel; how many endless loops go on at once. All by count.
//!
//! What is counted is pieces of work that have begun and not ended, of all levels together. Each piece is on a thread
//! of its own, and code between two pieces is the scheduler's. So no more threads compute than pieces are in progress,
//! whether they are runnable at that moment or sleep.
//!
//! Pieces are as long as their threads run, since relief counts that, too: with 8 workers on two processors a piece
//! takes four times as long by the clock.

mod common;

use common::{InProgress, ends, joined, run_time, with_levels};
use std::{
    hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
        mpsc::channel,
    },
    thread,
    time::Duration,
};
use urgency::{At, JoinHandle, Runtime, par, scope, time};

urgency::levels! { pub App: Urgent > Usual > Batch }

/// For how long relief lets a loop keep its worker from its equals: `LONG` in `sched/rescue/relief.rs`.
const LONG: Duration = Duration::from_millis(100);

fn joins(pieces: &Counted, count: usize, length: Duration) {
    joined(count, &|| pieces.piece(length));
}

fn scopes(pieces: &Counted, count: usize, length: Duration) {
    scope(|s| (0..count).for_each(|_| s.spawn(|| pieces.piece(length))));
}

fn loops(pieces: &Counted, count: usize, length: Duration) {
    par::for_each(0..count, |_| pieces.piece(length));
}

/// What runs so many pieces of a length.
type Shape = fn(&Counted, usize, Duration);

/// The pieces of a level, and of all levels.
#[derive(Clone, Default)]
struct Counted {
    own: Arc<InProgress>,
    all: Arc<InProgress>,
}

impl Counted {
    /// Of another level.
    fn other(&self) -> Self {
        Counted {
            own: Arc::default(),
            all: self.all.clone(),
        }
    }

    /// Computes for so long, of the thread's own time.
    fn piece(&self, length: Duration) {
        let compute = || {
            let since = run_time();
            while run_time() - since < length {
                (0..1000).for_each(|_| hint::spin_loop());
            }
        };
        self.all.during(|| self.own.during(compute));
    }
}

/// Work that comes now and then: so many pieces at once.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    every: Duration,
    pieces: usize,
    length: Duration,
}

impl Bursts {
    fn begin(self, at: At, counted: &Counted, ended: &Arc<AtomicBool>) -> JoinHandle<()> {
        let (counted, ended) = (counted.clone(), ended.clone());
        at.spawn(async move {
            while !ended.load(Relaxed) {
                time::sleep(self.every).await;
                let counted = counted.clone();
                let burst = move || loops(&counted, self.pieces, self.length);
                urgency::spawn_fn(burst).await.unwrap();
            }
        })
    }
}

/// Bursts of a fifth of a millisecond: none, single pieces, or more pieces than workers.
fn urgent_bursts(workers: usize) -> [Option<Bursts>; 3] {
    let bursts = |pieces| Bursts {
        every: Duration::from_millis(20),
        pieces,
        length: Duration::from_micros(200),
    };
    [None, Some(bursts(1)), Some(bursts(4 * workers))]
}

/// A piece as long as an endless loop is ahead of its worker, beside the pieces of all workers. Work that overtakes all
/// of them runs beside both.
fn long_leaves_bounded(shape: Shape, millis: u64, workers: &[usize]) {
    for workers in workers.iter().copied() {
        for bursts in urgent_bursts(workers) {
            ends(move || {
                let runtime = with_levels::<App>(workers);
                let (batch, ended) = (Counted::default(), Arc::default());
                let urgent = bursts.map(|it| it.begin(runtime.at(Urgent), &batch.other(), &ended));
                let length = Duration::from_millis(millis);
                let counted = batch.clone();
                let work = move || shape(&counted, 3 * workers, length);
                runtime.at(Batch).spawn_fn(work).get().unwrap();
                ended.store(true, Relaxed);
                urgent.into_iter().for_each(|task| task.get().unwrap());
                let (leaves, all) = (batch.own.most(), batch.all.most());
                let what = format!("{workers} workers, leaves of {length:?}, beside {bursts:?}");
                assert!(leaves <= 2 * workers, "{leaves} leaves; {what}");
                assert!(all <= 3 * workers, "{all} pieces; {what}");
            });
        }
    }
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn few_leaves_of_joins_are_in_progress_if_they_are_as_long_as_an_endless_loop() {
    long_leaves_bounded(joins, 100, &[1, 2]);
    long_leaves_bounded(joins, 150, &[1, 2, 8]);
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn few_children_of_a_scope_are_in_progress_if_they_are_as_long_as_an_endless_loop() {
    long_leaves_bounded(scopes, 150, &[1, 2]);
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn few_items_of_a_loop_are_in_progress_if_they_are_as_long_as_an_endless_loop() {
    long_leaves_bounded(loops, 150, &[1, 2]);
}

/// The most pieces in progress, of all levels, while batch leaves of this length run beside pieces of a second level
/// and these bursts.
fn most_of_three_levels(workers: usize, lengths: [u64; 2], bursts: Option<Bursts>) -> usize {
    ends(move || {
        let [leaf, middle] = lengths.map(Duration::from_millis);
        let runtime = with_levels::<App>(workers);
        let (batch, ended) = (Counted::default(), Arc::default());
        let (usual, urgent) = (batch.other(), batch.other());
        let burst = Bursts {
            every: 4 * middle,
            pieces: 2 * workers,
            length: middle,
        };
        let mut above = vec![burst.begin(runtime.at(Usual), &usual, &ended)];
        above.extend(bursts.map(|it| it.begin(runtime.at(Urgent), &urgent, &ended)));
        let counted = batch.clone();
        let work = move || joins(&counted, 4 * workers, leaf);
        runtime.at(Batch).spawn_fn(work).get().unwrap();
        ended.store(true, Relaxed);
        above.into_iter().for_each(|task| task.get().unwrap());
        batch.all.most()
    })
}

/// Each level that is overtaken as a whole leaves as many pieces behind as there are workers.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn pieces_of_three_levels_in_progress_are_at_most_three_for_each_worker() {
    for workers in [1, 2, 8] {
        for lengths in [[5, 5], [40, 10]] {
            for bursts in urgent_bursts(workers) {
                let levels = if bursts.is_some() { 3 } else { 2 };
                // A thread that sleeps in a page fault loses its worker, and is then one more: seldom three times.
                let most = (0..3).map(|_| most_of_three_levels(workers, lengths, bursts));
                let most: Vec<_> = most.take_while(|most| *most > levels * workers).collect();
                assert!(
                    most.len() < 3,
                    "{most:?} pieces; {workers} workers, leaves of {lengths:?} ms, beside {bursts:?}"
                );
            }
        }
    }
}

/// A program of a stranger: frames that fork in one poll, under a lock, and ticks above them. In the middle as many
/// calls sleep in the kernel at each level as there are workers, until a closure of the least urgent level sends to
/// them. Returns the most leaves in progress.
fn most_beside_frames_and_ticks(leaf: Duration) -> usize {
    ends(move || {
        let runtime = with_levels::<App>(2);
        let (leaves, frames) = (Counted::default(), Counted::default());
        let ended = Arc::new(AtomicBool::new(false));
        let (counted, end) = (leaves.clone(), ended.clone());
        let batch = runtime.at(Batch).spawn_fn(move || {
            while !end.load(Relaxed) {
                joins(&counted, 16, leaf);
            }
        });
        let end = ended.clone();
        let frames = runtime.at(Usual).spawn(async move {
            let drawn = Mutex::new(0);
            while !end.load(Relaxed) {
                time::sleep(Duration::from_millis(16)).await;
                let mut drawn = drawn.lock().unwrap();
                scopes(&frames, 128, Duration::from_micros(80));
                *drawn += 1;
            }
            assert!(*drawn.lock().unwrap() > 1, "frames wait for the leaves");
        });
        let end = ended.clone();
        let ticks = runtime.at(Urgent).spawn(async move {
            while !end.load(Relaxed) {
                time::sleep(Duration::from_millis(4)).await;
            }
        });
        thread::sleep(Duration::from_millis(500));
        let levels = [(); 2].map(|()| [runtime.at(Urgent), runtime.at(Usual), runtime.at(Batch)]);
        let (senders, blocked): (Vec<_>, Vec<_>) = levels
            .into_iter()
            .flatten()
            .map(|at| {
                let (sender, receiver) = channel();
                (sender, at.spawn_fn(move || receiver.recv().unwrap()))
            })
            .unzip();
        let send = move || senders.iter().for_each(|it| it.send(()).unwrap());
        runtime.at(Batch).spawn_fn(send).get().unwrap();
        blocked.into_iter().for_each(|call| call.get().unwrap());
        thread::sleep(Duration::from_millis(500));
        ended.store(true, Relaxed);
        [batch, frames, ticks]
            .into_iter()
            .for_each(|it| it.get().unwrap());
        leaves.own.most()
    })
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn beside_frames_and_ticks_blocked_calls_of_each_level_end_and_few_leaves_are_in_progress() {
    for leaf in [Duration::from_micros(40), Duration::from_millis(40)] {
        // As above: a thread that sleeps in a page fault is one more.
        let most = (0..3).map(|_| most_beside_frames_and_ticks(leaf));
        let most: Vec<_> = most.take_while(|most| *most > 4).collect();
        assert!(most.len() < 3, "{most:?} leaves of {leaf:?} in progress");
    }
}

/// As many loops as workers hold these, and as many go on without one.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn twice_as_many_endless_loops_as_workers_go_on_at_once_and_no_more() {
    for workers in [1, 2, 8] {
        ends(move || {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            // For how long each has run, in nanoseconds.
            let ran: Arc<[AtomicU64]> = (0..5 * workers).map(|_| AtomicU64::new(0)).collect();
            let endless = |i: usize| {
                let (stop, ran) = (stop.clone(), ran.clone());
                runtime.spawn_fn(move || {
                    let since = run_time();
                    while !stop.load(Relaxed) {
                        (0..1000).for_each(|_| hint::spin_loop());
                        ran[i].store((run_time() - since).as_nanos() as u64, Relaxed);
                    }
                })
            };
            let loops: Vec<_> = (0..ran.len()).map(endless).collect();
            let have_run = |time: Duration| {
                let has_run = |ran: &&AtomicU64| ran.load(Relaxed) > time.as_nanos() as u64;
                ran.iter().filter(has_run).count()
            };
            // Each of them for so long that it would have lost its worker since to one more.
            while have_run(3 * LONG) < 2 * workers {
                thread::sleep(Duration::from_millis(1));
            }
            let begun = have_run(Duration::ZERO);
            stop.store(true, Relaxed);
            loops.into_iter().for_each(|it| it.get().unwrap());
            assert_eq!(begun, 2 * workers, "{workers} workers");
        });
    }
}
