//! A wait in a closure without the proof of its level.

urgency::levels! { App: Interactive > Batch }

fn main() {
    Batch.spawn_fn(|_| {
        let inner = Interactive.spawn_fn(|_| 42);
        inner.get()
    });
}
