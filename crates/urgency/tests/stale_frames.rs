//! A progressive renderer as a newcomer writes it from the public documentation alone: a camera that moves makes the
//! frame in work stale. The coarse pass is urgent and the fine one less so, thumbnails are below, and all of them fork.
//! Stale passes are cancelled by a token or dropped. The last frame comes, each frame that comes is whole, and nothing
//! is left.

mod common;

use common::{Random, ends};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    Criterion, LevelId, Runtime, Shutdown, at, current_level, levels,
    life::{CancellationToken, task_scope},
    policy::Schedule,
    scope, select,
    sync::{RwLock, mpsc, watch},
    yield_now,
};

levels! { App: Ui > Preview > Refine > Thumbnails }

const TILE: u64 = 8;
const MOVES: u64 = 40;

/// How large the frames of the two passes are.
const COARSE: u64 = 16;
const FINE: u64 = 48;

/// A frame that is whole.
struct Frame {
    camera: u64,
    size: u64,
    sum: u64,
}

fn trace(x: u64, y: u64, camera: u64) -> u64 {
    (0..20).fold(x ^ y << 16 ^ camera << 32, |light, _| {
        (light ^ light >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    })
}

fn tile(left: u64, top: u64, camera: u64) -> u64 {
    let places = (top..top + TILE).flat_map(|y| (left..left + TILE).map(move |x| (x, y)));
    places.fold(0, |sum, (x, y)| sum.wrapping_add(trace(x, y, camera)))
}

fn tiles(size: u64) -> impl Iterator<Item = (u64, u64)> {
    let steps = move || (0..size).step_by(TILE as usize);
    steps().flat_map(move |top| steps().map(move |left| (left, top)))
}

/// The sum of a frame by nested scopes; `None` if it became stale meanwhile.
fn render(size: u64, camera: u64, stale: &CancellationToken) -> Option<u64> {
    let (sum, is_whole) = (&AtomicU64::new(0), &AtomicBool::new(true));
    scope(|rows| {
        for top in (0..size).step_by(TILE as usize) {
            rows.spawn(move || {
                scope(|row| {
                    for left in (0..size).step_by(TILE as usize) {
                        row.spawn(move || {
                            if stale.is_cancelled() {
                                is_whole.store(false, SeqCst);
                            } else {
                                sum.fetch_add(tile(left, top, camera), SeqCst);
                            }
                        });
                    }
                });
            });
        }
    });
    is_whole.load(SeqCst).then(|| sum.load(SeqCst))
}

/// What all parts of the program share.
struct Program {
    end: CancellationToken,
    scene: RwLock<u64>,
    /// Passes that are in a future which has not been dropped.
    passes: AtomicUsize,
}

struct Pass(Arc<Program>);

impl Pass {
    fn begin(program: &Arc<Program>) -> Self {
        program.passes.fetch_add(1, SeqCst);
        Pass(program.clone())
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.passes.fetch_sub(1, SeqCst);
    }
}

/// Both passes of one frame, each as a task at its level.
async fn passes(
    program: Arc<Program>,
    camera: u64,
    stale: CancellationToken,
    to: mpsc::Sender<Frame>,
) {
    task_scope(async |tasks| {
        for (level, size) in [(LevelId::from(Preview), COARSE), (Refine.into(), FINE)] {
            let (pass, stale, to) = (Pass::begin(&program), stale.clone(), to.clone());
            let task = async move {
                drop(pass.0.scene.read().await);
                assert_eq!(current_level(), level);
                if let Some(sum) = render(size, camera, &stale) {
                    let _ = to.send(Frame { camera, size, sum }).await;
                }
            };
            tasks.at(level).spawn(task).detach();
        }
    })
    .await;
}

/// Renders what the camera sees, until the end. Every other stale frame ends by itself, the rest are dropped.
async fn direct(program: Arc<Program>, mut camera: watch::Receiver<u64>, to: mpsc::Sender<Frame>) {
    for round in 0.. {
        let place = *camera.borrow_and_update();
        let stale = program.end.child_token();
        let mut work = Box::pin(passes(program.clone(), place, stale.clone(), to.clone()));
        let moved = select! {
            () = &mut work => camera.changed().await,
            moved = camera.changed() => {
                stale.cancel();
                if round % 2 == 0 {
                    work.await;
                }
                moved
            }
        };
        if moved.is_err() {
            break;
        }
    }
}

/// Compares each frame with one that is computed without forks. The last place of the camera in a fine frame is told.
async fn check(mut frames: mpsc::Receiver<Frame>, seen: watch::Sender<u64>) {
    while let Some(Frame { camera, size, sum }) = frames.recv().await {
        let plain = at(Refine).spawn_fn(move || {
            tiles(size).fold(0, |sum: u64, (x, y)| sum.wrapping_add(tile(x, y, camera)))
        });
        plain.boost();
        assert_eq!(plain.await.unwrap(), sum, "frame {camera} of size {size}");
        if size == FINE {
            seen.send_if_modified(|last| {
                *last = camera.max(*last);
                true
            });
        }
    }
}

/// Thumbnails of the scene, until the end.
async fn thumbnails(program: Arc<Program>) {
    while !program.end.is_cancelled() {
        let scene = *program.scene.read().await;
        render(COARSE, scene, &program.end);
        yield_now().await;
    }
}

fn session(runtime: &Runtime, random: &mut Random, changes: bool) {
    let program = Arc::new(Program {
        end: CancellationToken::new(),
        scene: RwLock::new(0),
        passes: AtomicUsize::new(0),
    });
    let (move_to, camera) = watch::channel(0);
    let (to, frames) = mpsc::channel(4);
    let (seen, mut sees) = watch::channel(0);
    let thumbnails = [(); 2].map(|()| runtime.at(Thumbnails).spawn(thumbnails(program.clone())));
    let director = runtime.at(Ui).spawn(direct(program.clone(), camera, to));
    let checker = runtime.at(Ui).spawn(check(frames, seen));
    for place in 1..=MOVES {
        move_to.send(place).unwrap();
        thread::sleep(Duration::from_micros(random.below(2_000)));
        *program.scene.blocking_write() += 1;
        if changes && place % 8 == 0 {
            let shares = Criterion::from_shares(&[0.4, 0.3, 0.2, 0.1]).unwrap();
            runtime.set_fairness(shares).unwrap();
        } else if changes && place % 4 == 0 {
            runtime.set_schedule(Schedule::default()).unwrap();
        }
    }
    urgency::block_on(sees.wait_for(|last| *last == MOVES)).expect("the last frame");
    drop(move_to);
    director.get().unwrap();
    checker.get().unwrap();
    program.end.cancel();
    for task in thumbnails {
        task.get().unwrap();
    }
    common::until(|| program.passes.load(SeqCst) == 0);
}

#[test]
fn frames_that_become_stale_end_and_the_last_one_is_whole_beside_thumbnails() {
    ends(|| {
        for workers in 1..=3 {
            let runtime = common::with_levels::<App>(workers);
            let mut random = Random::new(workers as u64);
            for changes in [false, true] {
                session(&runtime, &mut random, changes);
            }
            let report = runtime.shutdown(Shutdown::Drain);
            assert_eq!((report.panicked, report.left), (0, 0), "{report:?}");
        }
    });
}
