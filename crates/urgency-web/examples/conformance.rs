//! The server that `ci/h2spec.sh` examines: HTTP/2 with prior knowledge and HTTP/1, every answer with a body, bodies of requests read to the end.
//! Prints its address and serves until it is ended.

use axum::{Router, body::Bytes, extract::DefaultBodyLimit};
use urgency::net::TcpListener;

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let answer = |body: Bytes| async move { format!("{} bytes came\n", body.len()) };
    let router = Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::disable());
    urgency::block_on(async { urgency_web::serve(listener, router).await })?;
    Ok(())
}
