//! Urgency: one runtime, one set of workers. Requests are async tasks at the level that was asked for, the
//! compute is closures that `join` at level `Batch`.

use super::{Serving, address, cannot_build, cannot_listen};
use crate::demo::{
    compute,
    error::Error,
    messages::{Account, ServerSpec},
    options::{Kind, ServeAt},
};
use std::{io, net::SocketAddr};
use urgency::{
    LevelId, Runtime,
    net::{TcpListener, TcpStream},
};
use urgency_measure::client::lanes::chain;

urgency::levels! { Demo: Interactive > Batch > Background }

struct Urgency {
    runtime: Runtime,
    address: SocketAddr,
    workers: usize,
    kind: Kind,
}

pub fn serve(spec: &ServerSpec) -> Result<impl Serving + use<>, Error> {
    let runtime = Runtime::builder()
        .workers(spec.workers)
        .levels::<Demo>()
        .build()
        .map_err(cannot_build(spec.contender))?;
    let level: LevelId = match spec.level {
        ServeAt::Interactive => Interactive.into(),
        ServeAt::Batch => Batch.into(),
        ServeAt::Background => Background.into(),
    };
    let listener = runtime
        .run(|| urgency::block_on(TcpListener::bind(address(spec))))
        .map_err(cannot_listen(spec))?;
    let address = listener.local_addr().map_err(cannot_listen(spec))?;
    // Connections are accepted in time whatever the level of the requests: what is to be seen is how long
    // requests wait.
    runtime
        .at(Interactive)
        .spawn(accept(listener, level))
        .detach();
    Ok(Urgency {
        runtime,
        address,
        workers: spec.workers,
        kind: spec.kind,
    })
}

async fn accept(listener: TcpListener, level: LevelId) {
    while let Ok((stream, _)) = listener.accept().await {
        urgency::at(level).spawn(answer(stream)).detach();
    }
}

async fn answer(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; chain::MESSAGE];
    loop {
        stream.read_exact(&mut request).await?;
        stream.write_all(&chain::reply(&request)).await?;
    }
}

impl Serving for Urgency {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn compute(&self) {
        match self.kind {
            Kind::ForkJoin => self
                .runtime
                .at(Batch)
                .spawn_fn(|| compute::fork_join(UrgencyJoin))
                .detach(),
            Kind::Sequential => {
                for _ in 0..self.workers {
                    self.runtime
                        .at(Batch)
                        .spawn_fn(|| compute::sequential())
                        .detach();
                }
            }
        }
    }

    fn account(&self) -> Account {
        let total = self.runtime.stats().total();
        [
            ("tasks", total.tasks),
            ("steals", total.steals),
            ("mugs", total.mugs),
            ("abandonments", total.abandonments),
            ("hand_offs", total.hand_offs),
            ("reliefs", total.reliefs),
            ("promotions", total.promotions),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into()
    }
}

#[derive(Clone, Copy)]
struct UrgencyJoin;

impl compute::Join for UrgencyJoin {
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        urgency::join(a, b)
    }
}
