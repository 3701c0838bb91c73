//! A service with three jobs on one set of cores: requests over a socket, an index that is built, a backup. Their
//! shares are changed while they run, and clients see what that means for the latency of a request.
//!
//! ```text
//! cargo run --release --example three_jobs
//! ```
//!
//! Indexing and backup always have more to do than the machine can. The requests need a fifth of it, so a share of a
//! tenth is too little: each client comes later and later. A least number of cores is enough again, whatever the
//! weight.

use std::{
    error::Error,
    hint::black_box,
    io::{self, Read, Write},
    net::SocketAddr,
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    jobs::{self, CoreSet, JobHandle, SubmitError},
    net::{TcpListener, TcpStream},
    policy::cores::Demand,
    scope, spawn, spawn_fn,
};

/// How many requests each client sends while the shares below hold, and how often.
const REQUESTS: u32 = 30;
const INTERVAL: Duration = Duration::from_millis(20);

/// What a request computes. With two clients for each core that is a fifth of the cores.
const REQUEST: Duration = Duration::from_millis(2);

/// How many rounds of [`sum`] a microsecond has.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

fn sum(n: u64) -> u64 {
    (0..n).fold(0, |sum, number| black_box(sum + number))
}

/// Computes for so long, if nothing interrupts it. It comes to no scheduling point.
fn compute(time: Duration) {
    black_box(sum(ROUNDS.load(Relaxed) * time.as_micros() as u64));
}

/// The job of the requests: listens, and tells the address.
async fn serve(tell: mpsc::Sender<SocketAddr>) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let _ = tell.send(listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        spawn(answer(stream)).detach();
    }
}

/// Each byte of a connection is a request, and has a byte as its answer.
async fn answer(stream: TcpStream) -> io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? == 1 {
        let half = || compute(REQUEST / 2);
        let fork = spawn_fn(move || urgency::join(half, half));
        fork.await.map_err(io::Error::other)?;
        stream.write_all(&byte).await?;
    }
    Ok(())
}

/// Submits a job that does `piece` on all cores, until it is cancelled. Its progress is how many pieces are done.
fn endless(cores: &CoreSet, name: &'static str, piece: fn()) -> Result<JobHandle<()>, SubmitError> {
    cores.job().name(name).spawn_fn(move || {
        let done = AtomicU64::new(0);
        let pieces = || {
            while !jobs::is_cancelled() {
                piece();
                jobs::report(done.fetch_add(1, Relaxed) + 1, 0);
                urgency::scheduling_point();
            }
        };
        let workers = urgency::Runtime::current().stats().workers.len();
        scope(|scope| (0..workers).for_each(|_| scope.spawn(pieces)));
    })
}

fn index_document() {
    compute(Duration::from_micros(100));
}

/// Longer than a scheduling point should be away, as of code that knows nothing of this library.
fn copy_block() {
    compute(Duration::from_millis(1));
}

/// A plain thread, as a client elsewhere would be: a request each [`INTERVAL`], or later if the last answer is late.
/// A latency is counted from the moment at which the request was due.
fn client(address: SocketAddr, offset: Duration) -> io::Result<Vec<Duration>> {
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let start = Instant::now() + offset;
    let latencies = (0..REQUESTS).map(|number| {
        let due = start + INTERVAL * number;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        stream.write_all(&[0])?;
        stream.read_exact(&mut [0])?;
        Ok(due.elapsed())
    });
    latencies.collect()
}

/// A service that runs.
struct Service {
    address: SocketAddr,
    clients: u32,
    controls: [jobs::JobControl; 3],
}

impl Service {
    /// Lets the jobs run with these demands until the clients have their answers, and prints what each had.
    fn phase(&self, title: &str, demands: [Demand; 3]) -> Result<(), Box<dyn Error>> {
        for (job, demand) in self.controls.iter().zip(demands) {
            job.set_demand(demand)?;
        }
        // The change takes some milliseconds.
        thread::sleep(Duration::from_millis(20));
        let done = || self.controls.each_ref().map(|job| job.progress().done);
        let (before, mut had, mut latencies) = (done(), [0; 3], Vec::new());
        thread::scope(|threads| {
            let clients: Vec<_> = (0..self.clients)
                .map(|number| INTERVAL * number / self.clients)
                .map(|offset| threads.spawn(move || client(self.address, offset)))
                .collect();
            while clients.iter().any(|client| !client.is_finished()) {
                for (had, job) in had.iter_mut().zip(&self.controls) {
                    *had += job.stats().map_or(0, |stats| stats.share.serving);
                }
                thread::sleep(Duration::from_millis(1));
            }
            for client in clients {
                latencies.extend(client.join().expect("a client does not panic")?);
            }
            io::Result::Ok(())
        })?;
        let (after, all) = (done(), had.iter().sum::<usize>().max(1));
        latencies.sort();
        let at = |part: usize| latencies[(latencies.len() - 1) * part / 100];
        println!("{title}");
        for (place, job) in self.controls.iter().enumerate() {
            let (part, name) = (100 * had[place] / all, job.name().unwrap_or_default());
            print!("  {name:8} {part:3} % of the cores, ");
            match after[place] - before[place] {
                0 => println!("latency p50 {:.1?}, p99 {:.1?}", at(50), at(99)),
                pieces => println!("{pieces} pieces"),
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    black_box(sum(2_000_000));
    ROUNDS.store(
        2_000_000 / start.elapsed().as_micros().max(1) as u64,
        Relaxed,
    );

    let cores = CoreSet::builder().build()?;
    let (tell, told) = mpsc::channel();
    let requests = cores.job().name("requests").spawn(serve(tell))?;
    let address = told.recv()?;
    let service = Service {
        address,
        clients: 2 * thread::available_parallelism()?.get() as u32,
        controls: [
            requests.control(),
            endless(&cores, "indexing", index_document)?.control(),
            endless(&cores, "backup", copy_block)?.control(),
        ],
    };
    let weights = |requests, indexing, backup| {
        [requests, indexing, backup].map(|weight| Demand {
            weight,
            ..Demand::default()
        })
    };
    let mut kept = weights(1, 1, 8);
    kept[0].min_cores = 1;
    service.phase("all alike", weights(1, 1, 1))?;
    service.phase("day: requests 6, indexing 3, backup 1", weights(6, 3, 1))?;
    service.phase("night: backup 8, requests and indexing 1", weights(1, 1, 8))?;
    service.phase("the same, and at least one core for requests", kept)?;
    cores.cancel_all();
    cores.drain();
    Ok(())
}
