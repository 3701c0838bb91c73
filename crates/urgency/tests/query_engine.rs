//! A query engine for tenants, as a newcomer writes it from the public documentation: queries are jobs on the cores of
//! the server's runtime, their rows go back over TCP as fast as the client reads, a client that hangs up cancels its
//! query, a query that panics is an error for its client alone, and quotas change while queries run. Each row and each
//! query is accounted for. In a file of its own, because it counts what the process has.

mod common;

use common::{ends, quiet, threads_and_descriptors, until};
use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Write},
    net::{self, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    LevelId, Runtime, Shutdown,
    jobs::{self, CoreSet, JobControl, JobErrorKind, JobShutdown},
    life::CancellationToken,
    net::{TcpListener, TcpStream},
    par,
    policy::cores::{Demand, Group},
    select,
    sync::mpsc,
    task::TaskTracker,
};

urgency::levels! { Server: Admin > Client }

const LATE: Duration = Duration::from_secs(60);
const CLIENTS: u64 = 8;
const QUERIES: u64 = 40;

struct Engine {
    cores: CoreSet,
    /// How many queries ended whole, broken and stopped.
    ended: [AtomicU64; 3],
    /// The queries that run, with their tenants.
    running: Mutex<Vec<(u64, JobControl)>>,
}

fn key(row: u64, salt: u64) -> u64 {
    (row ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48
}

fn rows(count: u64, salt: u64) -> Vec<u64> {
    par::map(0..count, |row| key(row, salt))
}

/// The rows of an answer, in pieces; `false` if it was told to stop.
fn query(kind: &str, count: u64, out: &mpsc::Sender<Vec<u64>>) -> bool {
    let gives = |piece| !jobs::is_cancelled() && out.blocking_send(piece).is_ok();
    match kind {
        "sort" => {
            let mut table = rows(count, 7);
            par::sort(&mut table);
            jobs::report(1, 1);
            table.chunks(500).all(|piece| gives(piece.to_vec()))
        }
        "join" => {
            let (left, right) = urgency::join(|| rows(count, 1), || rows(count, 2));
            let keys: Vec<HashMap<u64, u64>> = par::map(0..4, |part| {
                let of_part = left.iter().filter(|key| *key % 4 == part);
                of_part.fold(HashMap::new(), |mut keys, key| {
                    *keys.entry(*key).or_default() += 1;
                    keys
                })
            });
            right.chunks(500).all(|piece| {
                let found = par::map(piece, |key| keys[(key % 4) as usize].get(key).copied());
                gives(found.into_iter().flatten().collect())
            })
        }
        "endless" => (0..).all(|round| gives(vec![round])),
        _ => {
            par::for_each(0..count, |row| assert!(row != count / 2, "a broken row"));
            true
        }
    }
}

impl Engine {
    async fn answer(
        &self,
        tenant: u64,
        kind: String,
        count: u64,
        to: &TcpStream,
    ) -> io::Result<()> {
        let (sends, mut pieces) = mpsc::channel(2);
        let group = Group::new(tenant).weight(1 + tenant as u32);
        let job = self.cores.job().group(group).reserve().await;
        let job = job.and_then(|place| place.spawn_fn(move || query(&kind, count, &sends)));
        let job = job.map_err(io::Error::other)?;
        let (control, running) = (job.control(), || self.running.lock().unwrap());
        running().push((tenant, control.clone()));
        let mut hung_up = [0];
        let gone = loop {
            select! {
                piece = pieces.recv() => {
                    let Some(piece) = piece else { break None };
                    let words: Vec<_> = piece.iter().map(u64::to_string).collect();
                    let line = format!("rows {}\n", words.join(" "));
                    if let Err(error) = to.write_all(line.as_bytes()).await { break Some(error) }
                }
                end = to.read(&mut hung_up) => match end {
                    Ok(0) => break Some(io::ErrorKind::UnexpectedEof.into()),
                    Ok(_) => panic!("a client asks one thing at a time"),
                    Err(error) => break Some(error),
                },
            }
        };
        if gone.is_some() {
            control.cancel();
            drop(pieces);
        }
        let result = job.await;
        running().retain(|(_, of)| of.id() != control.id());
        let (how, line) = match result {
            Ok(true) => (0, "whole answer\n".to_string()),
            Err(error) if error.kind() == JobErrorKind::Panicked => (1, format!("error {error}\n")),
            Ok(false) | Err(_) => (2, "stopped query\n".to_string()),
        };
        self.ended[how].fetch_add(1, SeqCst);
        match gone {
            Some(error) => Err(error),
            None => to.write_all(line.as_bytes()).await,
        }
    }

    /// Changes the quota of a tenant's queries. How many queries run.
    fn change(&self, tenant: u64, weight: u32, most: usize) -> usize {
        let running = self.running.lock().unwrap();
        for (_, control) in running.iter().filter(|(of, _)| *of == tenant) {
            let mut demand: Demand = control.demand();
            demand.group = Some(Group::new(tenant).weight(weight));
            demand.max_cores = most;
            control.set_demand(demand).unwrap();
            assert!(control.progress().done <= 1);
        }
        running.len()
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let mut rest = String::new();
        loop {
            while !rest.contains('\n') {
                let mut bytes = [0; 100];
                match stream.read(&mut bytes).await? {
                    0 => return Ok(()),
                    count => rest.push_str(str::from_utf8(&bytes[..count]).unwrap()),
                }
            }
            let line: String = rest.drain(..=rest.find('\n').unwrap()).collect();
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            if words[0] == "quota" {
                let running = self.change(number(1), number(2) as u32, number(3) as usize);
                stream
                    .write_all(format!("running {running}\n").as_bytes())
                    .await?;
            } else {
                self.answer(number(1), words[0].to_string(), number(2), &stream)
                    .await?;
            }
        }
    }
}

type Connection = BufReader<net::TcpStream>;

fn connect(server: SocketAddr) -> Connection {
    BufReader::new(net::TcpStream::connect(server).unwrap())
}

fn tell(to: &mut Connection, question: String) {
    to.get_mut().write_all(question.as_bytes()).unwrap();
}

/// The next line, as its first word and the rest.
fn line(from: &mut Connection) -> (String, String) {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let (first, rest) = line.trim_end().split_once(' ').unwrap();
    (first.to_string(), rest.to_string())
}

/// The answers are the ones that a serial program gives. How many ended whole, broken and stopped.
fn client(server: SocketAddr, number: u64) -> [u64; 3] {
    let (mut to, mut counts, tenant) = (connect(server), [0; 3], number % 4);
    for at in 0..QUERIES {
        let kind = ["sort", "join", "panic", "endless", "join"][at as usize % 5];
        let count = 1000 + 50 * (at + number);
        tell(&mut to, format!("{kind} {tenant} {count}\n"));
        let (mut rows, mut last) = (Vec::new(), line(&mut to));
        if kind == "endless" {
            assert_eq!(last.0, "rows");
            to = connect(server); // it hangs up
            counts[2] += 1;
            continue;
        }
        while last.0 == "rows" {
            rows.extend(last.1.split(' ').map(|it| it.parse::<u64>().unwrap()));
            last = line(&mut to);
        }
        if kind == "panic" {
            assert!(
                last.0 == "error" && last.1.contains("a broken row"),
                "{last:?}"
            );
            counts[1] += 1;
        } else {
            assert_eq!(last.0, "whole");
            assert!(rows == serially(kind, count), "{kind} {count}");
            counts[0] += 1;
        }
    }
    counts
}

fn serially(kind: &str, count: u64) -> Vec<u64> {
    let rows = |salt| (0..count).map(move |row| key(row, salt));
    if kind == "sort" {
        let mut sorted: Vec<u64> = rows(7).collect();
        sorted.sort_unstable();
        return sorted;
    }
    let mut keys = HashMap::<u64, u64>::new();
    rows(1).for_each(|key| *keys.entry(key).or_default() += 1);
    rows(2).filter_map(|key| keys.get(&key).copied()).collect()
}

fn round(workers: usize) {
    let runtime = Runtime::builder()
        .workers(workers)
        .levels::<Server>()
        .build()
        .unwrap();
    let cores = CoreSet::builder().most_running(4).most_queued(2);
    let cores = cores.build_beside(&runtime).unwrap();
    let engine = Arc::new(Engine {
        cores: cores.clone(),
        ended: Default::default(),
        running: Mutex::default(),
    });
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let server = listener.local_addr().unwrap();
    let (connections, stop) = (TaskTracker::new(), CancellationToken::new());
    let accepts = {
        let (engine, connections, stop) = (engine.clone(), connections.clone(), stop.clone());
        runtime.at(LevelId::from(Client)).spawn(async move {
            while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
                stream.set_nodelay(true).unwrap();
                connections.spawn(engine.clone().serve(stream)).detach();
            }
        })
    };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| thread::spawn(move || client(server, number)))
        .collect();
    let (mut admin, mut asked) = (connect(server), 0);
    while !clients.iter().all(thread::JoinHandle::is_finished) {
        let (tenant, weight, most) = (asked % 4, 1 + asked % 7, 1 + asked % 3);
        tell(&mut admin, format!("quota {tenant} {weight} {most}\n"));
        assert_eq!(line(&mut admin).0, "running");
        asked += 1;
        thread::sleep(Duration::from_millis(1));
    }
    drop(admin);
    let counts = clients.into_iter().map(|client| client.join().unwrap());
    let counts = counts.fold([0; 3], |all, of| [0, 1, 2].map(|at| all[at] + of[at]));
    assert_eq!(counts, [3, 1, 1].map(|part| CLIENTS * QUERIES * part / 5));
    stop.cancel();
    accepts.get().unwrap();
    connections.close();
    runtime.block_on(connections.wait());
    let ended = engine.ended.each_ref().map(|it| it.load(SeqCst));
    assert_eq!(ended, counts);
    let stats = cores.stats();
    assert_eq!(
        (stats.submitted, stats.over),
        (CLIENTS * QUERIES, CLIENTS * QUERIES)
    );
    assert!(stats.parked <= 4, "{stats:?}");
    // The runtime ends before the set that is beside it.
    let report = runtime.shutdown(Shutdown::Drain);
    assert_eq!((report.left, report.panicked, report.cancelled), (0, 0, 0));
    cores.shutdown_within(JobShutdown::Drain, LATE).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "sockets and many threads")]
fn each_query_of_a_multi_tenant_engine_gives_its_rows_its_error_or_its_end() {
    quiet();
    ends(|| {
        let before = threads_and_descriptors();
        for workers in [2, 1, 8] {
            round(workers);
            until(|| {
                let after = threads_and_descriptors();
                after.0 <= before.0 && after.1 <= before.1
            });
        }
    });
}
