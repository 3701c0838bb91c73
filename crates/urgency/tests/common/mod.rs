//! What the black-box tests share: a hang is a failure, a child process for what spoils a process.

#![allow(dead_code, reason = "each test file uses a part")]

use rustix::process::{Resource, Rlimit, setrlimit};
use std::{
    future::{Future, poll_fn},
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    pin::Pin,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use urgency::{JoinHandle, Runtime, join, level::Levels, policy::cores::Demand, time};

/// Far above anything that a passing test needs, on a crowded machine in a debug build; in seconds, and to be
/// set by the environment.
fn hangs() -> Duration {
    Duration::from_secs(number("URGENCY_TEST_HANGS", 100))
}

/// Set in a child process that runs one test of this binary.
const CHILD: &str = "URGENCY_TEST_CHILD";

/// The number that a variable of the environment says, or the usual one.
pub fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Threads and descriptors of the process.
pub fn threads_and_descriptors() -> (usize, usize) {
    let count = |what| std::fs::read_dir(what).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// So many rounds, or a few where an interpreter runs them.
pub const fn rounds(count: usize) -> usize {
    if cfg!(miri) {
        count.div_ceil(50)
    } else {
        count
    }
}

pub fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

pub fn with_levels<L: Levels>(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers).levels::<L>();
    builder.build().unwrap()
}

pub fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// Runs so many leaves in a tree of joins.
pub fn joined(count: usize, leaf: &(impl Fn() + Sync)) {
    match count {
        1 => leaf(),
        _ => {
            let half = count / 2;
            join(|| joined(half, leaf), || joined(count - half, leaf));
        }
    }
}

/// Counts pieces of work that have begun and not ended.
#[derive(Default)]
pub struct InProgress {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl InProgress {
    /// Counts this as a piece.
    pub fn during(&self, piece: impl FnOnce()) {
        self.most
            .fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
        piece();
        self.now.fetch_sub(1, SeqCst);
    }

    /// How many there were at once, at most.
    pub fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}

/// Runs a test's body on a thread of its own; if it hangs, the test fails.
#[track_caller]
pub fn ends<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = body();
        let _ = tell.send(());
        result
    });
    if told.recv_timeout(hangs()) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs:\n{}", what_threads_do());
    }
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The threads of this process: their names, the kernel's state of each, the call in which it sleeps, and its time
/// in ticks of the kernel. Where there is a debugger, their stacks as well.
fn what_threads_do() -> String {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut lines: Vec<_> = threads
        .flatten()
        .map(|thread| {
            let read = |file| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let stat = read("stat");
            let fields: Vec<_> = stat
                .rsplit(')')
                .next()
                .unwrap()
                .split_whitespace()
                .collect();
            let field = |number: usize| fields.get(number - 3).copied().unwrap_or("?");
            let (state, user, system) = (field(3), field(14), field(15));
            let (name, place) = (read("comm"), read("wchan"));
            format!("{} {state} {place} {user}+{system}", name.trim())
        })
        .collect();
    // Into a file: the debugger stops this process, which could not read a pipe that is full. Miri starts no process,
    // and would end the test program here.
    let path = std::env::temp_dir().join(format!("urgency-hangs-{}", std::process::id()));
    if !cfg!(miri)
        && let Ok(stacks) = std::fs::File::create(&path)
    {
        let mut debugger = Command::new("gdb");
        debugger.args(["-batch", "-ex", "thread apply all backtrace 24", "-p"]);
        let debugger = debugger.arg(std::process::id().to_string());
        let _ = debugger.stdout(stacks).stderr(Stdio::null()).status();
        lines.extend(std::fs::read_to_string(&path));
        let _ = std::fs::remove_file(&path);
    }
    lines.join("\n")
}

/// One poll, after which nothing is woken.
pub fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The results of all.
pub fn all<T: 'static>(handles: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    handles.into_iter().map(|h| h.get().unwrap()).collect()
}

/// The process is an ordinary user's from now on, and may not raise a thread.
pub fn drop_permission() {
    // SAFETY: plain numbers in; this process runs one test.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_NICE, &raw const none);
        // The call is refused to an ordinary user, and then the process has no permission anyway.
        libc::setresuid(65534, 65534, 65534);
    }
}

/// Waits until it is so.
#[track_caller]
pub fn until(is_so: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < limit, "it does not come");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `f` on a second worker, while the calling code waits for that in a closure of a `join`.
pub fn stolen<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let started = AtomicBool::new(false);
    let wait = || {
        while !started.load(SeqCst) {
            std::hint::spin_loop();
        }
    };
    let f = || {
        started.store(true, SeqCst);
        f()
    };
    urgency::join(wait, f).1
}

/// Which scheduling class a thread of a folder in `/proc` is in, as the kernel numbers them: see [`USUAL`].
pub fn class_of(thread: &Path) -> Option<u32> {
    let stat = std::fs::read_to_string(thread.join("stat")).ok()?;
    // Field 41. The name, in parentheses, may contain anything; field 3 follows it.
    stat.rsplit(')')
        .next()?
        .split_whitespace()
        .nth(38)?
        .parse()
        .ok()
}

/// The calling thread's folder in `/proc`, for [`class_of`] on any thread.
pub fn my_folder() -> PathBuf {
    Path::new("/proc").join(std::fs::read_link("/proc/thread-self").unwrap_or_default())
}

