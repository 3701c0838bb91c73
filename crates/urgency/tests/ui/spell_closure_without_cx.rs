//! A closure without its parameter.

urgency::levels! { App: Interactive > Batch }

fn main() {
    Batch.spawn_fn(|| 42);
    Batch.spawn(async || 42);
}
