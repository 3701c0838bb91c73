//! A typed handle that is awaited as if it were a future.

urgency::levels! { App: Interactive > Batch }

fn main() {
    Interactive.spawn(async |_| {
        let inner = Interactive.spawn(async |_| 42);
        inner.await
    });
}
