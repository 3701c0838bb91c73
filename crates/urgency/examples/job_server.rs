//! A server of jobs: each line that a client sends starts, watches, changes or cancels one, with a share of the cores.
//!
//! The task that waits for a job has its handle; a table has a control of it for the lines that come meanwhile.
//!
//! `cargo run --release -p urgency --example job_server`

use std::{
    collections::HashMap,
    error::Error,
    io::{self, BufRead, BufReader, Write},
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use urgency::{
    Runtime, block_on,
    jobs::{self, CoreSet, JobControl, JobErrorKind, JobHandle},
    net::{TcpListener, TcpStream},
    par,
    policy::cores::Demand,
    spawn, spawn_fn,
};

type Table = Arc<Mutex<HashMap<String, JobControl>>>;

/// How many numbers of `0..limit` are prime: in parts, on all cores that the job has, until it is cancelled.
fn primes(limit: u64) -> u64 {
    let is_prime = |n: u64| {
        n > 1
            && (2..)
                .take_while(|d| d * d <= n)
                .all(|d| !n.is_multiple_of(d))
    };
    let (mut count, mut done) = (0, 0);
    while done < limit && !jobs::is_cancelled() {
        let end = limit.min(done + 10_000);
        let found = par::reduce(done..end, |n| u64::from(is_prime(n)), |a, b| a + b);
        count += found.unwrap_or(0);
        done = end;
        jobs::report(done, limit);
    }
    count
}

/// What becomes of a job, as a line.
fn end(job: JobHandle<u64>) -> String {
    let control = job.control();
    match job.get() {
        Ok(_) if control.progress().done < control.progress().total => "stopped".to_string(),
        Ok(count) => format!("found {count}"),
        Err(error) if error.kind() == JobErrorKind::Cancelled => "never ran".to_string(),
        Err(error) => error.to_string(),
    }
}

/// `primes NAME LIMIT WEIGHT`, `weight NAME WEIGHT`, `progress NAME` and `cancel NAME`.
fn obey(line: &str, cores: &CoreSet, table: &Table, out: Arc<TcpStream>) -> Option<String> {
    let mut words = line.split(' ');
    let (verb, name) = (words.next()?, words.next()?.to_string());
    let mut number = || words.next()?.parse::<u64>().ok();
    if verb == "primes" {
        let (limit, weight) = (number()?, u32::try_from(number()?).ok()?);
        let job = cores.job().weight(weight).spawn_fn(move || primes(limit));
        let job = job.ok()?;
        table.lock().unwrap().insert(name.clone(), job.control());
        let table = table.clone();
        spawn_fn(move || {
            let end = end(job);
            table.lock().unwrap().remove(&name);
            writeln!(out.blocking(), "{name}: {end}")
        })
        .detach();
        return Some("started".to_string());
    }
    let job = table.lock().unwrap().get(&name)?.clone();
    match verb {
        "cancel" => job.cancel(),
        "weight" => {
            let weight = u32::try_from(number()?).ok()?;
            let demand = job.demand();
            job.set_demand(Demand { weight, ..demand }).ok()?;
        }
        "progress" => return Some(format!("{:?}", job.progress())),
        _ => return None,
    }
    Some("done".to_string())
}

/// A connection: a closure, so it reads and writes as a thread does.
fn serve(stream: TcpStream, cores: CoreSet) -> io::Result<()> {
    // `writeln!` writes a line in two pieces, and the second one would wait for the peer's acknowledgement.
    stream.set_nodelay(true)?;
    let (stream, table) = (Arc::new(stream), Table::default());
    for line in BufReader::new(stream.blocking()).lines() {
        let answer = obey(&line?, &cores, &table, stream.clone());
        let answer = answer.unwrap_or_else(|| "not understood".to_string());
        writeln!(stream.blocking(), "{answer}")?;
    }
    for job in table.lock().unwrap().values() {
        job.cancel();
    }
    Ok(())
}

/// A plain thread, outside the runtime, as a client elsewhere would be.
fn client(address: SocketAddr) -> io::Result<()> {
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    for command in [
        "primes small 200000 1",
        "primes endless 1000000000000 1",
        "weight small 8",
        "progress endless",
    ] {
        writeln!(stream, "{command}")?;
    }
    // Five answers: four to the commands, and the end of the small job.
    for line in lines.by_ref().take(5) {
        println!("{}", line?);
    }
    writeln!(stream, "cancel endless")?;
    for line in lines.take(2) {
        println!("{}", line?);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let cores = CoreSet::beside(Runtime::global());
    let listener = block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let cores = cores.clone();
            spawn_fn(move || serve(stream, cores)).detach();
        }
    })
    .detach();
    client(address)?;
    Ok(())
}
