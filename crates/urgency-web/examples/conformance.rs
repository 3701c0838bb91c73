//! The server that `ci/h2spec.sh` examines: every answer with a body, bodies of requests read to the end.
//! Prints its port and serves until it is ended. With the argument `http2` it speaks nothing else; otherwise
//! it also speaks HTTP/1, and then something that is neither is answered by the 400 of HTTP/1, where h2spec
//! wants the connection closed.

use axum::{Router, body::Bytes, extract::DefaultBodyLimit};
use std::future::IntoFuture;
use urgency::net::TcpListener;

fn main() -> std::io::Result<()> {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0"))?;
    println!("{}", listener.local_addr()?.port());
    let answer = |body: Bytes| async move { format!("{} bytes came\n", body.len()) };
    let router = Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::disable());
    let only_http_2 = std::env::args().any(|argument| argument == "http2");
    let serve = urgency_web::serve(listener, router).http(|builder| {
        if only_http_2 {
            *builder = builder.clone().http2_only();
        }
    });
    urgency::block_on(serve.into_future())?;
    Ok(())
}
