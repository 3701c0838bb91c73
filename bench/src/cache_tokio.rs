//! `urgency-bench cache-tokio`: the cache server of `urgency cache`, the very same code for connections and
//! store, on Tokio.
//!
//! It is no experiment but a server to load: with `urgency load cache`, beside `urgency cache` and memcached,
//! on the same processors. It knows no levels; the background work is tasks among the connections.

use clap::Parser;
use futures_io::{AsyncRead, AsyncWrite};
use std::{
    io,
    pin::Pin,
    process::ExitCode,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead as _, AsyncWrite as _, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime,
};
use urgency_cache::{
    server::{Server, Settings, connection, upkeep},
    store::{Limits, Store},
};

/// The options of `cache-tokio`.
#[derive(Parser)]
#[command(bin_name = "urgency-bench cache-tokio")]
struct Options {
    /// The TCP port on 127.0.0.1.
    #[arg(short = 'p', long, default_value_t = 11311)]
    port: u16,
    /// Worker threads.
    #[arg(short = 't', long, default_value_t = 2)]
    threads: usize,
    /// The memory for items, in MiB.
    #[arg(short = 'm', long, default_value_t = 64)]
    memory: u64,
    /// The most connections at a time.
    #[arg(short = 'c', long, default_value_t = 1024)]
    connections: u32,
}

/// A stream of Tokio with the traits that the connection's code asks for.
struct Compatible(TcpStream);

impl AsyncRead for Compatible {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl AsyncWrite for Compatible {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The background work's way to wait.
struct OnTokio;

impl upkeep::Pace for OnTokio {
    async fn give_way(&self) {
        tokio::task::yield_now().await;
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Serves until it is killed.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = Options::parse_from(arguments);
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cache-tokio: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let limits = Limits {
        memory: options.memory << 20,
        ..Limits::default()
    };
    let settings = Settings {
        connections_max: options.connections,
        threads: options.threads,
        port: options.port,
        ..Settings::default()
    };
    let server = Arc::new(Server::new(Store::new(&limits)?, settings));
    let mut builder = runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(options.threads)
        .enable_all()
        .build()?;
    runtime.spawn(upkeep::keep_lru(Arc::clone(&server), OnTokio));
    runtime.spawn(upkeep::free_shares(Arc::clone(&server), OnTokio));
    runtime.spawn(upkeep::grow_and_crawl(Arc::clone(&server), OnTokio));
    runtime.block_on(accept(server, options.port))?;
    Ok(())
}

async fn accept(server: Arc<Server>, port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address: Arc<str> = format!("tcp:127.0.0.1:{port}").into();
    // In a task of its own, for the thread that blocks on this future is none of the workers.
    let accepting = async move {
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                // There is no descriptor, perhaps, until a connection ends. The others are served meanwhile.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            // A client that is gone already is noticed when the connection is served.
            let _ = stream.set_nodelay(true);
            let (server, address) = (Arc::clone(&server), Arc::clone(&address));
            tokio::spawn(async move {
                let Some(place) = server.enter(peer.to_string(), &address) else {
                    return;
                };
                // An error ends this connection and concerns nobody else.
                let _ = connection::serve(Compatible(stream), place.line(), &server).await;
            });
        }
    };
    tokio::spawn(accepting).await?;
    Ok(())
}
