//! Sequential code over asynchronous I/O: closures start queries, compute, and block in `get`.
//!
//! 100 closures on a single worker ask two backends each. A backend takes 20 ms, so a pool of blocking
//! threads as large as the workers would need four seconds. Here a closure that waits gives its worker away.
use std::{error::Error, io, net::SocketAddr, time::Duration, time::Instant};
use urgency::{
    Runtime,
    net::{TcpListener, TcpStream},
    time::sleep,
};

async fn backend(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        urgency::spawn(async move {
            let mut question = [0; 8];
            stream.read_exact(&mut question).await?;
            sleep(Duration::from_millis(20)).await;
            let answer = u64::from_le_bytes(question) * 2;
            stream.write_all(&answer.to_le_bytes()).await
        })
        .detach();
    }
}

async fn query(address: SocketAddr, question: u64) -> io::Result<u64> {
    let stream = TcpStream::connect(address).await?;
    stream.write_all(&question.to_le_bytes()).await?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await?;
    Ok(u64::from_le_bytes(answer))
}

/// Plain sequential code: no `async`, no callback, no second pool.
fn answer(address: SocketAddr, n: u64) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let left = urgency::spawn(query(address, n));
    let right = urgency::spawn(query(address, n + 1));
    let mine: u64 = (0..=n).sum();
    Ok(mine + left.get()?? + right.get()??)
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let runtime = Runtime::builder().workers(1).build()?;
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    runtime.spawn(backend(listener)).detach();

    let start = Instant::now();
    let closures: Vec<_> = (0..100)
        .map(|n| runtime.spawn_fn(move || answer(address, n)))
        .collect();
    let mut sum = 0;
    for closure in closures {
        sum += closure.get()??;
    }
    assert_eq!(sum, (0..100).map(|n| n * (n + 1) / 2 + 4 * n + 2).sum());
    println!(
        "200 queries of 20 ms by 100 closures on 1 worker: {:.0?}, at most {} threads",
        start.elapsed(),
        runtime.stats().threads_peak
    );
    Ok(())
}
