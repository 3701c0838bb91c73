//! The proof of a less urgent level, and a wait made with it, do not get into more urgent work.

urgency::levels! { App: Interactive > Batch }

fn main() {
    Batch.spawn_fn(|cx| {
        let report = Batch.spawn_fn(|_| 1);
        Interactive.spawn_fn(move |_| report.get(cx));
    });
    Batch.spawn(async |cx| {
        let report = Batch.spawn_fn(|_| 1);
        let waiting = report.wait(cx);
        Interactive.spawn(async move |_| waiting.await);
    });
}
