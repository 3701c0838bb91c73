//! Tokio with two workers; the compute, if any, in a rayon pool of two threads.

use super::{Config, HELLO, Program, router};
use crate::{echo, engines, mixed};
use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::net::TcpListener;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(2);
    let listener = runtime.block_on(echo::tokio::listen());
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(async move {
        match config.program {
            Program::HyperHello => hello(listener).await,
            Program::AxumJson => axum::serve(listener, router())
                .await
                .expect("nobody ended the server"),
        }
    });
    let pool = engines::rayon::pool(2);
    let sample = config.measure(address, || {
        pool.spawn(|| mixed::tokio_rayon::endless_forks())
    });
    // The pool never becomes idle; it ends with the process.
    std::mem::forget(pool);
    sample
}

async fn hello(listener: TcpListener) {
    loop {
        let (stream, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        tokio::spawn(async move {
            let service = service_fn(|_| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(
                    HELLO.as_bytes(),
                ))))
            });
            // The client ends its connections when it ends.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
