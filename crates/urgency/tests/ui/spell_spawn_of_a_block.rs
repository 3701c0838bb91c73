//! An async block where an async closure is meant.

urgency::levels! { App: Interactive > Batch }

fn main() {
    let number = 42;
    Batch.spawn(async move { number });
}
