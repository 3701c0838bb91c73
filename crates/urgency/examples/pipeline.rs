//! Fetch, parse, sum: a pipeline over slow sources, with a time limit for each and one for the whole.
//!
//! A source that is too slow is given up; what is left when the whole takes too long is cancelled.
use std::{error::Error, io, net::SocketAddr};
use urgency::{
    Runtime,
    net::{TcpListener, TcpStream},
    time::{Duration, Instant, sleep, timeout, timeout_at},
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
const STEP: Duration = Duration::from_millis(40);

/// The sources: a server that answers `n` with 10,000 numbers after `n` steps.
async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let answer = async move {
            let mut n = [0];
            stream.read_exact(&mut n).await?;
            sleep(STEP * u32::from(n[0])).await;
            let numbers: Vec<u8> = (0..10_000u32).flat_map(u32::to_le_bytes).collect();
            stream.write_all(&numbers).await
        };
        urgency::spawn(answer).detach();
    }
}

/// Stage 1, async: waits for the network.
async fn fetch(address: SocketAddr, source: u8) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect(address).await?;
    stream.write_all(&[source]).await?;
    let mut body = vec![0; 40_000];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// Stage 2, a closure: forks.
fn parse(body: &[u8]) -> u64 {
    if body.len() <= 4096 {
        let numbers = body.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b));
        return numbers.map(u64::from).sum();
    }
    let (left, right) = body.split_at(body.len() / 8 * 4);
    let (left, right) = urgency::join(|| parse(left), || parse(right));
    left + right
}

/// All stages for one source. The sources are asked one step after the other.
async fn run(address: SocketAddr, source: u8) -> Result<u64> {
    sleep(STEP * u32::from(source)).await;
    let body = timeout(STEP * 5 / 2, fetch(address, source)).await??;
    Ok(urgency::spawn_fn(move || parse(&body)).await?)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    runtime.spawn(serve(listener)).detach();

    let at = Instant::now() + STEP * 6;
    let start = |n| (n, runtime.spawn(run(address, n)));
    for (source, mut handle) in (0..8).map(start).collect::<Vec<_>>() {
        let waited = runtime.block_on(timeout_at(at, &mut handle));
        let result = waited.unwrap_or_else(|_over| {
            handle.abort();
            handle.get()
        });
        match result {
            Ok(Ok(sum)) => println!("source {source}: {sum}"),
            Ok(Err(error)) => println!("source {source} was given up: {error}"),
            Err(error) => println!("source {source} was not finished: {error}"),
        }
    }
    Ok(())
}
