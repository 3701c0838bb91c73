//! One runtime of two workers; the server at the higher level, the compute at the lower.

use super::{Config, HELLO, Program, router};
use crate::engines::ours::{Batch, Urgent, runtime, runtime_with_levels, with_stats};
use crate::{echo, mixed};
use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use std::convert::Infallible;
use urgency::net::TcpListener;
use urgency_measure::Sample;
use urgency_web::rt::Io;

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = if config.beside {
        runtime_with_levels(2)
    } else {
        runtime(2)
    };
    let listener = echo::ours::listen();
    let address = listener.local_addr().expect("a listener has an address");
    let server = async move {
        match config.program {
            Program::HyperHello => hello(listener).await,
            Program::AxumJson => {
                let served = urgency_web::serve(listener, router()).await;
                unreachable!("nobody ended the server: {served:?}");
            }
        }
    };
    if config.beside {
        runtime.at(Urgent).spawn(server).detach();
    } else {
        runtime.spawn(server).detach();
    }
    let compute = || {
        runtime
            .at(Batch)
            .spawn_fn(mixed::ours::endless_forks)
            .detach()
    };
    let sample = with_stats(config.measure(address, compute), &runtime);
    // The server never ends; the runtime ends with the process.
    std::mem::forget(runtime);
    sample
}

async fn hello(listener: TcpListener) {
    loop {
        let (stream, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        urgency::spawn(async move {
            let service = service_fn(|_| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(
                    HELLO.as_bytes(),
                ))))
            });
            // The client ends its connections when it ends.
            let _ = http1::Builder::new()
                .serve_connection(Io::new(stream), service)
                .await;
        })
        .detach();
    }
}
