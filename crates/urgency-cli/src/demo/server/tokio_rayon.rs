//! The usual pair: a Tokio runtime answers, a Rayon pool beside it computes, each with as many threads as
//! there are workers. The kernel shares the processors between the two.

use super::{Serving, address, cannot_build, cannot_listen};
use crate::demo::{compute, error::Error, messages::ServerSpec, options::Kind};
use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};
use urgency_measure::client::lanes::chain;

struct TokioRayon {
    /// Runs as long as it is kept.
    _runtime: Runtime,
    pool: rayon::ThreadPool,
    address: SocketAddr,
    workers: usize,
    kind: Kind,
}

pub fn serve(spec: &ServerSpec) -> Result<impl Serving + use<>, Error> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(spec.workers)
        .enable_io()
        .build()
        .map_err(cannot_build(spec.contender))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(spec.workers)
        .build()
        .map_err(cannot_build(spec.contender))?;
    let listener = runtime
        .block_on(TcpListener::bind(address(spec)))
        .map_err(cannot_listen(spec))?;
    let address = listener.local_addr().map_err(cannot_listen(spec))?;
    runtime.spawn(accept(listener));
    Ok(TokioRayon {
        _runtime: runtime,
        pool,
        address,
        workers: spec.workers,
        kind: spec.kind,
    })
}

async fn accept(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; chain::MESSAGE];
    loop {
        stream.read_exact(&mut request).await?;
        stream.write_all(&chain::reply(&request)).await?;
    }
}

impl Serving for TokioRayon {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn compute(&self) {
        match self.kind {
            Kind::ForkJoin => self.pool.spawn(|| compute::fork_join(RayonJoin)),
            Kind::Sequential => {
                for _ in 0..self.workers {
                    self.pool.spawn(|| compute::sequential());
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct RayonJoin;

impl compute::Join for RayonJoin {
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        rayon::join(a, b)
    }
}
