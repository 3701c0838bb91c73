urgency::levels! { App: Interactive > Batch > Idle }

fn main() {
    Interactive.spawn(async |cx| {
        let report = Batch.spawn(async |_| 1);
        report.wait(cx).await
    });
}
