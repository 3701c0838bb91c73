//! An echo server at one level and a batch job at a lower one, in one runtime.
//!
//! It is its own client: it sends 200 requests, prints how long they took, and ends.
use std::{
    error::Error,
    io::{self, Read, Write},
    net::SocketAddr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use urgency::net::{TcpListener, TcpStream};

urgency::levels! { Server: Interactive > Batch }

static STOP: AtomicBool = AtomicBool::new(false);
static LEAVES: AtomicU64 = AtomicU64::new(0);

/// Endless compute that forks.
fn batch(depth: u32) {
    if depth > 0 {
        urgency::join(|| batch(depth - 1), || batch(depth - 1));
    } else if !STOP.load(Relaxed) {
        std::hint::black_box((0..10_000).map(std::hint::black_box).sum::<u64>());
        LEAVES.fetch_add(1, Relaxed);
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        Interactive.spawn(async |_| echo(stream).await).detach();
    }
}

async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length]).await?,
        }
    }
}

/// A plain thread, outside the runtime, as a client elsewhere would be.
fn client(address: SocketAddr) -> io::Result<Vec<Duration>> {
    let mut stream = std::net::TcpStream::connect(address)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        stream.write_all(b"urgent")?;
        stream.read_exact(&mut [0; 6])?;
        times.push(start.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(times)
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = urgency::Runtime::builder().levels::<Server>().build()?;
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    runtime.at(Interactive).spawn(serve(listener)).detach();
    let compute = runtime.at(Batch).spawn_fn(|| {
        while !STOP.load(Relaxed) {
            batch(8)
        }
    });

    let mut times = client(address)?;
    times.sort();
    STOP.store(true, Relaxed);
    compute.get()?;
    println!(
        "200 requests: median {:.1?}, slowest {:.1?}",
        times[100], times[199]
    );
    println!("batch work meanwhile: {} leaves", LEAVES.load(Relaxed));
    Ok(())
}