/// The scheduling class of all threads that asked for none.
pub const USUAL: Option<u32> = Some(0);
/// The real-time class, in turn.
pub const REAL_TIME: Option<u32> = Some(2);
/// The class of threads that run when no other wants to.
pub const IDLE: Option<u32> = Some(5);

/// Whether a thread of this process may go to a scheduling class, and come back.
#[cfg(target_os = "linux")]
pub fn may_enter(class: Option<u32>) -> bool {
    let enter = |class: Option<u32>| {
        let parameters = libc::sched_param {
            sched_priority: i32::from(class == REAL_TIME),
        };
        let class = class.unwrap() as i32;
        // SAFETY: `parameters` outlives the call.
        unsafe { libc::sched_setscheduler(0, class, &parameters) == 0 }
    };
    let probe = thread::spawn(move || enter(class) && enter(USUAL));
    probe.join().unwrap()
}

#[cfg(not(target_os = "linux"))]
pub fn may_enter(_: Option<u32>) -> bool {
    false
}

/// Whether this process was made by [`in_child`].
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs the test `name` of this binary in a process of its own, where [`is_child`] is true.
#[track_caller]
pub fn in_child(name: &str) {
    in_child_where(CHILD, "1", name);
}

/// As [`in_child`], with an environment variable.
#[track_caller]
pub fn in_child_where(variable: &str, value: &str, name: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env(variable, value)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > hangs() + Duration::from_secs(1) {
            child.kill().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let status = status.unwrap_or_else(|| panic!("the child hangs: {text}"));
    assert!(status.success(), "{status}: {text}");
    assert!(text.contains("1 passed"), "no such test: {name}: {text}");
    text.lines()
        .filter(|line| line.contains("skipped"))
        .for_each(|line| println!("{line}"));
}

/// Counts its drops.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicUsize>);

impl Count {
    pub fn get(&self) -> usize {
        self.0.load(SeqCst)
    }

    pub fn on_drop(&self) -> impl Drop + Send + use<> {
        struct Dropped(Count);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.0.fetch_add(1, SeqCst);
            }
        }
        Dropped(self.clone())
    }
}

/// A small generator with a seed, for random programs.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Panics on purpose are not reported.
pub fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let on_purpose = text.is_some_and(|t| t.contains("on purpose"));
            if !on_purpose {
                usual(info);
            }
        }));
    });
}

/// The text of the panic of `f`, which must panic.
pub fn panics<R>(f: impl FnOnce() -> R) -> String {
    quiet();
    let Err(panic) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("it does not panic");
    };
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .expect("a text")
}

/// Forks, tasks, closures and timers go on.
pub fn still_works(runtime: &Runtime) {
    assert_eq!(runtime.run(|| fib(12)), 144);
    assert_eq!(runtime.spawn(async { 1 }).get().unwrap(), 1);
    assert_eq!(runtime.spawn_fn(|| fib(3)).get().unwrap(), 2);
    let slept = runtime.spawn(async {
        time::sleep(Duration::from_millis(1)).await;
        2
    });
    assert_eq!(slept.get().unwrap(), 2);
}

/// Ends the future that was made with it.
pub type Tell<T> = Box<dyn FnOnce(T) + Send>;

/// A future, and what ends it.
pub fn one_shot<T: Send + 'static>() -> (Tell<T>, impl Future<Output = T> + Send) {
    let slot = Arc::new(Mutex::new((None::<T>, None::<Waker>)));
    let theirs = slot.clone();
    let tell = move |value| {
        let waker = {
            let mut slot = theirs.lock().unwrap();
            slot.0 = Some(value);
            slot.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    };
    let wait = poll_fn(move |cx| {
        let mut slot = slot.lock().unwrap();
        match slot.0.take() {
            Some(value) => Poll::Ready(value),
            None => {
                slot.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    });
    (Box::new(tell), wait)
}

pub fn weight(weight: u32) -> Demand {
    Demand {
        weight,
        ..Demand::default()
    }
}

pub fn least(min_cores: usize) -> Demand {
    Demand {
        min_cores,
        ..Demand::default()
    }
}

/// Computes for so long, without a scheduling point.
pub fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        hint::spin_loop();
    }
}

/// Goes round so often.
pub fn work(rounds: u64) {
    (0..rounds).for_each(|round| _ = hint::black_box(round));
}

/// How often [`work`] goes round in this time, about.
pub fn rounds_in(time: Duration) -> u64 {
    const ROUNDS: u64 = 1_000_000;
    let since = Instant::now();
    work(ROUNDS);
    (time.as_secs_f64() / since.elapsed().as_secs_f64() * ROUNDS as f64) as u64
}

/// For how long the calling thread has run.
#[cfg(target_os = "linux")]
pub fn run_time() -> Duration {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// For how long all threads of the process have run.
#[cfg(target_os = "linux")]
pub fn run_time_of_all() -> Duration {
    time_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[cfg(target_os = "linux")]
fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Takes all descriptors that are left, and returns them.
pub fn no_more_descriptors() -> Vec<std::fs::File> {
    let limit = Rlimit {
        current: Some(200),
        maximum: Some(200),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}

/// How much memory the process has mapped, in bytes.
pub fn mapped_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kilobytes: u64 = size.unwrap().trim_end_matches("kB").trim().parse().unwrap();
    kilobytes << 10
}

/// The process may map so much from now on.
pub fn limit_memory(limit: Option<u64>) {
    let limit = Rlimit {
        current: limit,
        maximum: None,
    };
    setrlimit(Resource::As, limit).unwrap();
}
