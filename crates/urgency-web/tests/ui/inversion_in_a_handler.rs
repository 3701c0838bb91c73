//! A handler of the level that people wait for, which waits for a batch.

use axum::{Router, routing::get};
use urgency_web::At;

urgency::levels! { App: Interactive > Batch }

async fn search(at: At<Interactive>) -> String {
    at.run(async |cx| {
        let count = Batch.spawn_fn(|_| 42);
        count.wait(cx).await.unwrap_or(0).to_string()
    })
    .await
}

fn main() {
    let _: Router = Router::new().route("/search", get(search));
}
