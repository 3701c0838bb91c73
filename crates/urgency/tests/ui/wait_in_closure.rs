urgency::levels! { App: Interactive > Batch }

fn main() {
    Interactive.spawn_fn(|cx| {
        let report = Batch.spawn_fn(|_| 1);
        report.get(cx)
    });
}
