mod other {
    urgency::levels! { pub Other: High > Low }
}

urgency::levels! { App: Interactive > Batch }

fn main() {
    Batch.spawn_fn(|cx| {
        let high = other::High.spawn_fn(|_| 1);
        high.get(cx)
    });
    Batch.spawn_fn(|cx| {
        let high = other::High.spawn_fn(|_| 1);
        high.boost_get(cx)
    });
}
