//! Handlers with the proof of their level, and other extractors beside it.

use axum::{Router, extract::{Path, State}, routing::get};
use urgency_web::At;

urgency::levels! { App: Interactive > Batch }

async fn search(at: At<Interactive>, State(base): State<u64>, Path(n): Path<u64>) -> String {
    at.run(async move |cx| {
        let count = Interactive.spawn_fn(move |_| base + n);
        count.wait(cx).await.unwrap_or(0).to_string()
    })
    .await
}

async fn report(at: At<Batch>) -> String {
    at.run(async |cx| {
        let urgent = Interactive.spawn(async |_| 1);
        let own = Batch.spawn(async |_| 2);
        let sum = urgent.wait(cx).await.unwrap_or(0) + own.wait(cx).await.unwrap_or(0);
        sum.to_string()
    })
    .await
}

fn main() {
    let router = Router::new().route("/search/{n}", get(search)).route("/report", get(report));
    let _: Router = router.with_state(7);
}
